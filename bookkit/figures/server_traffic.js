// Workers and servers, tick by tick, read from a run of ps_run.py, drawn and in words.
// Above stands who talks to whom, below what everybody does in each tick. `now`: how many
// ticks of the clock have passed. `t`: the number of the last of them, -1 before the first.

// The four messages of an exchange: departs at, flies up, holds values.
const MESSAGES = { "push": ["pushed", true, true],
  "answer to the push": ["answered", false, false], "pull": ["asked", true, false],
  "weights": ["given", false, true] };
// How high a lane is; where the messages fly: between these heights.
const LANE = 24, SERVERS = 92, WORKERS = 236, NARROW = 350, SMOOTH = true;

// Where the lanes start, how wide a tick is, and how high what stands above the lanes.
function left(d) {
  return d.narrow ? 50 : 80;
}

function tick(d) {
  return d.narrow ? 4.8 : 10;
}

function top(d) {
  return d.narrow ? 400 : 332;
}

// The run that is chosen: `begins` and `exchanges` as in ps_run.py, and `values`.
function state(data, choice) {
  const { mode, workers, servers, keys, slow } = choice;
  const [begins, packed] = data.runs[[mode, workers, servers, keys, slow]].split("|");
  const decode = (letters) =>
    Array.from(letters, (c) => (c === "-" ? null : data.code.indexOf(c)));
  const numbers = decode(packed), exchanges = [];
  for (let i = 0; i < numbers.length; i += data.fields.length) {
    exchanges.push(Object.fromEntries(data.fields.map((f, j) => [f, numbers[i + j]])));
  }
  return { ...choice, begins: begins.split(" ").map(decode), exchanges,
    values: data.values[servers].slice(0, keys),
    compute: data.compute, flight: data.flight, end: data.end };
}

// For each step of the worker the ticks in which it computes: first, last + 1.
function spans(d, worker) {
  const long = d.compute * (worker === d.workers - 1 ? d.slow : 1);
  return d.begins[worker].map((begin) => [begin, Math.min(begin + long, d.end)]);
}

// The number of the step that the worker computes in tick `t`, or null.
function computes(d, worker, t) {
  const step = spans(d, worker).findIndex(([start, end]) => start <= t && t < end);
  return step < 0 ? null : step;
}

// The messages that fly in tick `t`: name, exchange, ticks since it left.
function underWay(d, t) {
  return d.exchanges.flatMap((e) => Object.entries(MESSAGES)
    .filter(([, [field]]) => happened(e[field], t) && t < e[field] + d.flight)
    .map(([name, [field]]) => [name, e, t - e[field]]));
}

// Bytes of a message without its header, as ps-lite logs them.
function nbytes(d, name, e) {
  if (MESSAGES[name][2]) return d.values[e.key][e.server];
  return name === "pull" ? 8 : 0;
}

// Bytes that have arrived at the server by tick `t`, and bytes that have left.
function traffic(d, server, t) {
  let into = 0, out = 0;
  for (const e of d.exchanges) {
    for (const [name, [field, up]] of Object.entries(MESSAGES)) {
      if (e.server !== server || !happened(e[field], up ? t - d.flight : t)) continue;
      if (up) into += nbytes(d, name, e);
      else out += nbytes(d, name, e);
    }
  }
  return [into, out];
}

// Pushes that the server has not answered yet: key, workers of each such key.
function kept(d, server, t) {
  const waiting = d.exchanges.filter((e) => e.server === server &&
    happened(e.handled, t) && !happened(e.answered, t));
  return range(d.keys)
    .map((key) => [key, waiting.filter((e) => e.key === key).map((e) => e.worker)])
    .filter(([, workers]) => workers.length);
}

// Updates that the server has made: pushes that it answered at once made them.
function updates(d, server, t) {
  return d.exchanges.filter((e) => e.server === server && happened(e.handled, t) &&
    e.answered === e.handled).length;
}

