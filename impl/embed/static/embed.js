// Puts the page of a form where this script's tag stands, lets it grow with its
// content, and tells it which visitor fills it in and where.
(() => {
  'use strict';
  const script = document.currentScript;
  const page = new URL('page', script.src);
  const frame = document.createElement('iframe');
  frame.src = page.href;
  frame.title = 'Form';
  frame.style.cssText = 'display: block; width: 100%; height: 24rem; border: 0';

  addEventListener('message', (event) => {
    const {source, origin, data} = event;
    if (source !== frame.contentWindow || origin !== page.origin || !data) return;
    if (data.inlet === 'size' && data.height > 0) {
      frame.style.height = Number(data.height) + 'px';
      frame.title = String(data.title);
    }
    if (data.inlet === 'visitor') {
      const tracker = window.inlet;
      const id = tracker && tracker.getVisitorId ? tracker.getVisitorId() : null;
      source.postMessage({inlet: 'visitor', visitor_id: id, page_url: location.href}, page.origin);
    }
  });
  script.after(frame);
})();
