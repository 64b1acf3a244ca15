// What a step costs on a cluster: its lanes, its numbers, and curves over devices. costs()
// computes as d2l_ext.scale.step does. There is no clock.

// The dashes of the ways' curves. A colour is a device's, and a way is none.
const DASHES = ["2 3", "9 4", "none", "4 2", "9 3 2 3", "12 3", "1 2"];
const HIGH = 150, NARROW = 350;

// Where lanes and curves begin, how wide lanes are, how far down the curves' axis is,
// and how far apart two numbers of devices are on it.
function frame(d) {
  return d.narrow ? { left: 34, width: 308, bottom: 412, octave: 25 }
    : { left: 90, width: 560, bottom: 290, octave: 40 };
}

// The numbers of the choice, within their limits, and what follows from them.
function state(data, choice) {
  const d = { ...choice, ways: data.ways, on: data.devices,
    backward: data.backward, twoBit: data.two_bit,
    overlap: choice.sent === data.sent[0], flat: choice.sent === data.sent[2] };
  for (const [role, [low, high, isWhole]] of Object.entries(data.limits)) {
    const value = Math.min(Math.max(Number(choice[role]) || low, low), high);
    d[role] = isWhole ? Math.floor(value) : value;
  }
  Object.assign(d, costs(d, d.way, d.devices));
  d.curves = data.ways.map((way) => curve(d, way));
  return d;
}

// Seconds of a step and its parts; efficiency, speed-up, shares of waiting and overhead.
// The last of the arrays is made when backward is over: it never hides.
function costs(d, way, devices) {
  const each = d.scaling === "each device", share = d.overlap ? 1 - 1 / d.arrays : 0;
  const batch = each ? d.batch * devices : d.batch;
  const compute = computing(d, batch / devices);
  const mesh = way === "mesh" ? onMesh(d, compute, batch, devices) : compute;
  const moved = mesh - compute + (devices > 1 ? communication(d, way, devices) : 0);
  const hidden = way === "mesh" ? 0 : share * Math.min(moved, d.backward * (compute - 1e-3 * d.overhead));
  const seconds = compute + moved - hidden;
  const one = computing(d, d.batch);
  const efficiency = each ? one / seconds : one / (devices * seconds);
  return { compute, moved, seconds, hidden, waiting: (moved - hidden) / seconds,
    started: 1e-3 * d.overhead / seconds, efficiency, speed_up: devices * efficiency, per_second: batch / seconds };
}

function computing(d, examples) {
  return 1e-3 * d.overhead + 1e-6 * d.example * examples;
}

function communication(d, way, devices) {
  const compressed = d.compression === "yes" && way === "servers";
  const arrays = d.flat ? 1 : d.arrays, nbytes = 4 * d.parameters;
  const [alpha, beta] = linkOf(d, false);
  const packing = compressed ? 1e-9 * d.packing * nbytes : 0;
  if (way === "mesh") return 0;
  if (way === "hierarchy") {
    const inside = hostOf(d, devices), hosts = devices / inside;
    return ringSeconds(inside, arrays, nbytes, linkOf(d, true)) +
      ringSeconds(hosts, arrays, nbytes / inside, linkOf(d, false));
  }
  if (way === "servers") {
    const pushed = compressed ? d.twoBit : 1;
    const carried = (1 + pushed) * nbytes * Math.max(1, devices / d.servers);
    return packing + 2 * arrays * alpha + carried * beta;
  }
  if (way === "halving") {
    const log = Math.floor(Math.log2(devices)), power = 2 ** log;
    const rest = devices === power ? 0 : 2;
    const carried = (2 * (power - 1) / power + rest) * nbytes;
    return packing + (2 * log + rest) * arrays * alpha + carried * beta;
  }
  const rounds = way === "tree" ? 2 * Math.ceil(Math.log2(devices)) : 2 * (devices - 1);
  const message = way === "ring" ? nbytes / devices : nbytes;
  return packing + rounds * (arrays * alpha + message * beta);
}

// Latency and seconds per byte of a link inside a host, or of one between hosts.
function linkOf(d, inside) {
  const [alpha, speed] = inside ? [d.nearby, d.inside] : [d.latency, d.bandwidth];
  return [1e-6 * alpha, 8 / (speed * 1e9)];
}

// Seconds of a ring of k devices.
function ringSeconds(k, arrays, nbytes, [alpha, beta]) {
  return 2 * (k - 1) * (arrays * alpha + (nbytes / k) * beta);
}

function divisor(a, b) {
  return b ? divisor(b, a % b) : a;
}

// Devices in each host, if all hosts have as many.
function hostOf(d, devices) {
  return devices <= d.per_host ? devices : divisor(d.per_host, devices);
}

// The lengths of a mesh: pipeline, data, tensor.
function meshOf(d, devices) {
  const t = divisor(d.tensor, devices), p = divisor(d.pipeline, devices / t);
  return [p, devices / (p * t), t];
}