// What the worker waits for: words and keys, first of pushes and then of pulls. A cut
// key is asked for when all its servers have answered the push.
function waits(d, worker, t) {
  const pushes = new Set(), pulls = new Set();
  for (const e of d.exchanges) {
    const sent = e.worker === worker && happened(e.pushed, t);
    if (sent && !happened(e.given, t - d.flight)) {
      (happened(e.answered, t - d.flight) ? pulls : pushes).add(e.key);
    }
  }
  const left = [...pulls].filter((key) => !pushes.has(key));
  return [["the answer to its push", [...pushes]], ["the weights", left]]
    .filter(([, keys]) => keys.length)
    .map(([words, keys]) => [words, keys.sort()]);
}

function happened(tick, t) {
  return tick !== null && tick <= t;
}

function steps(d) {
  return d.end;
}

function height(d) {
  return top(d) + 24 + LANE * (d.workers + d.servers);
}

function drawing(d, now) {
  const t = Math.floor(now) - 1, part = now % 1, bottom = height(d) - 18;
  const x = Math.round(left(d) + tick(d) * now);
  const workers = range(d.workers), servers = range(d.servers);
  return servers.map((s) => workers.map((w) => line(d, w, s)).join("")).join("") +
    servers.map((s) => serverBox(d, s, t)).join("") +
    workers.map((w) => workerBox(d, w, t)).join("") +
    underWay(d, t).map((flying) => message(d, part, ...flying)).join("") + legend(d) +
    workers.map((w) => workerLane(d, w, now)).join("") +
    servers.map((s) => serverLane(d, s, t)).join("") +
    `<path d="M${x} ${top(d) - 2}V${bottom}" stroke="currentColor"/>` +
    text(x, bottom + 13, `tick ${t + 1}`);
}

// The middle of the i-th of so many boxes in a row.
function place(d, i, of) {
  return Math.floor((across(d) * (2 * i + 1)) / (2 * of));
}

function line(d, worker, server) {
  const start = place(d, worker, d.workers), end = place(d, server, d.servers);
  return `<path d="M${start} ${WORKERS}L${end} ${SERVERS}" stroke="currentColor" ` +
    'stroke-width="2" stroke-opacity="0.1"/>';
}

function serverBox(d, server, t) {
  const x = place(d, server, d.servers), [into, out] = traffic(d, server, t);
  const half = Math.min(105, Math.floor(across(d) / (2 * d.servers)) - 2);
  const waiting = kept(d, server, t)
    .map(([key, workers]) => `key ${key}: ${workers.length} of ${d.workers}`);
  const keeps = half < 100 && waiting.length > 1 ? `keeps ${waiting.length} keys`
    : waiting.length ? `keeps ${waiting.join(", ")}` : "";
  const moved = half < 70 ? `${ratio(into, 1e6, 1)} / ${ratio(out, 1e6, 1)} MB`
    : `in ${megabytes(into)}, out ${megabytes(out)}`;
  return ground(x - half, 4, 2 * half, 84) +
    text(x, 20, `server ${server}`, "middle", 11, "now") + text(x, 36, held(d, server)) +
    text(x, 52, moved) + text(x, 68, `${updates(d, server, t)} updates`) + text(x, 84, keeps);
}

// The keys of which the server holds the whole or a part.
function held(d, server) {
  const part = ["", "", "half of ", "a third of "][d.servers];
  const names = d.values
    .map((row, key) => [row, `${row.filter(Boolean).length > 1 ? part : ""}key ${key}`])
    .filter(([row]) => row[server]).map(([, name]) => name);
  return names.length ? `holds ${names.join(", ")}` : "holds no key";
}

function megabytes(n) {
  return `${ratio(n, 1e6, 1)} MB`;
}

function workerBox(d, worker, t) {
  const x = place(d, worker, d.workers), step = computes(d, worker, t);
  const doing = step !== null ? `computes step ${step}` : t >= 0 ? "waits" : "";
  const box = [x - 45, WORKERS + 4, 90, 20];
  return work(d, worker, "forward", box, `worker ${worker}`) + text(x, WORKERS + 38, doing);
}

// Requests fly up, left of the line, answers down, right of it.
function message(d, part, name, e, age) {
  const [, up, filled] = MESSAGES[name], whole = 2 * d.flight;
  const done = Math.min(whole, 2 * (age + part) + 1);
  const start = place(d, e.worker, d.workers), end = place(d, e.server, d.servers);
  const along = up ? done : whole - done;
  const x = start + Math.floor(((end - start) * along) / whole) + (up ? -12 : 12);
  const y = WORKERS - Math.floor(((WORKERS - SERVERS) * along) / whole);
  return token(e.worker, e.key, up, filled, x, y);
}

