// Finding one's way: the menu shows where the reader is, the reference pages are folded
// until they are wanted, what opens a list of pages has a name, and a result of a search
// has its page's first words.
document.addEventListener("DOMContentLoaded", () => {
  for (const menu of document.querySelectorAll(".bd-sidebar-primary")) {
    foldReference(menu);
    for (const toggle of menu.querySelectorAll("summary:has(> .toctree-toggle)")) {
      const page = toggle.closest("li").querySelector("a").textContent.trim();
      toggle.setAttribute("aria-label", `Pages of: ${page}`);
    }
    const here = menu.querySelector("li.current.active > a");
    if (here) {
      const box = here.getBoundingClientRect(), shown = menu.getBoundingClientRect();
      menu.scrollTop += box.top - shown.top - shown.height / 2;
    }
  }
  const results = document.querySelector("#search-results");
  if (results && location.protocol === "file:") addExcerpts(results);
});

function foldReference(menu) {
  for (const caption of menu.querySelectorAll("p.caption")) {
    const list = caption.nextElementSibling;
    if (caption.textContent.trim() !== "Reference" || !list) continue;
    const fold = document.createElement("details"), head = document.createElement("summary");
    fold.open = list.classList.contains("current");
    fold.className = "folded-part";
    head.append(...caption.childNodes);
    caption.replaceWith(fold);
    fold.append(head, list);
  }
}

function addExcerpts(results) {
  const said = window.SEARCH_WORDS?.excerpts ?? {};
  new MutationObserver(() => {
    for (const item of results.querySelectorAll("li:not(.with-excerpt)")) {
      item.className = "with-excerpt";
      const page = item.querySelector("a")?.getAttribute("href").split(".html")[0];
      if (!said[page]) continue;
      const excerpt = document.createElement("p");
      excerpt.className = "context";
      excerpt.textContent = said[page];
      item.append(excerpt);
    }
  }).observe(results, { childList: true, subtree: true });
}