// Seconds of a step on a mesh, by step.mesh_seconds. The axis tensor is the innermost, the
// pipeline the outermost; an axis has the slow links if one of its groups has two hosts.
function onMesh(d, compute, batch, devices) {
  const [p, replicas, t] = meshOf(d, devices), m = d.chunks, host = hostOf(d, devices);
  const carried = (4 * batch * d.border) / replicas;
  const sent = [p > 1 ? 2 * carried : 0,
    (2 * (replicas - 1) * 4 * d.parameters) / (replicas * p * t),
    (d.sums / p) * ((2 * (t - 1)) / t) * carried];
  const messages = [p > 1 ? 2 * m : 0, 2 * (replicas - 1), (m * d.sums * 2 * (t - 1)) / p];
  const spans = [devices, replicas * t, t];
  const seconds = sent.map((nbytes, axis) => {
    const [alpha, beta] = linkOf(d, host % spans[axis] === 0);
    return messages[axis] * alpha + nbytes * beta;
  });
  const border = seconds[0] / Math.max(1, messages[0]);
  return ((m + p - 1) / m) * (compute + seconds[2]) + 2 * (p - 1) * border + seconds[1];
}

// The efficiency on each number of devices.
function curve(d, way) {
  return d.on.map((k) => costs(d, way, k).efficiency);
}

function steps() {
  return 0;
}

function height(d) {
  return frame(d).bottom + 40 + (d.narrow ? 21 * Math.ceil(d.ways.length / 2) : 0);
}

function drawing(d) {
  return lanes(d) + results(d) + axes(d) + allCurves(d);
}

function lanes(d) {
  const begins = d.compute - d.hidden, { left, width } = frame(d);
  return [["computing", "forward", 0, d.compute], ["exchange", "copy", begins, d.moved]]
    .map(([name, kind, begin, long], i) => {
      const y = d.narrow ? 18 + 40 * i : 4 + 24 * i;
      const x = left + whole((width * begin) / d.seconds);
      const end = left + whole((width * (begin + long)) / d.seconds);
      const bar = end > x ? work(d, 0, kind, [x, y, end - x, 18]) : "";
      const named = d.narrow ? text(left, y - 5, name, "start") : text(45, y + 13, name);
      return named + ground(left, y, width, 18) + bar;
    }).join("") + text(left + width, d.narrow ? 92 : 64, time(d.seconds), "end");
}

function results(d) {
  return [["step", time(d.seconds)], ["waiting for the exchange", percent(d.waiting)],
    ["efficiency", decimal(d.efficiency)], ["speed-up", digits(d.speed_up)],
    ["examples per second", digits(d.per_second)]]
    .map(([name, value], i) => {
      const [x, y] = d.narrow ? [90 + 170 * (i % 2), 122 + 42 * Math.floor(i / 2)]
        : [70 + 140 * i, 92];
      return text(x, y, value, "middle", 17, "now") + text(x, y + 18, name);
    }).join("");
}

function axes(d) {
  const { left, bottom, octave } = frame(d);
  const top = bottom - HIGH, right = left + octave * (d.on.length - 1);
  const lines = [top, top + HIGH / 2, bottom].map((y) =>
    `<path stroke="currentColor" stroke-opacity="0.25" d="M${left} ${y}H${right}"/>`);
  const ticks = d.on.map((k, i) =>
    (i % 2 ? "" : text(left + octave * i, bottom + 15, number(k))));
  const named = d.narrow ? text(left - 26, top - 8, "efficiency", "start")
    : text(left - 8, top + HIGH / 2 - 12, "efficiency", "end");
  return lines.join("") + text(left - 8, top + 4, "1", "end") +
    text(left - 8, top + HIGH / 2 + 4, "0.5", "end") +
    text(left - 8, bottom + 4, "0", "end") + named + ticks.join("") +
    text(whole((left + right) / 2), bottom + 32, "devices");
}

function allCurves(d) {
  const chosen = d.ways.indexOf(d.way), y = heightOf(d, d.efficiency);
  const { left, octave } = frame(d), at = left + whole(octave * Math.log2(d.devices));
  return d.ways.map((_, i) => oneCurve(d, i, i === chosen)).join("") +
    `<circle cx="${at}" cy="${y}" r="5" fill="currentColor"/>` +
    text(Math.min(at, across(d) - 16), y - 9, decimal(d.efficiency), "middle", 11, "now");
}

function oneCurve(d, i, chosen) {
  const { left, bottom, octave } = frame(d);
  const points = d.curves[i].map((e, n) => `${left + octave * n} ${heightOf(d, e)}`);
  const style = 'fill="none" stroke="currentColor" ' +
    `stroke-opacity="${chosen ? 1 : 0.55}" stroke-width="${chosen ? 3 : 1.5}" ` +
    `stroke-dasharray="${DASHES[i]}"`;
  const [x, y] = d.narrow ? [20 + 170 * (i % 2), bottom + 50 + 21 * Math.floor(i / 2)]
    : [592, bottom - HIGH + 8 + 21 * i];
  return `<path d="M${points.join("L")}" ${style}/><path d="M${x} ${y}h20" ${style}/>` +
    text(x + 25, y + 4, called(d, d.ways[i]), "start", 11, chosen ? "now" : "");
}

