// The slot picker: two weeks of days, the times of one day, then who comes.
import {ask, explain, onSubmit, say} from './page.js';

const form = document.querySelector('form');
const hostZone = form.dataset.timeZone;
const byId = (id) => document.getElementById(id);
const [zone, earlier, later, again, days, times] = ['zone', 'earlier', 'later', 'again', 'days', 'times'].map(byId);

const span = 14; // days that are shown at a time
let ahead = 0; // days from today to the first that is shown
let slots = [];
let chosen = null;
let loading = 0;

const format = (options) => new Intl.DateTimeFormat(undefined, {timeZone: zone.value, ...options});
const onDay = (format, day) => format.format(new Date(day + 'T12:00Z'));
const dayOf = (instant) => new Intl.DateTimeFormat('en-CA-u-ca-gregory-nu-latn', {
  timeZone: zone.value, year: 'numeric', month: '2-digit', day: '2-digit',
}).format(new Date(instant));
const plus = (day, n) => new Date(Date.parse(day) + n * 86400000).toISOString().slice(0, 10);
const spoken = (zone) => zone.replaceAll('_', ' ');
const inWords = ({starts_at, ends_at}) => {
  const range = format({dateStyle: 'full', timeStyle: 'short'}).formatRange(new Date(starts_at), new Date(ends_at));
  return `${range} (${spoken(zone.value)})`;
};

function offerZones() {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone || hostZone;
  const all = Intl.supportedValuesOf ? Intl.supportedValuesOf('timeZone') : [];
  for (const value of [...new Set([...all, own, hostZone, 'UTC'])].sort()) {
    zone.add(new Option(spoken(value), value, false, value === own));
  }
}

// load gets the slots of the days that are shown, and keeps what was chosen where
// it is still free.
async function load() {
  const own = ++loading;
  const from = plus(dayOf(Date.now()), ahead);
  const to = plus(from, span - 1);
  const shown = new Intl.DateTimeFormat(undefined, {timeZone: 'UTC', day: 'numeric', month: 'short', year: 'numeric'});
  byId('weeks').textContent = shown.formatRange(new Date(from), new Date(to));
  form.setAttribute('aria-busy', 'true');
  say(byId('none'), slots.length ? '' : 'Looking for free times…');
  const query = new URLSearchParams({from, to, time_zone: zone.value});
  const answer = await ask(`${form.getAttribute('action')}/slots?${query}`);
  if (own !== loading) return; // other slots are asked for by now
  form.removeAttribute('aria-busy');

  // A browser may know a zone that the server does not.
  if (answer.status === 400 && answer.body.param === 'time_zone' && zone.value !== hostZone) {
    zone.value = hostZone;
    await load();
    return;
  }
  const found = answer.status === 200;
  slots = found ? answer.body.slots : [];
  say(byId('none'), !found ? explain(answer) : slots.length ? '' : 'There are no free times in these two weeks.');
  again.hidden = found;
  earlier.disabled = ahead === 0;
  later.disabled = !found;
  choose(chosen && slots.find((s) => s.starts_at === chosen.starts_at) || null);
  showDays();
}

function showDays() {
  const all = [...new Set(slots.map((s) => dayOf(s.starts_at)))];
  const picked = all.find((d) => chosen && d === dayOf(chosen.starts_at)) || all[0];
  const weekday = new Intl.DateTimeFormat(undefined, {timeZone: 'UTC', weekday: 'short'});
  const date = new Intl.DateTimeFormat(undefined, {timeZone: 'UTC', day: 'numeric', month: 'short'});
  offer(days, 'day', all.map((d) => ({value: d, lines: [onDay(weekday, d), onDay(date, d)], checked: d === picked})));
  showTimes(picked);
}

function showTimes(day) {
  const time = format({timeStyle: 'short'});
  offer(times, 'time', slots.filter((s) => dayOf(s.starts_at) === day).map((s) => ({
    value: s.starts_at, lines: [time.format(new Date(s.starts_at))], checked: chosen !== null && s.starts_at === chosen.starts_at,
  })));
}

// offer fills a group with choices; one without any is not shown.
function offer(group, name, choices) {
  group.hidden = choices.length === 0;
  group.querySelector('div').replaceChildren(...choices.map(({value, lines, checked}) => {
    const label = document.createElement('label');
    const input = document.createElement('input');
    Object.assign(input, {type: 'radio', name, value, checked});
    label.append(input, ...lines.map((line) => Object.assign(document.createElement('span'), {textContent: line + ' '})));
    return label;
  }));
}

function choose(slot) {
  chosen = slot;
  const details = byId('details');
  const first = details.hidden && slot;
  details.hidden = !slot;
  byId('chosen').textContent = slot ? inWords(slot) : '';
  if (first) details.scrollIntoView({block: 'nearest'});
}

offerZones();
zone.addEventListener('change', load);
again.addEventListener('click', load);
earlier.addEventListener('click', () => { ahead = Math.max(0, ahead - span); load(); });
later.addEventListener('click', () => { ahead += span; load(); });
days.addEventListener('change', (event) => { choose(null); showTimes(event.target.value); });
times.addEventListener('change', (event) => {
  say(byId('taken'));
  choose(slots.find((s) => s.starts_at === event.target.value));
});

onSubmit(form, {
  about: () => chosen && {starts_at: chosen.starts_at, time_zone: zone.value},
  done: (booking) => `Your meeting is booked: ${inWords(booking)}.`,
  refused({status}) {
    if (status !== 409) return false;
    say(byId('taken'), 'That time is no longer free. Please choose another.');
    choose(null);
    load().then(() => (times.querySelector('input') || zone).focus());
    return true;
  },
});

load();
