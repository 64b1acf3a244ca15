// Makes every figure of a kind in the page live, once.
function live(kind) {
  document.querySelectorAll(`.d2l-figure[data-kind=${kind}]:not([data-live])`)
    .forEach(start);
}

// How wide the reader's font is, nobody knows: what would leave the drawing is narrowed.
function hold(svg) {
  for (const words of svg.querySelectorAll("text")) {
    const { x, width } = words.getBBox();
    const over = Math.max(-x, x + width - svg.viewBox.baseVal.width);
    if (over <= 0) continue;
    const sides = words.getAttribute("text-anchor") === "middle" ? 2 : 1;
    words.setAttribute("lengthAdjust", "spacingAndGlyphs");
    words.setAttribute("textLength", width - sides * over);
  }
}

// The time of a step while a figure plays, in milliseconds.
const SPEEDS = { "Speed 1×": 800, "Speed 2×": 400, "Speed 4×": 200 };

function start(root) {
  const stored = JSON.parse(root.querySelector(".data").textContent);
  const controls = [...root.querySelectorAll(
    ".controls [data-role]:is(input, select)")];
  const find = (role) => root.querySelector(`[data-role=${role}]`);
  const value = (c) => (c.type === "range" ? Number(c.value) : c.value);
  const clock = find("clock"), svg = root.querySelector("svg");
  const words = ["summary", "moment"].map(find), code = root.querySelector(".code");
  const canNarrow = typeof NARROW !== "undefined";
  const link = `#${root.id}:`;  // before the choice, in an address
  let playing = 0;

  function state(values = {}) {
    const choice = { ...values };
    for (const c of controls) {
      if (c !== clock) choice[c.dataset.role] ??= value(c);
    }
    return chosen(stored, choice, root.id, canNarrow && root.clientWidth < 480);
  }

  // The last step of another choice may be earlier or later. At the end it stays there.
  function wind(last) {
    const now = Number(clock.value), atEnd = now > 0 && now === Number(clock.max);
    clock.max = last;
    clock.value = atEnd ? last : Math.min(now, last);
    return Number(clock.value);
  }

  function show() {
    const d = state(), seen = view(d, clock ? wind(steps(d)) : 0);
    svg.setAttribute("viewBox", seen.box);
    svg.setAttribute("aria-label", seen.summary);
    svg.querySelector(".drawing").innerHTML = seen.drawing;
    hold(svg);
    if (code) code.innerHTML = seen.code;
    for (const p of words) p.textContent = seen[p.dataset.role];
    for (const c of controls) {
      const shown = find(`${c.dataset.role}-value`);
      if (shown) shown.textContent = c.value;
    }
  }

  // What the tallest choice needs is kept free: nothing below the figure moves.
  function reserve() {
    const tallest = {};
    for (const c of controls) if (c.type === "range") tallest[c.dataset.role] = Number(c.max);
    const states = controls.filter((c) => c.options).reduce((choices, select) =>
      choices.flatMap((choice) => [...select.options].map((o) =>
        ({ ...choice, [select.dataset.role]: o.value }))), [tallest]).map(state);
    const longer = (a, b) => (b.length > a.length ? b : a);
    const longest = (texts) => texts.reduce(longer) + " and so on";
    const [whole, now] = words;
    const tall = (d) => { code.innerHTML = codeOf(listing(d, 0)); return code.offsetHeight; };
    root.style.minHeight = "";
    if (code) {
      code.style.minHeight = "";
      code.style.minHeight = `${Math.max(...states.map(tall))}px`;
    }
    whole.textContent = longest(states.map(summary));
    now.textContent = longest(
      states.flatMap((d) => range((clock ? steps(d) : 0) + 1).map((n) => moment(d, n))));
    const high = Math.max(...states.map((d) => height(d) / across(d))) * svg.clientWidth;
    root.style.minHeight = `${Math.ceil(root.offsetHeight - svg.clientHeight + high)}px`;
    show();
  }

  function step(by) {
    clock.value = Number(clock.value) + by;
    show();
  }

  function pause() {
    clearInterval(playing);
    playing = 0;
    find("play").textContent = "Play";
  }

  function play() {
    if (playing) return pause();
    if (clock.value === clock.max) clock.value = 0;
    playing = setInterval(() => {
      step(1);
      if (clock.value === clock.max) pause();
    }, SPEEDS[find("speed").textContent]);
    find("play").textContent = "Pause";
    step(1);
  }

  function hasten() {
    const names = Object.keys(SPEEDS), button = find("speed");
    button.textContent = names[(names.indexOf(button.textContent) + 1) % names.length];
    if (playing) pause(), play();
  }

  // On a page of the book, the address says what was chosen. It can be sent to somebody.
  function share() {
    if (!document.querySelector("article.bd-article")) return;
    const chosen = controls.map((c) => `${c.dataset.role}=${encodeURIComponent(c.value)}`);
    history.replaceState(null, "", link + chosen.join("&"));
  }

  function recall() {
    if (!location.hash.startsWith(link)) return;
    const given = new URLSearchParams(location.hash.slice(link.length));
    for (const c of controls) {
      if (given.has(c.dataset.role)) c.value = given.get(c.dataset.role);
    }
    if (clock && given.has("clock")) clock.max = clock.value = steps(state());
    if (clock && given.has("clock")) clock.value = given.get("clock");
    root.scrollIntoView();
  }

  function reset() {
    if (playing) pause();
    for (const c of controls) {
      if (c.options) c.selectedIndex = [...c.options].findIndex((o) => o.defaultSelected);
      else c.value = c === clock ? 0 : c.defaultValue;
      if (c !== clock) c.dispatchEvent(new Event("input", { bubbles: true }));
    }
    show();
  }

  root.dataset.live = "yes";
  root.classList.toggle("fits", canNarrow);
  root.querySelector(".controls").hidden = false;
  if (typeof pair === "function") pair(root, stored.data);
  root.addEventListener("input", show);
  root.addEventListener("change", share);
  find("reset").addEventListener("click", () => { reset(); share(); });
  if (clock) {
    clock.value = 0;
    find("back").addEventListener("click", () => { step(-1); share(); });
    find("on").addEventListener("click", () => { step(1); share(); });
    find("play").addEventListener("click", play);
    find("speed").addEventListener("click", hasten);
    // A drawing that moves by itself is not for everybody.
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    find("play").hidden = find("speed").hidden = still;
  }
  let wide = 0;
  new ResizeObserver(() => {
    if (svg.clientWidth !== wide) wide = svg.clientWidth, reserve();
  }).observe(root);
  recall();
  show();
}
