// Does a model fit, and how fast does it train? Memory of the fullest device and seconds
// of a step, by what splits it. Links, hosts and the mesh's seconds come from functions of
// cost_calculator.js, which `fits.py` puts before these. There is no clock.
const NARROW = 350;

// The numbers of the choice, within their limits, and what follows from them.
function state(data, choice) {
  const d = { ...choice, backward: data.backward, colours: data.colours,
    stage: data.zero.indexOf(choice.zero), again: choice.recompute === "yes",
    hides: choice.overlap === "yes" };
  for (const [role, [low, high, isWhole]] of Object.entries(data.limits)) {
    const value = Math.min(Math.max(Number(choice[role]) || low, low), high);
    d[role] = isWhole ? Math.floor(value) : value;
  }
  [d.itemsize, d.kept] = data.numbers[choice.numbers];
  [d.p, d.replicas, d.t] = meshOf(d, d.devices);
  d.memory_of = held(d);
  d.bytes = sum(d.memory_of);
  d.room = 1e9 * d.memory - d.bytes;
  return Object.assign(d, timed(d));
}

function sum(pairs) {
  return pairs.reduce((all, [, value]) => all + value, 0);
}

// Bytes on the fullest device. Weights, gradients and states as memory.bytes_held has them;
// of a layer's activations, 5 + 12/t numbers for each token and column, or its input alone.
function held(d) {
  const own = Math.ceil(d.parameters / (d.p * d.t)), chunk = Math.ceil(own / d.replicas);
  const part = (stage) => (d.stage >= stage ? chunk : own);
  const layers = Math.ceil(d.layers / d.p), waiting = Math.min(d.chunks, d.p);
  const input = d.itemsize * d.micro * d.tokens * d.width, all = (5 + 12 / d.t) * input;
  return [["weights", d.itemsize * part(3)], ["gradients", d.itemsize * part(2)],
    ["states", d.kept * part(1)],
    ["activations", waiting * layers * (d.again ? input : all) + (d.again ? all : 0)],
    ["reserve", 1e9 * d.reserve]];
}

// Operations of a token, forward and backward.
function perToken(d) {
  return 6 * d.parameters + 12 * d.layers * d.width * d.tokens;
}

// How many times a step sums its gradients and gathers its weights, in allreduces: whole
// gradients are kept until the last micro-batch, divided ones are summed after each.
function exchanges(d) {
  return [1, 1, (d.chunks + 1) / 2, 1.5 * d.chunks][d.stage];
}

// Seconds of a step and its parts.
function timed(d) {
  const { p, replicas, t, chunks: m } = d, times = exchanges(d), own = d.itemsize / 4;
  const batch = d.micro * m * replicas * d.tokens, speed = 1e12 * d.peak * d.devices;
  const useful = (perToken(d) * batch) / (speed * 0.01 * d.reach);
  const compute = useful * (d.again ? 4 / 3 : 1);
  const net = { ...d, border: own * d.width, sums: 4 * d.layers, parameters: 0 };
  const slow = linkOf(d, hostOf(d, d.devices) % (replicas * t) === 0);
  const nbytes = (d.itemsize * d.parameters) / (p * t);
  const data = replicas > 1 ? ringSeconds(replicas, times, times * nbytes, slow) : 0;
  const empty = 2 * (replicas - 1) * slow[0]; // the messages of no parameters
  const steady = onMesh(net, compute, batch, d.devices) - empty;
  const flat = p > 1 ? onMesh({ ...net, sums: 0 }, compute, batch, d.devices) - empty : compute;
  const bubble = p > 1 ? ((p - 1) / m) * compute : 0;
  const hidden = d.hides ? (1 - 1 / d.layers) * Math.min(data, d.backward * compute) : 0;
  const seconds = steady + data - hidden;
  const per_second = batch / seconds;
  return { batch, seconds, per_second, mfu: (perToken(d) * per_second) / speed, data, hidden,
    time_of: [["computing", useful], ["computing again", compute - useful],
      ["bubble", bubble], ["between stages", flat - compute - bubble],
      ["sums along tensor", steady - flat], ["gradients and weights", data - hidden]] };
}

function steps() {
  return 0;
}

// The part of a step that takes longest, and its share.
function limit(d) {
  const [name, longest] = d.time_of.reduce((a, b) => (b[1] > a[1] ? b : a));
  return [name, longest / d.seconds];
}

function gigabytes(nbytes) {
  return `${digits(nbytes / 1e9)} GB`;
}

function fit(d) {
  return d.room >= 0
    ? `It fits: ${gigabytes(d.bytes)} of ${gigabytes(1e9 * d.memory)}, ${gigabytes(d.room)} to spare`
    : `It does not fit: ${gigabytes(d.bytes)}, ${gigabytes(-d.room)} too much`;
}

function speed(d) {
  return `${digits(Number(d.per_second.toPrecision(3)))} tokens/s, ${(100 * d.mfu).toFixed(1)}% MFU`;
}

function moment(d) {
  const [name, share] = limit(d);
  return `${fit(d)}, on the fullest device. ${speed(d)}${d.room < 0 ? ", if it did" : ""}. ` +
    `What limits: ${name}, ${percent(share)} of a step of ${time(d.seconds)}.`;
}

