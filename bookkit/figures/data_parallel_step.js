// A step of data parallelism, drawn and in words. Devices stand side by side, and what an
// act makes stands below what the acts before it have made. `now`: how many of the acts
// have passed: copy the parameters (before the first step only), split the minibatch,
// forward, backward, the allreduce's two halves, update.

const NARROW = 350;
// Rows of boxes: what stands there, from which act on, as which kind of work.
const ROWS = [["parameters", 1, "copy"], ["shard", 2, "copy"], ["losses", 3, "forward"],
  ["gradient", 4, "backward"], ["sum", 6, "copy"], ["updated", 7, "update"]];

function state(data, choice) {
  const k = choice.devices, n = choice.batch;
  return { k, n, code: data.code, params: data.params, example: data.example,
    shards: data.shards[`${k},${n}`], sent: data.sent[k], received: data.received[k] };
}

function steps() {
  return 7;
}

function height(d) {
  return 358 + 16 * (d.k - 1);
}

// Where the columns begin, how far they stand apart, and how wide they are.
function frame(d) {
  return d.narrow ? [66, 71, 68] : [112, 148, 136];
}

function left(d, i) {
  const [first, apart] = frame(d);
  return first + apart * i;
}

function wide(d) {
  return frame(d)[2];
}

// Where row `r` begins: the lanes of the allreduce are between rows 3 and 4.
function top(d, r) {
  return 104 + 34 * r + (r > 3 ? 20 + 16 * (d.k - 1) : 0);
}

// Bytes that have come to device `i`, and that have left it, after `now` acts.
function crossed(d, i, now) {
  const came = (now > 0 ? d.params : 0) + (now > 1 ? shard(d, i) : 0);
  const [received, sent] = i === 0 ? [4, 5] : [5, 4];
  return [came + (now > received ? d.received[i] : 0), now > sent ? d.sent[i] : 0];
}

function shard(d, i) {
  return d.shards[i] * d.example;
}

function each(d, draw) {
  return d.shards.map((_, i) => draw(d, i)).join("");
}

function drawing(d, now) {
  const titles = ROWS.map(([title], r) => text(2, top(d, r) + 18, title, "start"));
  const words = d.k > 1 ? text(2, top(d, 3) + 44, "allreduce", "start") : "";
  return host(d) + titles.join("") + each(d, (_, i) => device(d, i, now)) + words +
    each(d, (_, i) => (i ? lane(d, i, now) : "")) + totals(d, now);
}

// The host's memory, where the parameters and the minibatch come from.
function host(d) {
  const from = left(d, 0), to = left(d, d.k - 1) + wide(d), short = to - from < 200;
  const held = short ? "parameters, images"
    : to - from < 300 ? `parameters, ${d.n} images`
      : `${number(d.params)} B of parameters, ${d.n} images`;
  return text(2, 24, "host", "start") + ground(from, 6, to - from, 28) +
    text(Math.floor((from + to) / 2), 24, held);
}

// A device's column: its name, what comes from the host, and its boxes.
function device(d, i, now) {
  const x = left(d, i), middle = x + wide(d) / 2;
  let coming = "";
  if (now === 1 || now === 2) {
    const nbytes = now === 1 ? d.params : shard(d, i);
    coming = arrow(d, [middle - 30, 38], [middle - 30, 70], "now") +
      text(middle - 26, 58, `${number(nbytes)} B`, "start", 10);
  }
  const name = swatch(i, [x, 82, 12, 12]) + text(x + 16, 92, `device ${i}`, "start");
  return coming + name + ROWS.map((_, r) => boxOf(d, i, r, now)).join("");
}

// What row `r` of device `i` holds; a faint ground as long as it is not there. Device 0
// has the sum half an allreduce before the others; a single device's is its gradient.
function boxOf(d, i, r, now) {
  const box = [left(d, i), top(d, r), wide(d), 26], kind = ROWS[r][2];
  const act = r === 4 && i === 0 ? (d.k === 1 ? 4 : 5) : ROWS[r][1];
  if (now < act) return ground(...box);
  return work(d, i, kind, box, label(d, i, r), now === act ? "now" : "done");
}

function label(d, i, r) {
  const images = d.shards[i], all = `${number(d.params)} B`;
  const of = (n) => d.narrow ? `of ${n}` : `of ${n} images`;
  return [all, `${images} images`, of(images), of(images), of(d.n), all][r];
}

// The messages between device `i` and device 0, each in a lane of its own.
function lane(d, i, now) {
  const y = top(d, 3) + 40 + 16 * (i - 1), here = left(d, i) + 6, there = left(d, 0) + wide(d) - 6;
  if (now < 5) return "";
  const [from, to] = now === 5 ? [here, there] : [there, here];
  return arrow(d, [from, y], [to, y], now === 7 ? "done" : "now") +
    text(here + 2, y + 4, `${number(d.params)} B`, "start", d.narrow ? 10 : 9);
}

function totals(d, now) {
  const y = top(d, 5) + 44;
  return text(2, y, "bytes in", "start") + text(2, y + 16, "bytes out", "start") +
    each(d, (_, i) => {
      const [came, went] = crossed(d, i, now);
      const middle = left(d, i) + wide(d) / 2;
      return text(middle, y, number(came)) + text(middle, y + 16, number(went));
    });
}

function summary(d) {
  const params = number(d.params);
  if (d.k === 1) {
    return `One device: it stores ${params} bytes of parameters, as many bytes of ` +
      `gradients, and the whole minibatch of ${d.n} images. There is nothing to sum.`;
  }
  return `k = ${d.k} devices, a minibatch of n = ${d.n} images: shards of ` +
    `${d.shards.join(", ")}. Every device stores all ${params} bytes of the ` +
    "parameters, and as many bytes of gradients. The allreduce sends " +
    `${number(d.sent.reduce((sum, n) => sum + n, 0))} bytes in all, ` +
    `${number(d.sent[0])} of them from device 0, however many images there are.`;
}

function moment(d, now) {
  return `Step ${now} of ${steps(d)}, ${happens(d, now)}`;
}

function acts(d, now) {
  return now ? [`a${now}`] : [];
}

function happens(d, now) {
  const k = d.k, params = number(d.params);
  const alone = "no copies, because the only gradient is the sum.";
  return [
    "before: the parameters and the minibatch are in the host's memory.",
    `copy: each device gets ${params} bytes of parameters, once before the training.`,
    `split: the devices get ${d.shards.join(", ")} of ${d.n} images.`,
    "forward: each device computes the losses of its own images.",
    "backward: each device computes the gradient of its own images.",
    `allreduce, first half: ${k > 1 ? gathers(k, params) : alone}`,
    `allreduce, second half: ${k > 1 ? spreads(k, params) : alone}`,
    "update: all replicas subtract the same gradient, so they stay equal.",
  ][now];
}

function gathers(k, params) {
  if (k === 2) return `device 1 sends ${params} bytes to device 0, which adds.`;
  return `devices 1 to ${k - 1} send ${params} bytes each to device 0, one after the ` +
    "other, and it adds.";
}

function spreads(k, params) {
  const to = k === 2 ? `device 1, ${params} bytes` : `devices 1 to ${k - 1}, ${params} bytes each`;
  return `device 0 sends the sum to ${to}.`;
}
