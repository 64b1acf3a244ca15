// What all figures draw with, and how one is asked for what it shows: no page is needed.
//
// KIND.js has these functions. The drawing is 700 wide; its numbers are whole.
//   state(data, choice)   what there is to draw, an object; `choice` maps the roles of
//                         the controls to their values, without the clock's
//   steps(d)              the clock's last step; 0 without a clock
//   height(d)             of the drawing
//   drawing(d, now)       the inside of the SVG after `now` steps of the clock
//   summary(d)            all of it in words and numbers
//   moment(d, now)        in words, what happens in step `now`
//   acts(d, now)          names of marks, where the state has a listing `code`: lines
//                         that step `now` runs
// A figure that has a const NARROW can also be drawn so many wide, if `d.narrow`. With a
// const SMOOTH, `drawing` takes moments between two steps as well; with a const BEGINS,
// the figure plays once as soon as it is seen.
let colours, inks; // of device i, from the page's data

// The state of a choice, with `name`, the figure's id, which the hatches need.
function chosen(stored, choice, name, narrow = false) {
  ({ colours, inks } = stored);
  return { ...state(stored.data, choice), name, narrow };
}

function across(d) {
  return d.narrow ? NARROW : 700;
}

// The lines of the listing, and of each whether step `now` runs it.
function listing(d, now) {
  const on = d.code ? acts(d, now).flatMap((name) => d.code.marks[name]) : [];
  return (d.code?.lines ?? []).map((line, n) => [line, on.includes(n)]);
}

function codeOf(lines) {
  const escaped = (line) => line.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return lines.map(([line, on]) => `<code${on ? ' class="now" aria-current="step"' : ""}>` +
    `${escaped(line)}</code>`).join("");
}

// All that a page shows of a state. The last step of another choice may be earlier.
function view(d, clock = steps(d)) {
  const at = Math.min(clock, steps(d)), now = Math.floor(at);
  const drawn = drawing(d, typeof SMOOTH === "undefined" ? now : at);
  return { now, last: steps(d), box: `0 0 ${across(d)} ${height(d)}`, summary: summary(d),
    moment: moment(d, now), drawing: drawn, code: codeOf(listing(d, now)) };
}

function range(n) {
  return Array.from({ length: n }, (_, i) => i);
}

// How a shape looks at this moment: `state` is "todo", "now", "done" or "".
function text(x, y, words, anchor = "middle", size = 11, state = "") {
  return `<text class="${state}" x="${x}" y="${y}" text-anchor="${anchor}" ` +
    `font-size="${size}">${words}</text>`;
}

// A faint rectangle: where work could be, and none is.
function ground(x, y, width, height) {
  return `<rect class="ground" x="${x}" y="${y}" width="${width}" height="${height}" ` +
    'rx="2"/>';
}

// A rectangle of a device's colour.
function swatch(device, [x, y, width, height]) {
  return `<rect class="swatch" x="${x}" y="${y}" width="${width}" height="${height}" ` +
    `fill="${colours[device % colours.length]}"/>`;
}

// Work of a device: a box of its colour, with the hatch of its kind and a label. The
// label has a rim of the box's colour, so that no hatch runs into it. Pointing at it
// says what it is, where `d.lane` names what works: a device, or a stage.
function work(d, device, kind, [x, y, width, height], label = "", state = "") {
  const at = `x="${x}" y="${y}" width="${width}" height="${height}" rx="2"`;
  const fill = colours[device % colours.length], ink = inks[device % inks.length];
  const hatched = kind !== "forward";
  const hatch = hatched ? `<rect ${at} fill="url(#${d.name}-${kind})"/>` : "";
  const wide = Math.min(6, 2 + Math.floor(width / 9));
  const rim = hatched
    ? ` stroke="${fill}" stroke-width="${wide}" paint-order="stroke"` : "";
  const meaning = d.lane && `<title>${d.lane} ${device}: ${kind} ${label}</title>`;
  return `<g class="work ${state}">${meaning ?? ""}<rect ${at} fill="${fill}"/>${hatch}` +
    `<text x="${x + Math.floor(width / 2)}" y="${y + Math.floor(height / 2) + 4}" ` +
    `text-anchor="middle" font-size="${width > 15 ? 11 : d.narrow ? 10 : 9}" ` +
    `fill="${ink}"${rim}>${label}</text></g>`;
}

// A message: a line from the point `start` to the point `end`, with a tip.
function arrow(d, start, end, state = "") {
  return `<path class="arrow ${state}" d="M${start[0]} ${start[1]}L${end[0]} ${end[1]}" ` +
    `marker-end="url(#${d.name}-tip)"/>`;
}

// A whole number with its thousands apart: 516272 -> 516,272.
function number(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

// `part` / `whole` of whole numbers, with `digits` decimals, halves rounded up.
function ratio(part, whole, digits = 0) {
  const one = 10 ** digits, scaled = Math.floor((2 * part * one + whole) / (2 * whole));
  if (!digits) return String(scaled);
  return `${Math.floor(scaled / one)}.${String(scaled % one).padStart(digits, "0")}`;
}
