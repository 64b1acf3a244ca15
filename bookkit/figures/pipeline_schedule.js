// A schedule, drawn and in words. `now`: how many slots of the clock have passed. `width`:
// of a slot, so that all fit in 560 units. `kinds`: of work on a micro-batch; `parts`:
// stages that a device has.
const SMOOTH = true, NARROW = 350;

function state(data, choice) {
  const all = data[choice.schedule], p = choice.stages, m = choice.chunks;
  const fits = all[`${p},${m}`] ? m : Math.max(p, m - (m % p));
  const { lanes: packed, order } = all[`${p},${fits}`];
  const lanes = packed.split(" ").map(unpack);
  const kinds = new Set(lanes[0].replaceAll(".", "")).size;
  const parts = Math.round(count(lanes[0], "F", lanes[0].length) / fits);
  return { title: choice.schedule, code: data.code, lane: parts > 1 ? "device" : "stage", lanes, kinds,
    parts, m: fits, order: Object.fromEntries(
      Object.entries(order).map(([letter, numbers]) => [letter, numbers.split(" ")])),
    slots: lanes[0].length };
}

const KINDS = { F: "forward", B: "backward", I: "input", W: "weights" };

// Where the lanes begin, and how wide a slot is.
function left(d) {
  return d.narrow ? 20 : 60;
}

function wide(d) {
  return Math.min(40, Math.floor((d.narrow ? 270 : 560) / d.slots));
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

// Micro-batches whose activations the device holds after `now` slots.
function held(lane, now) {
  return count(lane, "F", now) - count(lane, "B", now) - count(lane, "W", now);
}

function peak(lane) {
  return Math.max(...Array.from(lane, (_, t) => held(lane, t + 1)));
}

// The number of the micro-batch in slot `t`.
function chunkAt(d, lane, t) {
  const before = count(lane, lane[t], t);
  return d.order[lane[t]]?.[before] ?? before;
}

function drawing(d, now) {
  const end = left(d) + steps(d) * wide(d), x = left(d) + Math.round(now * wide(d));
  const bottom = 20 + 30 * d.lanes.length;
  return text(end + (d.narrow ? 28 : 35), 12, "held / peak", "middle", d.narrow ? 10 : 11) +
    d.lanes.map((_, s) => row(d, s, now)).join("") +
    `<path d="M${x} 14V${bottom}" stroke="currentColor"/>` +
    text(Math.max(x, 24), bottom + 13, `slot ${Math.floor(now)}`);
}

function row(d, s, now) {
  const lane = d.lanes[s], y = 20 + 30 * s, end = left(d) + steps(d) * wide(d);
  const cells = Array.from(lane, (c, t) => (c === "." ? "" : cell(d, s, t, now)));
  const whole = Math.floor(now);
  return text(d.narrow ? 10 : 25, y + 16, d.narrow ? s : `${d.lane} ${s}`) +
    ground(left(d), y, end - left(d), 24) + cells.join("") +
    text(end + (d.narrow ? 28 : 35), y + 16, `${held(lane, whole)} / ${peak(lane)}`);
}

// A slot of work; while it is under way, as much of it as is done.
function cell(d, s, t, now) {
  const lane = d.lanes[s], slot = wide(d), box = [left(d) + t * slot, 20 + 30 * s, slot - 1, 24];
  const label = slot < (d.narrow ? 14 : 10) ? "" : chunkAt(d, lane, t);
  if (now <= t) return piece(d, s, lane[t], box, label, "todo");
  if (now < t + 1) {
    const done = [box[0], box[1], Math.max(1, Math.round((now - t) * box[2])), 24];
    return piece(d, s, lane[t], box, label, "todo") + piece(d, s, lane[t], done, "", "now");
  }
  return piece(d, s, lane[t], box, label, t === now - 1 ? "now" : "done");
}

// The weights part has the hatch of updates; the title calls each kind by its name.
function piece(d, s, letter, box, label, state) {
  const kind = { F: "forward", W: "update" }[letter] ?? "backward";
  return work(d, s, kind, box, label, state)
    .replace(`: ${kind} `, `: ${KINDS[letter]} `);
}

function summary(d) {
  const { m, parts, kinds } = d, p = d.lanes.length, slots = steps(d);
  const each = parts * kinds, idle = p * (slots - each * m);
  const shorter = kinds > 2 ? 3 : parts, by = shorter > 1 ? `${shorter}m` : "m";
  const share = `(p − 1) / (${by} + p − 1) = ${p - 1}/${shorter * m + p - 1}`;
  const exact = idle * (shorter * m + p - 1) === p * slots * (p - 1);
  const bubble = `${ratio(100 * idle, p * slots)}%`;
  const two = parts > 1 ? `, two stages on each of p = ${p} devices` : `, p = ${p} stages`;
  return `${d.title}${two}, m = ${m} micro-batches: ${idle} of ${p * slots} ` +
    `slots are empty. Bubble: ${exact ? `${share} = ${bubble}` : bubble + ", as m < p"}. ` +
    `Peak of micro-batches held, ${d.lane} by ${d.lane}` +
    `${parts > 1 ? ", counted for each stage" : ""}: ${d.lanes.map(peak).join(", ")}.`;
}

// The kinds of work that run in a slot.
function acts(d, now) {
  return d.lanes.flatMap((lane) => KINDS[lane[now - 1]] ?? []);
}

function moment(d, now) {
  const doing = d.lanes.map((lane, s) => {
    const word = KINDS[lane[now - 1]];
    return `${d.lane} ${s} ${word ? `${word} ${chunkAt(d, lane, now - 1)}` : "waits"}`;
  });
  return `Slot ${now} of ${steps(d)}: ${now ? doing.join(", ") : "nothing has begun"}.`;
}
