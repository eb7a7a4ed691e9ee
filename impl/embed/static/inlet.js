// Inlet's tracker: gives this browser a visitor id, where that is allowed.
//
//   <script async src="https://HOST/t/inlet.js" data-site="site_…"></script>
//
// data-consent="required" waits for inlet.consent(true), and
// data-cookie-domain="acme.example" has all hosts of a domain share the id.
// A page that cannot wait for the script leaves its calls in a queue:
//
//   window.inlet = window.inlet || {queue: [], getVisitorId: () => null};
//   inlet.queue.push((inlet) => inlet.identify({token}));
(() => {
  'use strict';
  const script = document.currentScript || document.querySelector('script[data-site]');
  const {site, consent, cookieDomain} = script ? script.dataset : {};
  const before = window.inlet;
  if (before && before.site) return;
  if (!site) {
    window.inlet = before || {queue: [], getVisitorId: () => null, identify: async () => {}, consent() {}};
    return;
  }

  const objects = navigator.doNotTrack === '1' || window.doNotTrack === '1' || navigator.globalPrivacyControl;
  let link = takeLink();

  // Cookies throw where a page is sandboxed.
  function read(name) {
    try {
      const found = document.cookie.match('(?:^|; )' + name + '=([^;]*)');
      return found && found[1];
    } catch (e) {
      return null;
    }
  }

  function put(name, value, domain) {
    try {
      document.cookie = name + '=' + value + '; path=/; SameSite=Lax; max-age=' + (value ? 31536000 : 0) +
        (domain ? '; domain=' + domain : '') + (location.protocol === 'https:' ? '; Secure' : '');
    } catch (e) {}
  }

  // Without a value the cookie goes. One of this host alone goes too: it may be
  // from before there was a domain, and would be read first.
  function write(name, value) {
    if (cookieDomain) put(name, '');
    put(name, value, cookieDomain);
  }

  function newId() {
    if (crypto.randomUUID) return crypto.randomUUID(); // which plain http has not
    return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => (b + 256).toString(16).slice(1)).join('');
  }

  function getVisitorId() {
    const decided = read('_svcconsent');
    let id = read('_svcvid');
    if (objects || decided === 'refused' || (consent !== undefined && decided !== 'granted')) {
      // A server reads the cookie too, and must not find what a page may not.
      if (id !== null) write('_svcvid', '');
      return null;
    }
    if (!id || !/^[A-Za-z0-9-]{1,64}$/.test(id)) id = newId();
    write('_svcvid', id);
    return read('_svcvid') === id ? id : null;
  }

  // Pages have to work without Inlet, so identify never rejects.
  async function identify(who) {
    const body = {site, visitor_id: getVisitorId()};
    if (!body.visitor_id) return;
    try {
      for (const key of ['token', 'link', 'email', 'first_name', 'last_name', 'company']) {
        if (who && who[key]) body[key] = String(who[key]);
      }
      await fetch(new URL(script.src).origin + '/api/v1/visitors/identify', {
        method: 'POST',
        headers: {'Content-Type': 'application/json'},
        body: JSON.stringify(body),
        credentials: 'omit',
        keepalive: true,
      });
    } catch (e) {}
  }

  // The link of an e-mail leaves the address bar at once, lest it is passed on.
  function takeLink() {
    const url = new URL(location.href);
    const taken = url.searchParams.get('_svclink');
    if (taken === null) return null;
    // searchParams.delete would spell the other parameters anew.
    url.search = url.search.slice(1).split('&').filter((p) => p.split('=')[0] !== '_svclink').join('&');
    try {
      history.replaceState(history.state, '', url);
    } catch (e) {}
    return taken;
  }

  function settle() {
    if (getVisitorId() && link) {
      identify({link});
      link = null;
    }
  }

  const inlet = window.inlet = {
    site,
    getVisitorId,
    identify,
    consent(given) {
      write('_svcconsent', given ? 'granted' : 'refused');
      settle();
    },
    queue: {
      push(call) {
        try {
          call(inlet);
        } catch (e) {
          console.error(e);
        }
      },
    },
  };
  // What was queued goes first: it may be a refusal.
  if (before && Array.isArray(before.queue)) before.queue.forEach(inlet.queue.push);
  settle();
})();
