// Searches ampIndex (search-index.js): {f: file, n: names, d: description, a: [[id, text]...], w: words}.
// Works from file:// and requests nothing.
(function () {
  'use strict';
  var LIMIT = 60;
  var input = document.getElementById('query');
  var box = document.getElementById('results');
  var chosen = -1;

  // The value of a text for one word: the complete text, a word of it, its beginning, any part.
  function grade(text, word) {
    var t = text.toLowerCase();
    var at = t.indexOf(word);
    if (at < 0) return 0;
    if (t === word || t.replace(/\(\d\)$/, '') === word) return 8;
    var before = at === 0 || !/[a-z0-9]/.test(t[at - 1]);
    var after = at + word.length === t.length || !/[a-z0-9]/.test(t[at + word.length]);
    return before && after ? 4 : before ? 2 : 1;
  }

  // Each word must be somewhere on the page; the places where it is found decide the order.
  function search(query) {
    var words = query.toLowerCase().split(/\s+/).filter(Boolean);
    var found = [];
    if (!words.length) return found;
    ampIndex.forEach(function (page) {
      var total = 0;
      var everywhere = words.every(function (word) {
        var plain = word.replace(/^[-.]+|[-.]+$/g, '') || word;
        var n = grade(page.n, word) * 10 + grade(page.d, word) * 3;
        if (page.w.indexOf(' ' + plain + ' ') >= 0) n += 2;
        else if (page.w.indexOf(plain) >= 0) n += 1;
        total += n;
        return n > 0 || page.a.some(function (a) { return grade(a[1], word); });
      });
      if (!everywhere) return;
      found.push({href: page.f, title: page.n, text: page.d, score: total});
      page.a.forEach(function (a) {
        var best = words.map(function (word) { return grade(a[1], word); });
        if (Math.min.apply(null, best) === 0) return;
        var sum = best.reduce(function (x, y) { return x + y; }, 0);
        found.push({href: page.f + '#' + a[0], title: a[1], text: page.n, score: sum * 6 - a[1].length / 20});
      });
    });
    found.sort(function (a, b) { return b.score - a.score || (a.href < b.href ? -1 : 1); });
    return found.slice(0, LIMIT);
  }

  function show(query) {
    var found = search(query);
    box.textContent = '';
    chosen = -1;
    box.hidden = !query.trim();
    if (box.hidden) return;
    if (!found.length) {
      box.appendChild(document.createElement('p')).textContent = 'Nothing found for \u201c' + query + '\u201d.';
      return;
    }
    var list = box.appendChild(document.createElement('ol'));
    found.forEach(function (f) {
      var link = list.appendChild(document.createElement('li')).appendChild(document.createElement('a'));
      link.href = f.href;
      link.appendChild(document.createElement('b')).textContent = f.title;
      link.appendChild(document.createElement('span')).textContent = f.text;
    });
  }

  function choose(step) {
    var links = box.querySelectorAll('a');
    if (!links.length) return;
    if (links[chosen]) links[chosen].classList.remove('chosen');
    chosen = (chosen + step + links.length) % links.length;
    links[chosen].classList.add('chosen');
    links[chosen].scrollIntoView({block: 'nearest'});
  }

  input.addEventListener('input', function () { show(input.value); });
  input.addEventListener('keydown', function (e) {
    if (e.key === 'ArrowDown') choose(1);
    else if (e.key === 'ArrowUp') choose(-1);
    else if (e.key === 'Escape') { input.value = ''; show(''); }
    else return;
    e.preventDefault();
  });
  document.getElementById('search').addEventListener('submit', function (e) {
    var links = box.querySelectorAll('a');
    e.preventDefault();
    if (links.length) location.href = links[chosen < 0 ? 0 : chosen].href;
  });
  box.addEventListener('click', function (e) {
    if (e.target.closest('a')) box.hidden = true;
  });
  document.addEventListener('keydown', function (e) {
    if (e.key === '/' && document.activeElement !== input) { input.focus(); e.preventDefault(); }
  });

  var query = new URLSearchParams(location.search).get('q');
  if (query) { input.value = query; show(query); }
  // Closed on a narrow screen, where it would push the text down.
  var toc = document.querySelector('.toc details');
  if (toc && window.matchMedia('(max-width: 60rem)').matches) toc.open = false;
})();
