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

function start(root) {
  const stored = JSON.parse(root.querySelector(".data").textContent);
  const controls = root.querySelectorAll(".controls [data-role]:is(input, select)");
  const find = (role) => root.querySelector(`[data-role=${role}]`);
  const value = (c) => (c.type === "range" ? Number(c.value) : c.value);
  const clock = find("clock");

  // The last step of another choice may be earlier or later. At the end it stays there.
  function wind(last) {
    const now = Number(clock.value), atEnd = now === Number(clock.max);
    clock.max = last;
    clock.value = atEnd ? last : Math.min(now, last);
    return Number(clock.value);
  }

  function show() {
    const choice = {};
    for (const c of controls) if (c !== clock) choice[c.dataset.role] = value(c);
    const d = chosen(stored, choice, root.id), svg = root.querySelector("svg");
    const seen = view(d, clock ? wind(steps(d)) : 0);
    svg.setAttribute("viewBox", seen.box);
    svg.setAttribute("aria-label", seen.summary);
    svg.querySelector(".drawing").innerHTML = seen.drawing;
    hold(svg);
    find("summary").textContent = seen.summary;
    find("moment").textContent = seen.moment;
    for (const c of controls) {
      const shown = find(`${c.dataset.role}-value`);
      if (shown) shown.textContent = c.value;
    }
  }

  function step(by) {
    clock.value = Number(clock.value) + by;
    show();
  }

  root.dataset.live = "yes";
  root.querySelector(".controls").hidden = false;
  if (typeof pair === "function") pair(root, stored.data);
  root.addEventListener("input", show);
  if (clock) {
    find("back").addEventListener("click", () => step(-1));
    find("on").addEventListener("click", () => step(1));
  }
  show();
}
