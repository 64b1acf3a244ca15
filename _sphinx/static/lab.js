// Editors for exercises and cells: the reader's code runs in the page's own Python, which is loaded
// at the first Run, and ended when it takes too long. Its messages are shown as they went.
const LAB = { seconds: 3, patience: 60 };
window.LAB = LAB;

document.addEventListener("DOMContentLoaded", () => {
  const said = document.querySelector("#lab");
  if (!said || !window.Worker || !window.WebAssembly) return;
  const { chapter: here, tasks, cells, colours } = JSON.parse(said.textContent);
  LAB.colours = colours;
  const place = (chapter, number, after) => {
    const stub = tasks[chapter]?.[number];
    if (stub) after(new Editor(chapter, number, stub).box);
  };
  for (const cell of document.querySelectorAll(".cell")) {
    const call = /\bcheck\("(\w+)", (\d+), None\)/.exec(cell.querySelector("pre")?.textContent);
    if (call) place(call[1], +call[2], (box) => cell.after(box));
  }
  document.querySelectorAll(".cell.tag_lab").forEach((cell, i) => {
    if (cells[i]) cell.after(new Editor(here, 0, cells[i], `cell${i + 1}`).box);
  });
  for (const spot of document.querySelectorAll(".lab-place")) {
    const { chapter, number } = spot.dataset, editor = new Editor(
      chapter, +number, `${spot.querySelector("pre").textContent.trim()}\n`, "first page");
    spot.replaceChildren(editor.box);
    const closed = editor.box.querySelector(".lab-open");
    if (closed) editor.open(closed);
  }
});

const make = (tag, about = {}, ...inside) => {
  const made = Object.assign(document.createElement(tag), about);
  made.append(...inside);
  return made;
};

class Editor {
  constructor(chapter, number, stub, page = "") {
    Object.assign(this, { chapter, number, stub, page, key: `lab ${chapter} ${number} ${page}`.trim() });
    const open = make("button", { type: "button", className: "lab-open",
      textContent: number ? "Write it here" : "Change it here" });
    open.addEventListener("click", () => {
      this.open(open);
      this.text.focus();
      LAB.python ??= start();  // while the reader writes
      LAB.python.ready.catch((error) => { LAB.python = null; this.show({ said: error.message }); });
    });
    this.box = make("div", { className: "lab" }, open);
    if (this.stored() !== null) this.open(open);
  }

  stored() {
    try { return localStorage.getItem(this.key); } catch { return null; }
  }

  store(text) {
    try {
      if (text === null) localStorage.removeItem(this.key);
      else localStorage.setItem(this.key, text);
    } catch { /* a browser that stores nothing */ }
  }

  open(button) {
    const name = `lab-${this.chapter}-${this.number || this.page}`;
    const kind = this.chapter === "puzzles" ? "puzzle" : "exercise";
    const label = this.page ? "Your code" : `Your code for ${kind} ${this.number}`;
    this.text = make("textarea", { id: name, spellcheck: false, autocapitalize: "off",
      autocomplete: "off", value: this.stored() ?? this.stub });
    this.text.setAttribute("aria-describedby", `${name}-keys`);
    this.run = make("button", { type: "button", textContent: "Run", className: "lab-run" });
    const reset = make("button", { type: "button", textContent: "Reset" });
    this.state = make("span", { className: "lab-state" });
    this.state.setAttribute("role", "status");
    this.printed = make("pre", { className: "lab-printed", hidden: true, tabIndex: 0 });
    this.printed.setAttribute("role", "region");
    this.printed.setAttribute("aria-label", "Printed");
    this.said = make("p", { className: "lab-said", hidden: true });
    this.said.setAttribute("role", "status");
    this.figure = make("div", { className: "lab-figure" });
    this.run.addEventListener("click", () => this.judge());
    reset.addEventListener("click", () => this.reset());
    this.text.addEventListener("input", () => { this.store(this.text.value); this.fit(); });
    this.text.addEventListener("keydown", (event) => this.typed(event));
    button.replaceWith(
      make("label", { htmlFor: name, textContent: label }), this.text,
      make("div", { className: "lab-bar" }, this.run, reset,
        make("span", { id: `${name}-keys`, className: "lab-keys",
          textContent: "Ctrl+Enter runs; Esc, then Tab leaves" }), this.state),
      this.printed, this.said, this.figure);
    this.fit();
  }

  fit() {
    this.text.rows = Math.min(30, Math.max(4, this.text.value.split("\n").length + 1));
  }

  reset() {
    this.store(null);
    this.text.value = this.stub;
    this.fit();
    this.show({});
  }

