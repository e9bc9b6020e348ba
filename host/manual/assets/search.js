// The search of the manual. It needs no server: the index is a script, too,
// which is fetched when somebody begins to search.
"use strict";

const manual_search = (() => {
  const most = 30; // results
  const plain = (text) => text.toLowerCase().replace(/[_\s.`]+/g, "");

  // How well a word of the query fits a title, from 0, not at all, to 100.
  function fits(word, title) {
    const last = title.slice(title.lastIndexOf(".") + 1);
    if (title === word) return 100;
    if (last === word) return 96;
    if (plain(title) === plain(word) || plain(last) === plain(word)) return 90;
    if (last.startsWith(word)) return 80 - Math.min(last.length - word.length, 15);
    const words = title.split(/[^\p{L}\p{N}]+/u);
    if (words.includes(word)) return 70;
    if (words.some((part) => part.startsWith(word))) return 55;
    if (title.includes(word)) return 40;
    if (is_like(word, last)) return 30;
    return 0;
  }

  // Whether one edit, or a swap of neighbours, makes one of the other.
  function is_like(a, b) {
    if (a.length < 4 || Math.abs(a.length - b.length) > 1) return false;
    let i = 0;
    while (i < a.length && a[i] === b[i]) ++i;
    const rest = (text, from) => text.slice(from);
    return (
      rest(a, i + 1) === rest(b, i + 1) || rest(a, i + 1) === rest(b, i) || rest(a, i) === rest(b, i + 1) ||
      (a[i] === b[i + 1] && a[i + 1] === b[i] && rest(a, i + 2) === rest(b, i + 2))
    );
  }

  // Among equals, what one looks for more often comes first.
  const weights = { function: 8, type: 8, constant: 8, axis: 8, module: 7, page: 5, section: 4, message: 2, elsewhere: 1 };

  // The entries of the index, [kind, title, place, text], in which each word of
  // the query is, best first.
  function search(index, query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const whole = words.join(" ");
    if (!whole) return [];
    const found = [];
    for (const entry of index) {
      const title = entry[1].toLowerCase();
      let score = words.length > 1 ? 2 * fits(whole, title) : 0;
      let text = null;
      for (const word of words) {
        let here = fits(word, title);
        if (here === 0 && word.length > 1) {
          text ??= entry[3].toLowerCase();
          const at = text.indexOf(word);
          if (at >= 0) here = /[\p{L}\p{N}_]/u.test(text[at - 1] ?? " ") ? 5 : 15;
        }
        if (here === 0) {
          score = 0;
          break;
        }
        score += here;
      }
      if (score > 0) found.push([score + weights[entry[0]], entry]);
    }
    found.sort((a, b) => b[0] - a[0] || a[1][1].length - b[1][1].length || (a[1][1] < b[1][1] ? -1 : 1));
    return found.slice(0, most).map((pair) => pair[1]);
  }

  // The part of a text around the first word of the query that it has.
  function excerpt(text, query) {
    const lower = text.toLowerCase();
    const places = query.toLowerCase().split(/\s+/).filter(Boolean).map((word) => lower.indexOf(word)).filter((at) => at >= 0);
    const at = places.length ? Math.min(...places) : 0;
    const begin = at < 60 ? 0 : lower.indexOf(" ", at - 50) + 1;
    const part = text.slice(begin, begin + 140);
    return (begin > 0 ? "… " : "") + part + (begin + 140 < text.length ? " …" : "");
  }

  return { search, excerpt };
})();

if (typeof module !== "undefined") module.exports = manual_search;

if (typeof document !== "undefined") {
  const root = document.body.dataset.root;
  const box = document.querySelector(".search");
  const input = box.querySelector("input");
  const list = box.querySelector("ul");
  let chosen = -1;
  box.hidden = false;

  const load = () => {
    if (document.getElementById("manual-index")) return;
    const script = document.createElement("script");
    script.id = "manual-index";
    script.src = root + "search-index.js";
    script.onload = show;
    document.head.append(script);
  };

  const element = (tag, name, text) => {
    const out = document.createElement(tag);
    if (name) out.className = name;
    if (text) out.textContent = text;
    return out;
  };

  function show() {
    list.replaceChildren();
    chosen = -1;
    const query = input.value.trim();
    const found = query && typeof manual_index !== "undefined" ? manual_search.search(manual_index, query) : [];
    for (const [kind, title, place, text] of found) {
      const link = element("a");
      link.href = root + place;
      const words = element("span", "title", title);
      link.append(words, element("span", "kind", kind === "elsewhere" ? "in other languages" : kind));
      if (text) link.append(element("span", "text", manual_search.excerpt(text, query)));
      const item = element("li");
      item.setAttribute("role", "option");
      item.append(link);
      list.append(item);
    }
    if (query && found.length === 0 && typeof manual_index !== "undefined") list.append(element("li", "nothing", "nothing found"));
    list.hidden = !query || list.children.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
  }

  function choose(next) {
    const links = [...list.querySelectorAll("a")];
    if (links.length === 0) return;
    if (chosen >= 0) links[chosen].parentElement.removeAttribute("aria-selected");
    chosen = (next + links.length) % links.length;
    links[chosen].parentElement.setAttribute("aria-selected", "true");
    links[chosen].scrollIntoView({ block: "nearest" });
  }

  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
  };

  input.addEventListener("focus", load);
  input.addEventListener("input", () => {
    load();
    show();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen < 0 ? -1 : chosen - 1);
    else if (event.key === "Enter") list.querySelectorAll("a")[Math.max(chosen, 0)]?.click();
    else if (event.key === "Escape") {
      input.value = "";
      close();
      input.blur();
    } else return;
    if (event.key !== "Escape") event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(input|textarea|select)$/i.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey;
    if (event.key === "/" && !typing) {
      event.preventDefault();
      input.focus();
      input.select();
    }
  });
  document.addEventListener("click", (event) => {
    if (!box.contains(event.target) || event.target.closest("#manual-results a")) close();
    if (event.target.closest("nav a")) document.getElementById("manual-menu").checked = false;
  });
  document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest" });
  // index.html?q=reshape searches at once.
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) {
    input.value = asked;
    load();
  }
}
