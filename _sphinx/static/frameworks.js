// Tabs of the frameworks. One choice is for all sets of a page, and for the pages after
// it, in the storage that the browser allows: for the tab, and for longer. A browser may
// keep the one apart for each file, or the other. `?framework=torch` chooses, too.
// Without this script, and without storage, everything is still there.
(() => {
  const KEY = "framework", NAMES = ["mxnet", "torch", "jax"];
  const places = ["sessionStorage", "localStorage"];

  function remembered() {
    const asked = new URLSearchParams(location.search).get(KEY);
    if (NAMES.includes(asked)) { remember(asked); return asked; }
    for (const place of places) {
      try {
        const name = window[place].getItem(KEY);
        if (NAMES.includes(name)) return name;
      } catch { /* refused */ }
    }
    return NAMES[0];
  }

  function remember(name) {
    for (const place of places) {
      try { window[place].setItem(KEY, name); } catch { /* refused */ }
    }
  }

  // Show `name` in all sets; `anchor` stays where it is on the screen.
  function show(name, anchor) {
    const before = anchor?.getBoundingClientRect().top;
    for (const tab of document.querySelectorAll(".framework-tab")) {
      const is = tab.dataset.framework === name;
      tab.setAttribute("aria-selected", is);
      tab.tabIndex = is ? 0 : -1;
      const panel = document.getElementById(tab.getAttribute("aria-controls"));
      if (is) panel.removeAttribute("hidden");
      else panel.setAttribute("hidden", "until-found");
    }
    if (anchor) scrollBy({ top: anchor.getBoundingClientRect().top - before, behavior: "instant" });
  }

  function choose(tab) {
    remember(tab.dataset.framework);
    show(tab.dataset.framework, tab.parentElement);
    tab.focus({ preventScroll: true });
  }

  function build(set, number) {
    const list = document.createElement("div");
    list.className = "framework-tabs";
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", "Framework");
    const tabs = [...set.querySelectorAll(":scope > .framework")].map((panel) => {
      const name = NAMES.find((n) => panel.classList.contains(`framework-${n}`));
      const heading = panel.querySelector(".framework-name");
      const tab = document.createElement("button");
      tab.type = "button";
      tab.className = "framework-tab";
      tab.dataset.framework = name;
      tab.id = `framework-${number}-${name}`;
      tab.textContent = heading.textContent;
      tab.setAttribute("role", "tab");
      panel.id = `${tab.id}-panel`;
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", tab.id);
      tab.setAttribute("aria-controls", panel.id);
      tab.addEventListener("click", () => choose(tab));
      panel.addEventListener("beforematch", () => show(name));
      return tab;
    });
    list.append(...tabs);
    list.addEventListener("keydown", (event) => {
      const at = tabs.indexOf(document.activeElement), last = tabs.length - 1;
      const to = { ArrowRight: at < last ? at + 1 : 0, ArrowLeft: at > 0 ? at - 1 : last,
        Home: 0, End: last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      choose(tabs[to]);
    });
    set.prepend(list);
    set.classList.add("has-tabs");
  }

  function start() {
    const sets = document.querySelectorAll(".frameworks");
    if (!sets.length) return;
    sets.forEach(build);
    show(remembered());
    document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  }

  // A word that was looked for, and stands only in a tab that is not shown, opens it.
  function found() {
    const marks = [...document.querySelectorAll(".highlighted")];
    const panel = marks[0]?.closest(".framework");
    if (panel && marks.every((mark) => mark.closest(".framework[hidden]"))) {
      show(NAMES.find((name) => panel.classList.contains(`framework-${name}`)));
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
  addEventListener("load", found);
})();
