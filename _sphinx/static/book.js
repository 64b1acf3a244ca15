// Finding one's way: cells of a table know their headings, terms say what they mean, the
// menu shows where the reader is, the reference pages are folded until they are wanted,
// what opens a list of pages has a name, a result of a search has its page's first words,
// and a moment of a figure that plays has a link.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("main table.table").forEach(labelCells);
  defineTerms();
  document.querySelectorAll("article .d2l-figure:has([data-role=play])").forEach(linkMoments);
  for (const said of document.querySelectorAll(".cell_output pre")) {
    if (/: no answer yet\./.test(said.textContent)) said.closest(".cell").classList.add("unanswered");
  }
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

// On a phone a row becomes a card, in which each cell needs the heading of its column.
function labelCells(table) {
  // An empty heading is a td.
  const heads = [...table.querySelectorAll("thead tr:last-child > *")];
  for (const row of table.querySelectorAll("tbody tr")) {
    [...row.cells].forEach((cell, i) => {
      cell.dataset.label = heads[i]?.textContent.trim() ?? "";
    });
  }
}

// What a term means, in a card beside its link. The first touch shows it, the second
// follows the link.
function defineTerms() {
  const card = document.createElement("div");
  card.className = "term-card";
  card.setAttribute("role", "tooltip");
  card.id = "term-card";
  card.hidden = true;
  document.body.append(card);
  let shown = null;
  const hide = () => { card.hidden = true; shown = null; };
  for (const link of document.querySelectorAll("a:has(> .glossary-term)[title]")) {
    const said = link.title;
    link.removeAttribute("title");
    link.setAttribute("aria-describedby", card.id);
    const show = () => {
      const box = link.getBoundingClientRect();
      card.textContent = said;
      card.hidden = false;
      shown = link;
      const left = Math.min(box.left, innerWidth - card.offsetWidth - 8);
      card.style.left = `${Math.max(8, left)}px`;
      card.style.top = `${box.bottom + scrollY + 6}px`;
    };
    link.addEventListener("pointerenter", (e) => e.pointerType === "mouse" && show());
    link.addEventListener("pointerleave", (e) => e.pointerType === "mouse" && hide());
    link.addEventListener("focus", show);
    link.addEventListener("blur", hide);
    let touched = false;
    link.addEventListener("pointerdown", (e) => {
      touched = e.pointerType === "touch" && shown !== link;
    });
    link.addEventListener("click", (e) => touched && (e.preventDefault(), show()));
  }
  document.addEventListener("keydown", (e) => e.key === "Escape" && hide());
}

// A button that copies a link to what a figure shows now, which `page.js` of the figures
// understands as the page opens.
function linkMoments(figure) {
  const copy = document.createElement("button"), play = figure.querySelector("[data-role=play]");
  copy.type = "button";
  copy.dataset.role = "link";
  copy.title = "Copy a link to this moment of the figure";
  copy.setAttribute("aria-live", "polite");
  const say = (words) => { copy.textContent = words; };
  say("Copy link");
  copy.addEventListener("click", async () => {
    if (play.textContent === "Pause") play.click();
    const chosen = [...figure.querySelectorAll(".controls [data-role]:is(input, select)")]
      .map((c) => `${c.dataset.role}=${encodeURIComponent(c.value)}`);
    history.replaceState(null, "", `#${figure.id}:${chosen.join("&")}`);
    say("See the address");
    try {
      await navigator.clipboard.writeText(location.href);
      say("Copied");
    } catch { /* not allowed here */ }
    setTimeout(say, 3000, "Copy link");
  });
  figure.querySelector(".controls").append(copy);
  addEventListener("hashchange", () => location.hash.startsWith(`#${figure.id}:`) && location.reload());
}

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
