// A schedule, drawn and in words. `now`: how many slots of the clock have passed. `width`:
// of a slot, so that all fit in 560 units.
function state(data, choice) {
  const { lanes: all, last_first } = data[choice.schedule];
  const lanes = all[`${choice.stages},${choice.chunks}`].split(" ").map(unpack);
  return { title: choice.schedule, lane: "stage", lanes, lastFirst: last_first,
    width: Math.min(40, Math.floor(560 / lanes[0].length)) };
}

// F3.B -> FFF.B: the data count what repeats.
function unpack(lane) {
  return lane.replace(/(.)(\d+)/g, (_, letter, n) => letter.repeat(Number(n)));
}

function steps(d) {
  return d.lanes[0].length;
}

function height(d) {
  return 40 + 30 * d.lanes.length;
}

function count(lane, letter, now) {
  return lane.slice(0, now).split(letter).length - 1;
}

// Micro-batches whose activations the stage holds after `now` slots.
function held(lane, now) {
  return count(lane, "F", now) - count(lane, "B", now);
}

function peak(lane) {
  return Math.max(...Array.from(lane, (_, t) => held(lane, t + 1)));
}

// The number of the micro-batch in slot `t`.
function chunkAt(lane, t, lastFirst) {
  const before = count(lane, lane[t], t);
  const chunks = count(lane, "F", lane.length);
  return lane[t] === "B" && lastFirst ? chunks - 1 - before : before;
}

function drawing(d, now) {
  const end = 60 + steps(d) * d.width, x = 60 + now * d.width;
  const bottom = 20 + 30 * d.lanes.length;
  return text(end + 35, 12, "held / peak") +
    d.lanes.map((_, s) => row(d, s, now)).join("") +
    `<path d="M${x} 14V${bottom}" stroke="currentColor"/>` +
    text(x, bottom + 13, `slot ${now}`);
}

function row(d, s, now) {
  const lane = d.lanes[s], y = 20 + 30 * s, wide = steps(d) * d.width;
  const cells = Array.from(lane, (c, t) => (c === "." ? "" : cell(d, s, t, now)));
  return text(25, y + 16, `stage ${s}`) + ground(60, y, wide, 24) + cells.join("") +
    text(wide + 95, y + 16, `${held(lane, now)} / ${peak(lane)}`);
}

function cell(d, s, t, now) {
  const lane = d.lanes[s], box = [60 + t * d.width, 20 + 30 * s, d.width - 1, 24];
  const kind = lane[t] === "B" ? "backward" : "forward";
  const when = t >= now ? "todo" : t === now - 1 ? "now" : "done";
  return work(d, s, kind, box, chunkAt(lane, t, d.lastFirst), when);
}

function summary(d) {
  const p = d.lanes.length, slots = steps(d);
  const m = count(d.lanes[0], "F", slots), idle = p * slots - 2 * p * m;
  return `${d.title}, p = ${p} stages, m = ${m} micro-batches: ${idle} of ${p * slots} ` +
    `slots are empty. Bubble: (p − 1) / (m + p − 1) = ${p - 1}/${m + p - 1} = ` +
    `${ratio(100 * idle, p * slots)}%. Peak of micro-batches held, stage by stage: ` +
    `${d.lanes.map(peak).join(", ")}.`;
}

function moment(d, now) {
  const doing = d.lanes.map((lane, s) => {
    const word = { F: "forward ", B: "backward ", ".": "waits" }[lane[now - 1]];
    const i = word === "waits" ? "" : chunkAt(lane, now - 1, d.lastFirst);
    return `stage ${s} ${word}${i}`;
  });
  return `Slot ${now} of ${steps(d)}: ${now ? doing.join(", ") : "nothing has begun"}.`;
}
