// A ring allreduce, drawn and in words. Chunks stand side by side, devices one below the
// other, so that a message goes one row down, and from the last to the first. `now`: how
// many rounds have passed. `k`: devices.
const NARROW = 350;

function state(data, choice) {
  const k = choice.devices, key = `${k},${choice.size}`;
  return { k, ring: data.rings[k], chunks: data.chunks[key], sent: data.sent[key],
    naive: data.naive[key], code: data.code };
}

function steps(d) {
  return d.ring.length;
}

function height(d) {
  return 54 + 44 * d.k;
}

// Where the chunks begin, and how wide a chunk's column is.
function left(d) {
  return d.narrow ? 34 : 80;
}

function width(d) {
  return d.narrow ? Math.min(60, Math.floor(236 / d.k)) : Math.min(100, Math.floor(480 / d.k));
}

// The devices whose numbers are in chunk `c` on device `i`. While they add, a partial
// sum travels, and each device keeps its own chunks.
function held(d, i, c, now) {
  const { k, ring } = d;
  if (now < k) {
    const partial = now > 0 && ring[now - 1][i] === c;
    return partial ? range(now + 1).map((j) => (i - now + j + k) % k) : [i];
  }
  const complete = ring.slice(k - 2, now).map((arriving) => arriving[i]);
  return complete.includes(c) ? range(k) : [i];
}

// Bytes that device `i` has sent after `now` rounds.
function sent(d, i, now) {
  const receiver = (i + 1) % d.k;
  return d.ring.slice(0, now)
    .reduce((sum, arriving) => sum + d.chunks[arriving[receiver]], 0);
}

function drawing(d, now) {
  const right = left(d) + d.k * width(d), roomy = width(d) > 44;
  const heads = d.chunks.map((nbytes, c) =>
    text(middleOf(d, c), 14, roomy ? `chunk ${c}` : c) +
    (roomy ? text(middleOf(d, c), 28, `${number(nbytes)} B`, "middle", d.narrow ? 10 : 9) : ""));
  return heads.join("") + text(right + 6, 14, "bytes sent", "start") +
    range(d.k).map((i) => row(d, i, now)).join("");
}

function middleOf(d, c) {
  return left(d) + c * width(d) + Math.floor(width(d) / 2);
}

function row(d, i, now) {
  const y = 44 + 44 * i, right = left(d) + d.k * width(d);
  return swatch(i, [4, y + 5, 12, 12]) +
    text(22, y + 15, d.narrow ? i : `device ${i}`, "start") +
    range(d.k).map((c) => cell(d, i, c, now)).join("") +
    text(right + 6, y + 15, number(sent(d, i, now)), "start") +
    text(right + 6, y + 27, `of ${number(d.sent[i])}`, "start", d.narrow ? 10 : 9);
}

// A chunk on a device: a stripe for each device in it, how many, what arrived.
function cell(d, i, c, now) {
  const x = left(d) + c * width(d), y = 44 + 44 * i;
  const members = held(d, i, c, now).sort((a, b) => a - b);
  const stripe = Math.floor((width(d) - 8) / d.k);
  const stripes = members.map((j) => swatch(j, [x + 2 + j * stripe, y + 2, stripe, 14]));
  const arrived = now > 0 && d.ring[now - 1][i] === c;
  const middle = x + 2 + Math.floor((d.k * stripe) / 2);
  const message = arrived ? arrow(d, [middle, y - 10], [middle, y - 1], "now") : "";
  const label = members.length === d.k ? "sum" : `${members.length}/${d.k}`;
  return `<g class="chunk ${arrived ? "now" : ""}">` +
    ground(x, y, width(d) - 4, 32) + stripes.join("") +
    text(middle, y + 28, label, "middle", 10) + `</g>${message}`;
}

function summary(d) {
  const k = d.k, nbytes = d.chunks.reduce((sum, n) => sum + n, 0);
  return `Ring, k = ${k} devices, an array of N = ${number(nbytes)} bytes in ${k} ` +
    `chunks: ${steps(d)} rounds. 2(k − 1)/k · N = ${2 * (k - 1)}/${k} · N = ` +
    `${formula(2 * (k - 1) * nbytes, k)} bytes are sent by ${senders(d)}. In the ` +
    `naive allreduce, device 0 would send (k − 1) · N = ${number(d.naive[0])}.`;
}

// Bytes by the formula, with two decimals where the chunks are not whole.
function formula(part, k) {
  return part % k ? ratio(part, k, 2) : number(part / k);
}

// Whether all devices send what the formula says.
function senders(d) {
  if (new Set(d.sent).size === 1) return "every device";
  const each = d.sent.map(number).join(", ");
  return `a device on average; as the chunks differ, they send ${each}`;
}

function moment(d, now) {
  const k = d.k;
  if (now === 0) {
    return `Round 0 of ${steps(d)}: every device holds its own numbers only.`;
  }
  const [phase, verb] = now < k ? ["reduce-scatter", "adds"] : ["allgather", "copies"];
  const doing = d.ring[now - 1].map((c, i) =>
    `device ${i} ${verb} chunk ${c} from device ${(i - 1 + k) % k}`).join(", ");
  return `Round ${now} of ${steps(d)}, ${phase}: ${doing}. ${result(d, now)}`;
}

function acts(d, now) {
  if (now < d.k) return [now ? "add" : "start"];
  return [...(now === d.k ? ["own"] : []), now === steps(d) ? "last" : "copy"];
}

function result(d, now) {
  const k = d.k;
  if (now < k - 1) return `What has arrived is the sum of ${now + 1} devices.`;
  if (now === k - 1) {
    const holds = d.ring[k - 2].map((c, i) => `device ${i} chunk ${c}`).join(", ");
    return `Each device holds one chunk of the sum: ${holds}.`;
  }
  if (now === steps(d)) return "Every device holds the whole sum.";
  return `Each device holds ${now - k + 2} of ${k} chunks of the sum.`;
}
