// What the pages of forms and meeting forms share: asking the API, saying what
// went wrong, and talking with the page around them.

const framed = window.parent !== window;
const patience = 20000;

// ask calls the API. It always answers, if need be with the status 0.
export async function ask(path, body) {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), patience);
  try {
    const response = await fetch(path, {
      signal: abort.signal,
      ...(body && {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)}),
    });
    return {status: response.status, body: await response.json().catch(() => ({}))};
  } catch {
    return {status: 0, body: {}};
  } finally {
    clearTimeout(timer);
  }
}

// explain says what to do about an answer that is not the one hoped for.
export function explain({status, body}) {
  switch (status) {
    case 429: {
      const wait = body.retry_after > 1 ? `${body.retry_after} seconds` : 'a moment';
      return `There are too many requests just now. Please try again in ${wait}.`;
    }
    case 400:
      return `Something was not accepted: ${body.message || 'please check what you typed.'}`;
    case 413:
      return 'This is more text than the form takes. Please shorten it.';
    case 403:
    case 404:
      return 'This form takes no answers here. Please get in touch another way.';
    case 0:
      return 'There is no connection just now. Please check yours and try again.';
  }
  return 'This did not work just now. Please try again in a minute.';
}

// say shows a text, or hides where it would stand.
export function say(element, text = '') {
  element.textContent = text;
  element.hidden = !text;
}

function mark(input, text) {
  if (text) input.setAttribute('aria-invalid', 'true');
  else input.removeAttribute('aria-invalid');
  say(document.getElementById(input.getAttribute('aria-describedby')), text);
}

function complaint({value, required, type, validity}) {
  if (required && !value.trim()) return 'Please fill this in.';
  if (type === 'email' && validity.typeMismatch) return 'Please give an e-mail address such as hank@globex.com.';
  return '';
}

// onSubmit sends the form when it is complete. about gives what goes along with
// the fields, or null when it is not time yet; done gives the words that take the
// form's place; refused may deal with an answer, and says so with true.
export function onSubmit(form, {about = () => ({}), done, refused = () => false}) {
  const inputs = [...form.elements].filter((e) => e.name.startsWith('fields.'));
  const alert = document.getElementById('alert');
  const button = form.querySelector('button:not([type])');
  const label = button.textContent;
  let busy = false;

  for (const input of inputs) input.addEventListener('input', () => mark(input));

  async function send(more) {
    const fields = {};
    for (const input of inputs) {
      if (input.value.trim()) fields[input.name.slice('fields.'.length)] = input.value;
    }
    const trap = form.elements.namedItem('trap').value;
    const answer = await ask(form.getAttribute('action'), {fields, ...more, ...(trap && {trap}), ...await surroundings()});
    if (answer.status === 201) {
      form.hidden = true;
      const words = document.getElementById('done');
      words.textContent = done(answer.body);
      words.focus();
      return;
    }
    if (refused(answer)) return;
    const faulty = inputs.find((input) => answer.status === 400 && input.name === answer.body.param);
    if (!faulty) {
      say(alert, explain(answer));
      return;
    }
    mark(faulty, answer.body.message);
    faulty.focus();
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const more = about();
    if (busy || !more) return;
    say(alert);
    for (const input of inputs) mark(input, complaint(input));
    const first = inputs.find((input) => complaint(input));
    if (first) {
      first.focus();
      return;
    }
    busy = true;
    // A button that is disabled would lose the focus.
    button.setAttribute('aria-disabled', 'true');
    button.textContent = 'Sending…';
    await send(more);
    button.textContent = label;
    button.removeAttribute('aria-disabled');
    busy = false;
  });
}

// surroundings are the visitor and the page that the form stands in. The script
// that put the form there knows them; where there is none, nobody answers.
async function surroundings() {
  const told = framed ? await askParent() : {};
  const visitor = [told.visitor_id, new URLSearchParams(location.search).get('visitor')]
    .find((id) => typeof id === 'string' && /^[A-Za-z0-9-]{1,64}$/.test(id));
  const page = String(told.page_url || (framed && document.referrer) || '').slice(0, 2048);
  return {...(visitor && {visitor_id: visitor}), ...(page && {page_url: page})};
}

function askParent() {
  return new Promise((resolve) => {
    const listen = ({source, data}) => {
      if (source === window.parent && data && data.inlet === 'visitor') end(data);
    };
    const timer = setTimeout(() => end({}), 300);
    const end = (told) => {
      clearTimeout(timer);
      removeEventListener('message', listen);
      resolve(told);
    };
    addEventListener('message', listen);
    window.parent.postMessage({inlet: 'visitor'}, '*'); // which tells nobody anything
  });
}

if (framed) {
  const root = document.documentElement;
  new ResizeObserver(() => {
    const height = Math.ceil(root.getBoundingClientRect().height);
    window.parent.postMessage({inlet: 'size', height, title: document.title}, '*');
  }).observe(root);
}