function heightOf(d, efficiency) {
  return frame(d).bottom - whole(HIGH * efficiency);
}

function summary(d) {
  const own = d.curves[d.ways.indexOf(d.way)].filter((_, i) => i % 4 === 0);
  const on = d.on.filter((_, i) => i % 4 === 0);
  return `${d.model}, ${number(Math.floor(d.parameters))} parameters or ` +
    `${digits(4e-6 * d.parameters)} MB of gradients, ${number(d.batch)} examples for ` +
    `${d.scaling}, ${digits(d.bandwidth)} Gbit/s, ${digits(d.latency)} µs. Exchange: ` +
    `${inWords(d)}. Efficiency on ${on.map(number).join(", ")} devices: ` +
    `${own.map(decimal).join(", ")}.`;
}

function moment(d) {
  const others = d.ways
    .map((way) => `${called(d, way)} ${time(costs(d, way, d.devices).seconds)}`);
  return `A step on ${number(d.devices)} devices takes ${time(d.seconds)}: computing ` +
    `${time(d.compute)}, exchange ${time(d.moved)}${d.way === "mesh"
      ? " with the bubble" : ""}, of which ${time(d.hidden)} behind ` +
    `the backward pass. ${percent(d.waiting)} of the step is waiting, ` +
    `${percent(d.started)} overhead. Efficiency ` +
    `${decimal(d.efficiency)}, speed-up ${digits(d.speed_up)}. With each exchange: ` +
    `${others.join(", ")}.`;
}

function called(d, way) {
  const servers = d.servers === 1 ? "1 server" : `${number(d.servers)} servers`;
  return way === "servers" ? servers : way;
}

// The chosen way with its numbers.
function inWords(d) {
  if (d.way === "hierarchy") {
    const inside = hostOf(d, d.devices);
    return `hierarchy, hosts of ${number(inside)} with ${digits(d.inside)} Gbit/s inside`;
  }
  if (d.way !== "mesh") return called(d, d.way);
  const [p, replicas, t] = meshOf(d, d.devices);
  return `mesh, data ${number(replicas)} × tensor ${t} × pipeline ${p}, ` +
    `${number(d.chunks)} micro-batches, hosts of ${number(hostOf(d, d.devices))}`;
}

function whole(x) {
  return Math.floor(x + 0.5);
}

// Three significant digits, and all before the point: 0.123, 12.3, 1,234.
function digits(x) {
  let places = 0;
  while (places < 15 && x * 10 ** places > 0 && x * 10 ** places < 100) places += 1;
  const scaled = String(whole(x * 10 ** places)).padStart(places + 1, "0");
  const cut = scaled.length - places;
  return number(scaled.slice(0, cut)) + (places ? `.${scaled.slice(cut)}` : "");
}

function time(seconds) {
  for (const [unit, many] of [["s", 1], ["ms", 1e3]]) {
    if (seconds * many >= 1) return `${digits(seconds * many)} ${unit}`;
  }
  return `${digits(seconds * 1e6)} µs`;
}

// Three decimals.
function decimal(x) {
  const scaled = String(whole(1000 * x)).padStart(4, "0");
  return `${scaled.slice(0, -3)}.${scaled.slice(-3)}`;
}

function percent(x) {
  return `${whole(100 * x)}%`;
}

// For the page: each number has a slider in logarithmic scale, and a model has five of
// the numbers.
function pair(root, { models }) {
  const field = (role) => root.querySelector(`[data-role=${role}]`);
  const slider = (role) => root.querySelector(`[data-of=${role}]`);
  const log = (x, base) => Math.log(x) / Math.log(base);

  function follow(role) {
    const s = slider(role), at = log(field(role).value, s.dataset.base);
    s.value = Math.max(at, s.min);
  }

  function lead(role) {
    const s = slider(role), n = field(role);
    const exact = s.dataset.base ** s.value, value = Number(exact.toPrecision(3));
    n.value = Number.isInteger(exact) ? exact : n.step === "1" ? Math.round(value) : value;
  }

  for (const { dataset: { of: role } } of root.querySelectorAll("[data-of]")) {
    field(role).addEventListener("input", () => follow(role));
    slider(role).addEventListener("input", () => lead(role));
  }
  for (const role of Object.keys(Object.values(models)[0])) {
    for (const control of [field(role), slider(role)]) {
      control.addEventListener("input", () => {
        field("model").selectedIndex = field("model").length - 1;
      });
    }
  }
  field("model").addEventListener("input", () => {
    for (const [role, value] of Object.entries(models[field("model").value] || {})) {
      field(role).value = value;
      follow(role);
    }
  });
}
