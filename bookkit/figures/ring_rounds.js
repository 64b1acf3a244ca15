// Ring attention with a causal mask, drawn and in words: left, who has whose keys; in the
// middle, each device's time; right, the scores, a row for each chunk of queries, in the
// colour of the device that computes them. `now`: how many rounds have passed. `size`: of
// a pair of chunks, in quarters of a pair in contiguous order.
const NARROW = 350, GRID = 232;

function state(data, choice) {
  const k = choice.devices, { at, pairs } = data[choice.order][k];
  const most = pairs.map((row) => Math.max(...row)), size = 4 / at[0][0].length ** 2;
  return { k, at, pairs, most, size, code: data.code, title: choice.order,
    chunks: k * at[0][0].length };
}

// Where the lanes begin, and how wide a quarter of a pair is.
function left(d) {
  return d.narrow ? 118 : 172;
}

function unit(d) {
  return Math.floor((350 - 118) / (4 * d.k));
}

// Where the scores begin.
function corner(d) {
  return d.narrow ? [59, 54 + 30 * d.k] : [454, 24];
}

function steps(d) {
  return d.k;
}

function height(d) {
  return d.narrow ? corner(d)[1] + GRID + 4 : 284;
}

function sum(numbers) {
  return numbers.reduce((a, b) => a + b, 0);
}

// The round in which device `i` has the keys of chunk `b`.
function roundOf(d, i, b) {
  return d.at.findIndex((row) => row[i].includes(b));
}

function drawing(d, now) {
  const [x, y] = corner(d), [queries, keys] = columns(d);
  const heads = [[queries, "queries"], d.narrow ? [keys, "keys"] : [124, "keys here"],
    [left(d) + 2 * d.k * unit(d), "time"]];
  return heads.map(([x, words]) => text(x, 12, words)).join("") +
    text(x + GRID / 2, y - 12, "scores: queries ↓, keys →") +
    range(d.k).map((i) => row(d, i, now)).join("") + grid(d, now);
}

// The middles of what is said of queries and keys.
function columns(d) {
  return d.narrow ? [40, 94] : [56, 140];
}

function row(d, i, now) {
  const y = 24 + 30 * i, r = Math.max(now - 1, 0), keys = d.at[r][i];
  const home = d.at[0].findIndex((own) => own.includes(keys[0]));
  const [queries, named] = columns(d), x = named - (d.narrow ? 25 : 33);
  const came = r > 0 ? arrow(d, [x, y - 8], [x, y + 4], "now") : "";
  const chunks = (numbers) => numbers.join(d.narrow ? ", " : " and ");
  const bars = range(d.k).map((round) => bar(d, i, round, y, now));
  return swatch(i, [4, y + 6, 12, 12]) + text(queries, y + 16, chunks(d.at[0][i])) +
    swatch(home, [x - 6, y + 6, 12, 12]) +
    text(named + (d.narrow ? 4 : 0), y + 16, chunks(keys)) + came +
    ground(left(d), y, sum(d.most) * d.size * unit(d), 24) + bars.join("");
}

// What device `i` does in a round: a bar as long as its pairs, from the round's start.
function bar(d, i, round, y, now) {
  const pairs = d.pairs[round][i], wide = pairs * d.size * unit(d) - 1;
  const x = left(d) + sum(d.most.slice(0, round)) * d.size * unit(d);
  const box = [x, y, wide, 24];
  return pairs ? work(d, i, "forward", box, round + 1, when(round, now)) : "";
}

function when(round, now) {
  return round >= now ? "todo" : round === now - 1 ? "now" : "done";
}

function grid(d, now) {
  const side = Math.floor(GRID / d.chunks), [left, top] = corner(d);
  const square = (i, a, b) => {
    const at = `x="${left + b * side}" y="${top + a * side}" width="${side - 1}"`;
    const state = when(roundOf(d, i, b), now);
    return `<g class="score work ${state}"><rect ${at} height="${side - 1}" ` +
      `fill="${colours[i % colours.length]}"/></g>`;
  };
  return range(d.k).flatMap((i) => d.at[0][i].flatMap((a) =>
    range(a + 1).map((b) => square(i, a, b)))).join("");
}

function summary(d) {
  const all = sum(d.most), done = sum(d.pairs.map(sum));
  const quarter = d.size === 1
    ? `, each a quarter of one in contiguous order: as long as ${ratio(all, 4, 2)} of these`
    : `: ${all}`;
  return `The ${d.title} order, k = ${d.k} devices, ${d.chunks} chunks, causal: round by ` +
    `round the busiest device computes ${d.most.join(", ")} pairs of chunks${quarter}. ` +
    `Of the devices' time, ${ratio(100 * (d.k * all - done), d.k * all, 1)}% is waiting.`;
}

function acts(d, now) {
  return now ? ["round", ...(now === d.k ? ["end"] : [])] : ["start"];
}

function moment(d, now) {
  if (!now) return `Round 0 of ${d.k}: every device has its own keys and values.`;
  const doing = d.pairs[now - 1].map((pairs, i) => {
    const what = pairs ? `${pairs} ${pairs > 1 ? "pairs" : "pair"}` : "waits";
    return `device ${i} has the keys of ${d.at[now - 1][i].join(" and ")}: ${what}`;
  });
  return `Round ${now} of ${d.k}: ${doing.join("; ")}.`;
}