  typed(event) {
    const { text } = this, at = text.selectionStart;
    const put = (what) => {
      event.preventDefault();
      if (!document.execCommand("insertText", false, what)) {
        text.setRangeText(what, at, text.selectionEnd, "end");
        text.dispatchEvent(new Event("input"));
      }
    };
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.judge();
    } else if (event.key === "Escape") {
      this.leaving = true;
      return;
    } else if (event.key === "Tab" && !event.shiftKey && !this.leaving) {
      put("    ");
    } else if (event.key === "Enter") {
      const line = text.value.slice(text.value.lastIndexOf("\n", at - 1) + 1, at);
      put(`\n${/^ */.exec(line)[0]}${/:\s*$/.test(line) ? "    " : ""}`);
    }
    this.leaving = false;
  }

  async judge() {
    if (this.run.disabled) return;
    this.run.disabled = true;
    this.show({});
    try {
      this.state.textContent = LAB.python ? "Running …" : "Python starts …";
      this.show(await runs(this, () => { this.state.textContent = "Running …"; }));
    } catch (error) {
      this.show({ said: error.message });
    }
    this.state.textContent = "";
    this.run.disabled = false;
  }

  show({ printed = "", said = "", runs: rounds = [] }) {
    this.printed.textContent = printed;
    this.printed.hidden = !printed;
    this.said.textContent = said && said[0].toUpperCase() + said.slice(1);
    this.said.hidden = !said;
    this.said.classList.toggle("right", said.startsWith("right"));
    this.figure.replaceChildren();
    if (rounds.length) new Messages(this.figure, rounds);
  }
}

// One worker for the page, `LAB.python`: `worker`, and `ready`, a promise. Editors take
// turns at it: a run begins, and its time, when the run before has ended.

function runs(editor, begun) {
  const run = (LAB.turn ?? Promise.resolve()).then(() => inTurn(editor, begun));
  LAB.turn = run.catch(() => {});
  return run;
}

async function inTurn(editor, begun) {
  LAB.python ??= start();
  const python = LAB.python;
  await python.ready.catch((error) => { LAB.python = null; throw error; });
  const { worker } = python;
  begun();
  const id = (LAB.count = (LAB.count ?? 0) + 1);
  return new Promise((resolve) => {
    const over = (said) => {
      worker.terminate();
      if (LAB.python?.worker === worker) {
        LAB.python = start();  // for the next one
        LAB.python.ready.catch(() => { LAB.python = null; });
      }
      clearTimeout(timer);
      resolve({ said });
    };
    const timer = setTimeout(() => over(
      `not yet. It has not ended after ${LAB.limit} seconds: does a loop never end?`),
    1000 * LAB.limit);
    worker.onerror = () => over("not yet. It ended Python itself.");
    worker.onmessage = ({ data }) => {
      if (data.id !== id || data.begun) return;
      if ("ended" in data) return over(`not yet. It ended Python itself: ${data.ended}`);
      clearTimeout(timer);
      resolve(data);
    };
    const { chapter, number } = editor;
    worker.postMessage({ id, chapter, number, code: editor.text.value });
  });
}

function start() {
  const python = {};
  python.ready = (async () => {
    const parts = await (LAB.parts ??= parted().catch((error) => {
      LAB.parts = null;
      throw error;
    }));
    const url = URL.createObjectURL(new Blob([LAB.files.worker], { type: "text/javascript" }));
    const worker = (python.worker = new Worker(url)), begin = performance.now();
    await new Promise((resolve, reject) => {
      const fail = (why) => {
        worker.terminate();
        reject(new Error(`Python did not start: ${why}`));
      };
      const timer = setTimeout(fail, 1000 * LAB.patience, `${LAB.patience} seconds are over`);
      worker.onerror = (event) => fail(event.message);
      worker.onmessage = ({ data }) => {
        clearTimeout(timer);
        if (data.broken) fail(data.broken);
        else resolve();
      };
      worker.postMessage(parts);
    });
    URL.revokeObjectURL(url);
    // On a slow machine three times what Python needed to start: it may be busier now.
    const took = Math.round(3 * (performance.now() - begin) / 1000);
    LAB.limit = Math.min(30, Math.max(LAB.seconds, took));
  })();
  return python;
}

// What the worker needs: compiled once, and kept for the next worker.
async function parted() {
  await script("lab/pack.js").catch(() => script("lab/pack.js"));
  await script("lab/engine.js").catch(() => {
    throw new Error("Python is not beside these pages. In a clone of the book, make engine "
      + "and then make html put it there; check in the notebook does the same.");
  });
  const { loader, asm, wasm, stdlib, lock } = LAB.engine;
  LAB.engine = null;
  const text = async (part) => new TextDecoder().decode(await unpacked(part));
  const parts = await Promise.all([text(loader), text(asm),
    unpacked(wasm).then((bytes) => WebAssembly.compile(bytes)), unpacked(stdlib),
    bytesOf(LAB.files.files)]);
  return { loader: parts[0], asm: parts[1], wasm: parts[2], stdlib: parts[3], lock,
    files: parts[4] };
}