// A message: square for a request, round for an answer, filled if with values.
function token(worker, key, square, filled, x, y) {
  const fill = filled ? colours[worker] : "none";
  const style = `fill="${fill}" stroke="${colours[worker]}" stroke-width="2"`;
  const shape = square
    ? `<rect x="${x - 8}" y="${y - 8}" width="16" height="16" ${style}/>`
    : `<circle cx="${x}" cy="${y}" r="9" ${style}/>`;
  return `<g class="token">${shape}<text x="${x}" y="${y + 4}" text-anchor="middle" ` +
    `font-size="11" fill="${filled ? inks[worker] : "currentColor"}">${key}</text></g>`;
}

function legend(d) {
  if (d.narrow) return narrowLegend(d);
  const flying = [[60, true, true, "push, the gradient of key 0"],
    [248, false, false, "answer to a push"], [392, true, false, "pull"],
    [468, false, true, "answer to a pull, the weights"]];
  return flying.map(([x, square, filled, words]) =>
    token(0, 0, square, filled, x, 290) + text(x + 15, 294, words, "start")).join("") +
    keptMark(d, 0, 56, 304, "") + text(75, 317, "a push is kept", "start") +
    updateMark(d, 0, 244, 304, 3, "") +
    text(263, 317, "a push updates; its gradient missed 3 others", "start") +
    pullMark(d, 0, 531, 304, "") + text(547, 317, "a pull is answered", "start");
}

function narrowLegend(d) {
  const flying = [[14, 288, true, true, "push, a gradient"],
    [184, 288, false, false, "answer to a push"], [14, 312, true, false, "pull"],
    [184, 312, false, true, "answer, the weights"]];
  const drawn = flying.map(([x, y, square, filled, words]) =>
    token(0, 0, square, filled, x, y) + text(x + 15, y + 4, words, "start")).join("");
  return drawn + keptMark(d, 0, 10, 328, "") + text(29, 341, "a push is kept", "start") +
    pullMark(d, 0, 180, 328, "") + text(199, 341, "a pull is answered", "start") +
    updateMark(d, 0, 10, 352, "", "") +
    text(29, 365, "a push updates; pointing at it: the updates", "start") +
    text(29, 380, "that its gradient missed", "start");
}

function workerLane(d, worker, now) {
  const y = top(d) + LANE * worker, at = (t) => Math.round(left(d) + tick(d) * t);
  const bars = spans(d, worker).map(([start, end], step) => {
    const box = (until) => [at(start), y, Math.max(1, at(until) - at(start) - 1), LANE - 6];
    if (now >= end) return work(d, worker, "forward", box(end), step, "done");
    return work(d, worker, "forward", box(end), step, "todo") +
      (now > start ? work(d, worker, "forward", box(now), "", "now") : "");
  });
  return text(d.narrow ? 24 : 40, y + 13, `worker ${worker}`) +
    ground(left(d), y, Math.round(tick(d) * d.end), LANE - 6) + bars.join("");
}

function serverLane(d, server, t) {
  const y = top(d) + LANE * (d.workers + server);
  const own = d.exchanges.filter((e) => e.server === server);
  return text(d.narrow ? 24 : 40, y + 13, `server ${server}`) +
    ground(left(d), y, Math.round(tick(d) * d.end), LANE - 6) +
    own.map((e) => marks(d, e, y, t)).join("");
}

// A push and a pull, in the ticks in which the server handles them.
function marks(d, e, y, t) {
  const when = (tick) => (happened(tick, t) ? "done" : "todo");
  const at = (n) => Math.round(left(d) + tick(d) * n);
  let found = "";
  if (e.handled !== null && e.answered !== e.handled) {
    found = keptMark(d, e.worker, at(e.handled), y, when(e.handled));
  } else if (e.handled !== null) {
    found = updateMark(d, e.worker, at(e.handled), y, e.stale, when(e.handled));
  }
  return e.given === null ? found
    : found + pullMark(d, e.worker, at(e.given), y, when(e.given));
}