function summary(d) {
  const listed = (pairs, say) => pairs.filter(([, x]) => x > 0)
    .map(([name, x]) => `${name} ${say(x)}`).join(", ");
  return `${d.model}, ${digits(d.parameters / 1e9)} billion parameters; ` +
    `${number(d.devices)} device${d.devices > 1 ? "s" : ""}: data ${number(d.replicas)} × tensor ${d.t} × pipeline ` +
    `${d.p}, ZeRO: ${d.zero}; ${number(d.batch)} tokens a step, ` +
    `${number(d.chunks)} micro-batch${d.chunks > 1 ? "es" : ""}. Memory: ${listed(d.memory_of, gigabytes)}. ` +
    `Step: ${listed(d.time_of, time)}.`;
}

function height(d) {
  return d.narrow ? 344 : 252;
}

function drawing(d) {
  const [step, fifth] = d.narrow ? [178, 52] : [132, 48], size = d.narrow ? 13 : 17;
  const most = Math.max(d.bytes, 1e9 * d.memory), edge = 10 + at(d, 1e9 * d.memory, most);
  return text(10, 22, fit(d), "start", size, "now") +
    bars(d, d.memory_of, fifth - 14, most, gigabytes) +
    `<path d="M${edge} ${fifth - 20}v36" stroke="currentColor" stroke-width="3"/>` +
    text(10, step + 22, speed(d), "start", size, "now") +
    bars(d, d.time_of, step + fifth - 14, d.seconds, time);
}

function at(d, value, most) {
  return whole(((across(d) - 20) * value) / most);
}

// A bar of parts one after another, and their names and values below it.
function bars(d, parts, y, most, say) {
  let before = 0;
  const columns = d.narrow ? 2 : 3, wide = Math.floor((across(d) - 20) / columns);
  return ground(10, y, across(d) - 20, 24) + parts.map(([name, value], i) => {
    const left = 10 + at(d, before, most), right = 10 + at(d, before + value, most);
    before += value;
    const [x, low] = [10 + wide * (i % columns), y + 36 + 26 * Math.floor(i / columns)];
    return (right > left ? box(d, i, [left, y, right - left, 24]) : "") +
      box(d, i, [x, low, 13, 13]) +
      text(x + 19, low + 11, `${name} ${value ? say(value) : "0"}`, "start", d.narrow ? 11 : 12);
  }).join("");
}

function box(d, i, [x, y, width, height]) {
  const at = `<rect x="${x}" y="${y}" width="${width}" height="${height}"`;
  const [light, dark] = d.colours[i % d.colours.length];
  const kind = ["", "backward", "copy", "update", "", "backward"][i];
  return `<g class="work">${at} fill="${light}" style="fill: light-dark(${light}, ` +
    `${dark})"/>${kind && `${at} fill="url(#${d.name}-${kind})"/>`}</g>`;
}

// For the page: a model and a machine have numbers, which change with them; two buttons copy
// the address of this choice, and its drawing.
function pair(root, { models, machines }) {
  const field = (role) => root.querySelector(`[data-role=${role}]`);
  for (const [select, presets] of [["model", models], ["machine", machines]]) {
    field(select).addEventListener("input", () => {
      for (const [role, value] of Object.entries(presets[field(select).value] ?? {})) {
        field(role).value = value;
      }
    });
    const has = (numbers) => Object.entries(numbers)
      .every(([role, value]) => Number(field(role).value) === value);
    for (const role of Object.keys(Object.values(presets)[0])) {
      field(role).addEventListener("input", () => {
        const found = Object.keys(presets).findIndex((name) => has(presets[name]));
        field(select).selectedIndex = found < 0 ? field(select).length - 1 : found;
      });
    }
  }
  const button = (role, words, act) => {
    const made = document.createElement("button");
    Object.assign(made, { type: "button", textContent: words });
    made.dataset.role = role;
    made.addEventListener("click", async () => {
      made.textContent = "Copying …";
      made.textContent = await act().then((done) => done, () => "not copied");
      setTimeout(() => { made.textContent = words; }, 2000);
    });
    field("reset").after(made);
  };
  button("picture", "Copy picture", () => copied(root));
  button("link", "Copy link", async () => {
    root.dispatchEvent(new Event("change"));
    await navigator.clipboard.writeText(location.href);
    return "Link copied";
  });
}

// The drawing in PNG, on white: into the clipboard, or into a file where there is none.
async function copied(root) {
  const svg = root.querySelector("svg"), { width, height } = svg.viewBox.baseVal;
  const own = svg.cloneNode(true), picture = new Image(), canvas = document.createElement("canvas");
  own.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  own.setAttribute("width", 2 * width);
  own.setAttribute("height", 2 * height);
  own.setAttribute("style", "color: #000; color-scheme: light; font-family: sans-serif");
  own.insertAdjacentHTML("afterbegin", "<style>.ground { fill-opacity: 0.08 } " +
    "text.now { font-weight: bold }</style>");
  picture.src = "data:image/svg+xml," + encodeURIComponent(new XMLSerializer().serializeToString(own));
  await picture.decode();
  Object.assign(canvas, { width: 2 * width, height: 2 * height });
  const paper = canvas.getContext("2d");
  paper.fillStyle = "#fff";
  paper.fillRect(0, 0, canvas.width, canvas.height);
  paper.drawImage(picture, 0, 0);
  const png = await new Promise((done) => canvas.toBlob(done, "image/png"));
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": png })]);
    return "Picture copied";
  } catch {
    const link = document.createElement("a");
    Object.assign(link, { href: canvas.toDataURL("image/png"), download: "does-it-fit.png" });
    link.click();
    return "Picture saved";
  }
}
