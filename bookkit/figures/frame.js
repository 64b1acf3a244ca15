// What all figures share. shapes.py has the twins of the functions down to ratio().
let colours, inks; // of device i, from the page's data

function text(x, y, words, anchor = "middle", size = 11, state = "") {
  return `<text class="${state}" x="${x}" y="${y}" text-anchor="${anchor}" ` +
    `font-size="${size}">${words}</text>`;
}

function ground(x, y, width, height) {
  return `<rect class="ground" x="${x}" y="${y}" width="${width}" height="${height}" ` +
    'rx="2"/>';
}

function swatch(device, [x, y, width, height]) {
  return `<rect class="swatch" x="${x}" y="${y}" width="${width}" height="${height}" ` +
    `fill="${colours[device % colours.length]}"/>`;
}

function work(d, device, kind, [x, y, width, height], label = "", state = "") {
  const at = `x="${x}" y="${y}" width="${width}" height="${height}" rx="2"`;
  const fill = colours[device % colours.length], ink = inks[device % inks.length];
  const hatched = kind !== "forward";
  const hatch = hatched ? `<rect ${at} fill="url(#${d.name}-${kind})"/>` : "";
  const wide = Math.min(6, 2 + Math.floor(width / 9));
  const rim = hatched
    ? ` stroke="${fill}" stroke-width="${wide}" paint-order="stroke"` : "";
  return `<g class="work ${state}"><rect ${at} fill="${fill}"/>${hatch}` +
    `<text x="${x + Math.floor(width / 2)}" y="${y + Math.floor(height / 2) + 4}" ` +
    `text-anchor="middle" font-size="${width > 15 ? 11 : 8}" ` +
    `fill="${ink}"${rim}>${label}</text></g>`;
}

function arrow(d, start, end, state = "") {
  return `<path class="arrow ${state}" d="M${start[0]} ${start[1]}L${end[0]} ${end[1]}" ` +
    `marker-end="url(#${d.name}-tip)"/>`;
}

function number(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

function ratio(part, whole, digits = 0) {
  const one = 10 ** digits, scaled = Math.floor((2 * part * one + whole) / (2 * whole));
  if (!digits) return String(scaled);
  return `${Math.floor(scaled / one)}.${String(scaled % one).padStart(digits, "0")}`;
}

// Makes every figure of this kind in the page live, once.
function figure(kind, twin) {
  document.querySelectorAll(`.d2l-figure[data-kind=${kind}]:not([data-live])`)
    .forEach((root) => start(root, twin));
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

function start(root, twin) {
  const stored = JSON.parse(root.querySelector(".data").textContent);
  const controls = root.querySelectorAll(".controls [data-role]:is(input, select)");
  const find = (role) => root.querySelector(`[data-role=${role}]`);
  const value = (c) => (c.type === "range" ? Number(c.value) : c.value);
  const clock = find("clock");
  ({ colours, inks } = stored);

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
    const d = { ...twin.state(stored.data, choice), name: root.id };
    const now = clock ? wind(twin.steps(d)) : 0, svg = root.querySelector("svg");
    svg.setAttribute("viewBox", `0 0 700 ${twin.height(d)}`);
    svg.setAttribute("aria-label", twin.summary(d));
    svg.querySelector(".drawing").innerHTML = twin.drawing(d, now);
    hold(svg);
    find("summary").textContent = twin.summary(d);
    find("moment").textContent = twin.moment(d, now);
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
  root.addEventListener("input", show);
  if (clock) {
    find("back").addEventListener("click", () => step(-1));
    find("on").addEventListener("click", () => step(1));
  }
  show();
}