function keptMark(d, worker, x, y, when) {
  if (d.narrow) {
    return `<rect class="${when}" x="${x}" y="${y + 10}" width="3" height="8" ` +
      `fill="${colours[worker]}"/>`;
  }
  return `<rect class="${when}" x="${x + 1}" y="${y + 1}" width="${tick(d) - 3}" ` +
    `height="${LANE - 8}" fill="none" stroke="${colours[worker]}" stroke-width="2"/>`;
}

function updateMark(d, worker, x, y, missed, when) {
  const words = d.narrow ? `<title>${missed}</title>`
    : `<text x="${x + 4}" y="${y + 12}" text-anchor="middle" font-size="9" ` +
      `fill="${inks[worker]}">${missed}</text>`;
  return `<g class="${when}"><rect x="${x}" y="${y}" width="${Math.floor(tick(d)) - 1}" ` +
    `height="${LANE - 6}" fill="${colours[worker]}"/>${words}</g>`;
}

function pullMark(d, worker, x, y, when) {
  return `<circle class="${when}" cx="${x + Math.floor(tick(d) / 2)}" cy="${y + 9}" r="3" ` +
    `fill="${colours[worker]}"/>`;
}

function summary(d) {
  const finished = d.begins.map((ticks) => ticks.length - 1).join(", ");
  const made = range(d.servers).map((s) => updates(d, s, d.end - 1)).join(", ");
  const moved = d.values.flat().reduce((a, b) => a + b);
  const missed = Math.max(...d.exchanges.map((e) => e.stale ?? 0));
  return `${d.mode}, workers: ${d.workers}, servers: ${d.servers}, keys: ${d.keys}, ` +
    `the last worker computes ${d.slow}× as long as the others. After ${d.end} ticks, ` +
    `steps finished by each worker: ${finished}; updates made by each server: ` +
    `${made}. In a step, a worker pushes ${number(moved)} bytes, and pulls as many. ` +
    `Most updates that a gradient missed: ${missed}.`;
}

function moment(d, now) {
  const t = now - 1, workers = range(d.workers);
  if (!now) return `Tick 0 of ${d.end}: nothing has begun.`;
  const doingNow = workers.map((w) => doing(d, w, t)).join("; ");
  const keepingNow = range(d.servers).map((s) => keeping(d, s, t)).join(" ");
  const flyingNow = underWay(d, t).map(([name, e]) => flying(d, name, e)).join("; ");
  return `Tick ${now} of ${d.end}: ${doingNow}. ${keepingNow} On the way: ` +
    `${flyingNow || "nothing"}. Updates missed by the gradients of key 0: ` +
    `${workers.map((w) => missedBy(d, w, t)).join("; ")}.`;
}

function doing(d, worker, t) {
  const step = computes(d, worker, t);
  if (step !== null) return `worker ${worker} computes step ${step}`;
  const what = waits(d, worker, t)
    .map(([name, keys]) => `${name} of key ${keys.join(", ")}`);
  return `worker ${worker} waits for ${what.join(" and ")}`;
}

function keeping(d, server, t) {
  const [into, out] = traffic(d, server, t);
  const waiting = kept(d, server, t).map(([key, workers]) => {
    const late = range(d.workers).filter((w) => !workers.includes(w));
    return `, keeps key ${key} of worker ${workers.join(", ")} and waits for worker ` +
      late.join(", ");
  });
  return `Server ${server} has received ${number(into)} bytes, sent ${number(out)}` +
    `${waiting.join("")}.`;
}

function flying(d, name, e) {
  const ends = [`worker ${e.worker}`, `server ${e.server}`];
  const [start, end] = MESSAGES[name][1] ? ends : ends.reverse();
  return `${name}, key ${e.key}, ${start} → ${end}, ${number(nbytes(d, name, e))} bytes`;
}

function missedBy(d, worker, t) {
  const own = d.exchanges.filter((e) => e.worker === worker && e.key === 0 &&
    e.server === 0 && happened(e.handled, t));
  return `worker ${worker}: ${own.map((e) => e.stale).join(", ") || "none yet"}`;
}