function script(path) {
  const root = document.documentElement.dataset.content_root ?? "./";
  return new Promise((resolve, reject) => {
    const made = make("script", { src: new URL(root + path, location.href).href });
    made.onload = resolve;
    made.onerror = reject;
    document.head.append(made);
  });
}

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

async function unpacked(base64) {
  const stream = new Blob([bytesOf(base64)]).stream();
  const whole = new Response(stream.pipeThrough(new DecompressionStream("gzip")));
  return new Uint8Array(await whole.arrayBuffer());
}

// What the reader's code sent, round by round: devices on a circle, arrows between them.
class Messages {
  constructor(figure, rounds) {
    this.rounds = rounds;
    this.devices = 1 + Math.max(...rounds.flat().flatMap(([i, j]) => [i, j]));
    this.svg = this.draw("svg", { viewBox: "0 0 300 300", role: "img" });
    this.arrows = this.draw("g", {}, this.svg);
    for (let i = 0; i < this.devices; i++) this.device(i);
    this.words = make("p", { className: "lab-round" });
    this.words.setAttribute("aria-live", "polite");
    const button = (textContent, act) => {
      const made = make("button", { type: "button", textContent });
      made.addEventListener("click", () => { this.stop(); act(); });
      return made;
    };
    figure.append(this.svg, this.words, make("div", { className: "lab-bar" },
      button("Back", () => this.show(this.at - 1)), button("Next", () => this.show(this.at + 1)),
      button("Play", () => this.play())));
    this.show(0);
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.play();
  }

  draw(tag, about, into) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(about)) made.setAttribute(name, value);
    into?.append(made);
    return made;
  }

  place(i, radius = 120) {
    const angle = 2 * Math.PI * (i / this.devices) - Math.PI / 2;
    return [150 + radius * Math.cos(angle), 150 + radius * Math.sin(angle)];
  }

  device(i) {
    const [cx, cy] = this.place(i), fill = LAB.colours[i % LAB.colours.length];
    this.draw("circle", { cx, cy, r: 16, fill, class: "lab-device" }, this.svg);
    this.draw("text", { x: cx, y: cy + 5, "text-anchor": "middle",
      class: `lab-number${i % LAB.colours.length ? "" : " on-dark"}` }, this.svg).textContent = i;
  }

  show(at) {
    this.at = (at + this.rounds.length) % this.rounds.length;
    this.arrows.replaceChildren();
    const round = this.rounds[this.at], most = Math.max(...this.rounds.flat().map((m) => m[2]));
    for (const [i, j, size] of round) this.arrow(i, j, 1.5 + 4 * (size / most));
    const sizes = round.map((m) => m[2]), numbers = Math.max(...sizes);
    const upTo = Math.min(...sizes) < numbers ? "up to " : "";
    const s = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
    this.words.textContent = `${this.devices} devices, your round ${this.at + 1} of `
      + `${this.rounds.length}: ${s(round.length, "message")} of ${upTo}${s(numbers, "number")}.`;
    this.svg.setAttribute("aria-label", `${this.words.textContent} `
      + round.map(([i, j]) => `${i} to ${j}`).join(", "));
  }

  // Bent to the right, so that two messages of a swap lie side by side.
  arrow(i, j, width) {
    const [a, b] = [this.place(i), this.place(j)];
    const [dx, dy] = [b[0] - a[0], b[1] - a[1]], length = Math.hypot(dx, dy);
    const bend = [(a[0] + b[0]) / 2 - (dy / length) * 14, (a[1] + b[1]) / 2 + (dx / length) * 14];
    const short = (from, by) => {
      const [x, y] = [bend[0] - from[0], bend[1] - from[1]], n = Math.hypot(x, y);
      return [from[0] + (x / n) * by, from[1] + (y / n) * by];
    };
    const begin = short(a, 18), end = short(b, 21 + width), tip = short(b, 18);
    const [ux, uy] = [(tip[0] - end[0]), (tip[1] - end[1])], n = Math.hypot(ux, uy);
    const side = 2.5 + width, [px, py] = [(-uy / n) * side, (ux / n) * side];
    this.draw("path", { d: `M${begin} Q${bend} ${end}`, "stroke-width": width,
      class: "lab-arrow" }, this.arrows);
    this.draw("path", { d: `M${tip} L${end[0] + px},${end[1] + py} L${end[0] - px},${end[1] - py}Z`,
      class: "lab-tip" }, this.arrows);
  }

  play() {
    this.show(0);
    this.clock = setInterval(() => {
      if (this.at === this.rounds.length - 1 || !this.svg.isConnected) return this.stop();
      this.show(this.at + 1);
    }, 1000);
  }

  stop() { clearInterval(this.clock); }
}
