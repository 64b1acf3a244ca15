// Eight devices as a mesh, seen from any side. The axis tensor runs to the right, data
// down, pipeline away from the reader, all turned a little, so that no device hides
// another; a step of the clock turns it by 30 degrees more. Lit: the chosen device and
// its partners along each axis.
const TURNS = [1000, 866, 500, 0, -500, -866, -1000, -866, -500, 0, 500, 866]; // cosines
const NARROW = 350, WORDS = ["stage", "replica", "share"];
const STYLES = ["1.5px", "2px;stroke-dasharray:6 4", "5px"];

function state(data, choice) {
  return { axes: data.axes, sizes: data.sizes[choice.mesh], mesh: choice.mesh,
    sent: data.sent[choice.mesh], device: choice.device };
}

function steps(d) {
  return TURNS.length - 1;
}

// How far devices stand apart along each axis.
function apart(d) {
  const aside = (size) => d.narrow ? (size > 4 ? 42 : size > 2 ? 56 : 100) : size > 4 ? 72 : 124;
  return d.sizes.map((size, axis) =>
    axis === 1 ? [0, 84, 84, 0, 56, 0, 0, 0, 36][size] : aside(size));
}

// Half of what the mesh takes around its middle, seen from above.
function reach(d) {
  const [z, , x] = apart(d).map((gap, axis) => (gap * (d.sizes[axis] - 1)) / 2);
  return Math.ceil(Math.sqrt(x * x + z * z));
}

function height(d) {
  return 110 + apart(d)[1] * (d.sizes[1] - 1) + Math.ceil(0.56 * reach(d));
}

// The coordinates of device `i`: stage, replica, share.
function place(d, i) {
  const [, replicas, shares] = d.sizes;
  return [Math.floor(i / (replicas * shares)), Math.floor(i / shares) % replicas,
    i % shares];
}

// The devices that differ from device `i` in `axis` alone, and itself, in order.
function group(d, i, axis) {
  const mine = place(d, i);
  return range(8).filter((j) =>
    place(d, j).every((at, other) => other === axis || at === mine[other]));
}

// The middle of device `i` in the drawing, and how near it is.
function spot(d, i, now) {
  const [z, y, x] = place(d, i).map((at, axis) =>
    ((2 * at - d.sizes[axis] + 1) * apart(d)[axis]) / 2);
  const cos = TURNS[(now + 1) % 12], sin = TURNS[(now + 10) % 12];
  const right = (x * cos + z * sin) / 1000, near = (z * cos - x * sin) / 1000;
  const middle = 85 + Math.floor((height(d) - 85) / 2);
  return [across(d) / 2 + Math.round(right), middle + Math.round(y + 0.28 * near), near];
}

function line([x, y], [u, v], axis, lit) {
  return `<path class="arrow ${lit ? "" : "todo"}" d="M${x} ${y}L${u} ${v}" ` +
    `style="stroke-width:${STYLES[axis]}"/>`;
}

function drawing(d, now) {
  const spots = range(8).map((i) => spot(d, i, now)), partners = new Set([d.device]);
  const faint = [], lit = [];
  d.axes.forEach((_, axis) => range(8).forEach((i) => {
    const members = group(d, i, axis), next = members[members.indexOf(i) + 1];
    const ours = members.includes(d.device);
    if (ours) partners.add(i);
    if (next !== undefined)
      (ours ? lit : faint).push(line(spots[i], spots[next], axis, ours));
  }));
  const order = range(8).sort((a, b) => spots[a][2] - spots[b][2] || a - b);
  return d.axes.map((_, axis) => key(d, axis)).join("") + faint.join("") +
    lit.join("") + order.map((i) => box(d, i, spots[i], partners)).join("");
}

// A pale device lies on the page's ground, or the lines behind it would cross its number.
function box(d, i, [x, y], partners) {
  const half = d.narrow ? 15 : 22, at = [x - half, y - 12, 2 * half, 24];
  const state = i === d.device ? "now" : partners.has(i) ? "" : "todo";
  const paper = `<rect class="paper" x="${at[0]}" y="${at[1]}" width="${at[2]}" ` +
    'height="24" rx="2"/>';
  return paper + work(d, i, "forward", at, i, state);
}

// A row of the legend: how lines along the axis look, and what is sent there.
function key(d, axis) {
  const y = 16 + 20 * axis;
  return line([8, y - 4], [44, y - 4], axis, true) +
    text(54, y, `${d.axes[axis]}: ${partnersOf(d, axis)}`, "start");
}

function partnersOf(d, axis) {
  const others = group(d, d.device, axis).filter((i) => i !== d.device);
  if (!others.length) return "no partner";
  return `with ${others.join(", ")}, ${number(d.sent[axis][d.device])} bytes`;
}

function summary(d) {
  const sent = d.axes.map((axis, a) => `${number(d.sent[a][d.device])} along ${axis}`);
  return `Eight devices as ${d.mesh}, pipeline × data × tensor. Bytes that device ` +
    `${d.device} sends in a step: ${sent.join(", ")}.`;
}

function moment(d, now) {
  const where = place(d, d.device).map((at, axis) => `${WORDS[axis]} ${at}`);
  return `Device ${d.device}: ${where.join(", ")}. Turned by ${30 * now} degrees.`;
}
