// Fetches the page again every few seconds and puts its contents in the place of the old ones.
// It rests while somebody selects text or is at something within the contents, and can be turned off.
'use strict';

(() => {
  const seconds = 5;
  const box = document.createElement('input');
  box.type = 'checkbox';
  box.checked = true;
  const label = document.createElement('label');
  label.append(box, ` Refresh every ${seconds} s`);
  document.querySelector('nav').append(label);

  const busy = () => {
    const main = document.getElementById('main');
    return !box.checked || document.hidden || !getSelection().isCollapsed ||
      (main !== document.activeElement && main.contains(document.activeElement));
  };

  const refresh = async () => {
    try {
      if (!busy()) {
        const answer = await fetch(location.href, { cache: 'no-store', signal: AbortSignal.timeout(30000) });
        const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
        const main = page.getElementById('main');
        if (main && !busy()) {
          const scrolled = [...document.querySelectorAll('.scroll')].map((each) => each.scrollLeft);
          document.getElementById('main').replaceChildren(...main.childNodes);
          document.querySelectorAll('.scroll').forEach((each, index) => { each.scrollLeft = scrolled[index] || 0; });
          document.getElementById('as-of').replaceWith(page.getElementById('as-of'));
          document.title = page.title;
        }
      }
    } catch (error) {
      // The API is away for a moment; what is shown tells of when it is.
    }
    setTimeout(refresh, seconds * 1000);
  };
  setTimeout(refresh, seconds * 1000);
})();
