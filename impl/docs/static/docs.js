// The search while one types. Without this script the form asks the server.
const script = document.currentScript;
const field = document.getElementById('q');
const results = document.createElement('ul');
results.className = 'results';
results.hidden = true;
results.setAttribute('aria-label', 'Found');
field.form.append(results);

let index;
async function begin() {
  index ??= await (await fetch(script.dataset.index)).json();
  show();
}
field.addEventListener('focus', begin);
// A search that no server answered: the site is read from files.
const asked = new URLSearchParams(location.search).get('q');
if (asked && !field.value) {
  field.value = asked;
  begin();
}
field.addEventListener('input', show);
field.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') results.hidden = true;
});
document.addEventListener('click', (event) => {
  if (!field.form.contains(event.target)) results.hidden = true;
});

function show() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 10);
  results.replaceChildren();
  if (index && words.length) {
    for (const entry of find(words)) {
      const link = document.createElement('a');
      link.href = entry.url;
      link.textContent = entry.part ? `${entry.title} · ${entry.part}` : entry.title;
      const item = document.createElement('li');
      item.append(link);
      results.append(item);
    }
  }
  results.hidden = results.children.length === 0;
}

// The same order as the server's (search.go): what has every word, headings first.
function find(words) {
  const hits = [];
  for (const entry of index) {
    const head = `${entry.part} ${entry.title}`.toLowerCase();
    const text = entry.text.toLowerCase();
    let score = 0;
    for (const word of words) {
      const n = 20 * (head.split(word).length - 1) + (text.split(word).length - 1);
      if (!n) {
        score = 0;
        break;
      }
      score += Math.min(n, 40);
    }
    if (score) hits.push([score, entry]);
  }
  return hits.sort((a, b) => b[0] - a[0]).slice(0, 12).map((hit) => hit[1]);
}
