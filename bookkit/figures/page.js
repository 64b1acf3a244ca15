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

// From the first step to the last it takes 5 to 8 seconds, however many there are.
const SPEEDS = { "Speed 1×": 1, "Speed 2×": 2, "Speed 4×": 4 };
const wholeMs = (last) => Math.min(8000, Math.max(5000, 800 * last));

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
  let playing = 0, at = 0; // the clock, between two of its steps while it plays

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
    const d = state(), now = clock ? wind(steps(d)) : 0;
    if (Math.floor(at) !== now) at = now; // a reader moved it
    const seen = view(d, at);
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
    settle(d);
  }

  // While a figure plays, nothing below it moves: its sentence keeps the room that the
  // longest one needs.
  let settled = "";
  function settle(d) {
    const choice = JSON.stringify([svg.clientWidth, ...controls.map((c) => c === clock || c.value)]);
    const now = find("moment"), said = now.textContent;
    if (!playing) settled = now.style.minHeight = "";
    if (!playing || choice === settled) return;
    settled = choice;
    now.style.minHeight = "";
    now.textContent = range(steps(d) + 1).map((n) => moment(d, n))
      .reduce((a, b) => (b.length > a.length ? b : a)) + " and so on";
    now.style.minHeight = `${now.offsetHeight}px`;
    now.textContent = said;
  }

  function step(by) {
    clock.value = Number(clock.value) + by;
    show();
  }

  function pause() {
    cancelAnimationFrame(playing);
    playing = 0;
    find("play").textContent = "Play";
    show();
  }

  function play() {
    if (playing) return pause();
    if (at >= Number(clock.max)) at = Number(clock.value = 0);
    let before = null;
    const frame = (time) => {
      const last = Number(clock.max), speed = SPEEDS[find("speed").textContent];
      const passed = (speed * (time - (before ?? time)) * last) / wholeMs(last);
      before = time;
      at = Math.min(last, at + passed);
      clock.value = Math.floor(at);
      show();
      if (at === last) pause();
      else playing = requestAnimationFrame(frame);
    };
    find("play").textContent = "Pause";
    playing = requestAnimationFrame(frame);
  }

  function hasten() {
    const names = Object.keys(SPEEDS), button = find("speed");
    button.textContent = names[(names.indexOf(button.textContent) + 1) % names.length];
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
    const told = controls.filter((c) => c !== clock && given.has(c.dataset.role));
    put(told.map((c) => [c, given.get(c.dataset.role)]));
    if (clock && given.has("clock")) clock.max = clock.value = steps(state());
    if (clock && given.has("clock")) clock.value = given.get("clock");
    root.scrollIntoView();
  }

  // A number may move its slider, and a choice several numbers; a number typed ends a
  // choice, so choices are made once more at the end.
  function put(values) {
    for (const [c, value] of values) {
      c.value = value;
      c.dispatchEvent(new Event("input", { bubbles: true }));
    }
    for (const [c, value] of values) if (c.options) c.value = value;
  }

  function whenSeen(begin) {
    const seen = new IntersectionObserver(([entry]) => {
      if (entry.isIntersecting) seen.disconnect(), begin();
    }, { threshold: 0.6 });
    seen.observe(svg);
  }

  function reset() {
    if (playing) pause();
    at = 0;
    if (clock) clock.value = 0;
    const begin = (c) => (c.options
      ? [...c.options].find((o) => o.defaultSelected).value : c.defaultValue);
    put(controls.filter((c) => c !== clock).map((c) => [c, begin(c)]));
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
    clock.addEventListener("input", () => {
      if (playing) pause();
      at = Number(clock.value);
    });
    find("back").addEventListener("click", () => { step(-1); share(); });
    find("on").addEventListener("click", () => { step(1); share(); });
    find("play").addEventListener("click", play);
    find("speed").addEventListener("click", hasten);
    // A drawing that moves by itself is not for everybody.
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    find("play").hidden = find("speed").hidden = still;
    if (!still && typeof BEGINS !== "undefined") whenSeen(() => playing || at || play());
  }
  let wide = 0;
  new ResizeObserver(() => {
    if (svg.clientWidth !== wide) wide = svg.clientWidth, show();
  }).observe(root);
  recall();
  show();
}
