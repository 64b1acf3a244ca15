// What each of k devices holds, drawn and in words: a bar for each, in which weights,
// gradients and states lie upon one another. A step of the clock divides one of these
// more. Numbers by memory.bytes_held and bytes_sent.
const NARROW = 350, HIGH = 170, TOP = 46;
const PARTS = [["weights", ""], ["gradients", "backward"], ["states", "copy"]];

function state(data, choice) {
  const sizes = data.networks[choice.network], k = choice.devices;
  const itemsize = data.numbers[choice.numbers];
  const each = [itemsize, itemsize, data.states[`${choice.optimizer},${choice.numbers}`]];
  return { ...choice, k, sizes, each, all: sum(sizes), stages: data.stages,
    colours: data.colours,
    whole: sum(each) * sum(sizes) };
}

function sum(numbers) {
  return numbers.reduce((a, b) => a + b, 0);
}

function steps(d) {
  return d.stages.length - 1;
}

function height() {
  return TOP + HIGH + 22;
}

// Parameters in chunk `c` of k, of all layers together.
function chunk(d, c) {
  return sum(d.sizes.map((n) =>
    Math.floor(((c + 1) * n) / d.k) - Math.floor((c * n) / d.k)));
}

// Bytes of weights, gradients and states on device `i`: it looks after chunk i + 1.
function held(d, i, stage) {
  const own = chunk(d, (i + 1) % d.k);
  return d.each.map((bytes, part) => bytes * (stage >= 3 - part ? own : d.all));
}

// Bytes that device `i` sends in a step.
function sent(d, i, stage) {
  const [summed, last] = [1, 2].map((by) => chunk(d, (i + by) % d.k));
  return d.each[0] * (d.all - summed + (stage === 3 ? 2 : 1) * (d.all - last));
}

function most(d, of, stage) {
  return Math.max(...range(d.k).map((i) => sum([of(d, i, stage)].flat())));
}

function drawing(d, now) {
  const apart = Math.floor((across(d) - 20) / d.k), high = most(d, held, now);
  const y = TOP + HIGH - Math.floor((HIGH * high) / d.whole), right = 10 + apart * d.k;
  const legend = PARTS.map(([name], part) =>
    box(d, part, [10 + 112 * part, 4, 14, 14]) +
    text(29 + 112 * part, 16, `${name} ${d.each[part]} B`, "start"));
  return `${legend.join("")}<path class="arrow todo" d="M10 ${TOP}H${right}M10 ${y}H${right}"/>` +
    text(10, 38, `${number(d.whole)} B each, nothing divided`, "start", 10) +
    text(right, now ? y - 5 : 38, now ? `${number(high)} B` : "", "end", 11, "now") +
    range(d.k).map((i) => bar(d, i, now, 10 + i * apart, apart)).join("");
}

// Bytes of a part, in its colour for light pages or for dark ones, with its hatch.
function box(d, part, [x, y, width, height]) {
  const at = `<rect x="${x}" y="${y}" width="${width}" height="${height}"`;
  const [light, dark] = d.colours[part], hatch = PARTS[part][1];
  return `<g class="work">${at} fill="${light}" style="fill: light-dark(${light}, ` +
    `${dark})"/>${hatch && `${at} fill="url(#${d.name}-${hatch})"/>`}</g>`;
}

function bar(d, i, stage, x, apart) {
  const wide = Math.max(1, Math.min(110, apart - (apart > 7 ? 3 : 1)));
  const left = x + Math.floor((apart - wide) / 2);
  let below = 0;
  const boxes = held(d, i, stage).map((bytes, part) => {
    const [low, top] = [below, below + bytes]
      .map((n) => TOP + HIGH - Math.floor((HIGH * n) / d.whole));
    below += bytes;
    return low > top ? box(d, part, [left, top, wide, low - top]) : "";
  });
  const named = apart > 15 || i % 8 === 0;
  return ground(left, TOP, wide, HIGH) + boxes.join("") +
    (named ? text(left + Math.floor(wide / 2), TOP + HIGH + 15, i, "middle", 10) : "");
}

function summary(d) {
  const each = d.stages.map((name, stage) => `${name} ${number(most(d, held, stage))}`);
  return `k = ${d.k} devices, ${d.network}, ${d.optimizer}, ${d.numbers}: ` +
    `${d.each.join(" + ")} bytes a parameter for weights, gradients and states. Bytes ` +
    `on the fullest device, by what is divided: ${each.join(", ")}.`;
}

const DONE = ["nothing is divided", "the optimizer's states are divided",
  "states and gradients are divided", "states, gradients and weights are divided"];

function moment(d, now) {
  const bytes = held(d, 0, now), share = ratio(100 * most(d, held, now), d.whole, 1);
  const [weights, gradients, states] = bytes.map(number);
  return `Stage ${now} of 3: ${DONE[now]}. Device 0 holds ${weights} bytes of weights, ` +
    `${gradients} of gradients, ${states} of states; the fullest device ${share}% of a ` +
    `whole replica. A step sends ${number(most(d, sent, now))} bytes from the busiest.`;
}
