// Four ways of an allreduce, drawn and in words: a panel each, in which devices stand in a
// row. In a device's column the chunks lie one below the other, filled as far as their sums
// have come; arcs are the messages of this round. `now`: how many rounds have passed.
const NARROW = 350, PANEL = 192;

function state(data, choice) {
  const k = choice.devices, ways = data.ways[k];
  return { k, ways, names: Object.keys(ways), nbytes: data.nbytes, code: data.code,
    apart: Math.floor(336 / k), lane: "device" };
}

function steps(d) {
  return Math.max(...d.names.map((name) => d.ways[name].rounds.length));
}

function height(d) {
  return d.narrow ? 4 * PANEL : 2 * PANEL;
}

// Of each device and chunk a number with bit `j` set if device j's numbers are in there,
// after `now` rounds. A device that has sent a sum on keeps it until there is a new one.
function held(d, name, now) {
  const { of, rounds } = d.ways[name];
  let has = range(d.k).map((i) => range(of).map(() => 2 ** i));
  for (const row of rounds.slice(0, now)) {
    const next = has.map((own) => [...own]);
    for (const [from, to, first, many] of row)
      for (const c of range(many)) next[to][first + c] |= has[from][first + c];
    has = next;
  }
  return has;
}

// Bytes that each device has sent after `now` rounds.
function sent(d, name, now) {
  const { of, rounds } = d.ways[name], bytes = range(d.k).map(() => 0);
  for (const [from, , , many] of rounds.slice(0, now).flat()) bytes[from] += many;
  return bytes.map((chunks) => (chunks * d.nbytes) / of);
}

function busiest(d, name, now) {
  return Math.max(...sent(d, name, now));
}

function drawing(d, now) {
  return d.names.map((name, n) => panel(d, name, now, d.narrow ? 7 : 7 + 350 * (n % 2),
    PANEL * (d.narrow ? n : Math.floor(n / 2)))).join("");
}

function panel(d, name, now, x, y) {
  const { rounds } = d.ways[name], all = rounds.length, gone = Math.min(now, all);
  const has = held(d, name, now), arcs = now && now <= all ? rounds[now - 1] : [];
  const over = gone === all ? "done: " : "";
  return text(x, y + 13, name === "star" ? "star (naive)" : name, "start", 12, "now") +
    text(x + 336, y + 13, `${over}round ${gone} of ${all}`, "end") +
    range(d.k).map((i) => column(d, name, has, i, x, y)).join("") +
    arcs.map(([from, to]) => arc(d, from, to, x, y)).join("") +
    text(x, y + 180, `busiest: ${number(busiest(d, name, now))} of ` +
      `${number(busiest(d, name, all))} B sent`, "start");
}

// A device: its chunks, each as wide as there are devices' numbers in it.
function column(d, name, has, i, x, y) {
  const { of } = d.ways[name], wide = Math.min(32, d.apart - 4), top = y + 78;
  const middle = x + i * d.apart + Math.floor(d.apart / 2);
  const left = middle - Math.floor(wide / 2);
  const edge = (c) => Math.floor((72 * c) / of);
  const chunks = has[i].map((bits, c) => swatch(i, [left, top + edge(c),
    Math.max(1, Math.floor((wide * range(d.k).filter((j) => bits & (2 ** j)).length) / d.k)), edge(c + 1) - edge(c)]));
  return ground(left, top, wide, 72) + chunks.join("") +
    text(middle, top + 86, i, "middle", 10);
}

// A message: an arc over the devices between, the higher the farther.
function arc(d, from, to, x, y) {
  const shift = Math.min(4, Math.floor(d.apart / 5)) * (from < to ? 1 : -1);
  const [a, b] = [from, to].map((i) => x + Math.floor((i + 0.5) * d.apart) - shift);
  const high = 12 + Math.floor((70 * Math.abs(from - to)) / d.k) + (from < to ? 0 : 8);
  return `<path class="arrow now" d="M${a} ${y + 74}Q${Math.floor((a + b) / 2)} ` +
    `${y + 74 - high} ${b} ${y + 75}" marker-end="url(#${d.name}-tip)"/>`;
}

function summary(d) {
  const each = d.names.map((name) => {
    const all = d.ways[name].rounds.length, most = busiest(d, name, all);
    return `${name} ${all} rounds, ${number(most)} bytes or ${ratio(most, d.nbytes, 2)} arrays`;
  });
  return `k = ${d.k} devices, an array of ${number(d.nbytes)} bytes. What the busiest ` +
    `device sends: ${each.join("; ")}.`;
}

function moment(d, now) {
  if (!now) return `Round 0 of ${steps(d)}: every device has its own numbers only.`;
  return `Round ${now} of ${steps(d)}: ` +
    `${d.names.map((name) => `${name} ${doing(d, name, now)}`).join("; ")}.`;
}

function doing(d, name, now) {
  const { rounds, of, add } = d.ways[name], row = rounds[now - 1];
  if (!row) return `was done after ${rounds.length}`;
  const verb = now <= add ? "to be added" : "to be kept", [from, to, , many] = row[0];
  const what = many === of ? "its array" : many === 1 ? "a chunk" : `${many} chunks`;
  const rest = row.length > 1 ? ` and ${row.length - 1} more like it` : "";
  return `${from} → ${to}${rest}, ${what} ${verb}`;
}

// Halving folds at its ends, if k is no power of two.
function acts(d, now) {
  return d.names.flatMap((name) => {
    const { rounds, of, add } = d.ways[name], row = rounds[now - 1];
    if (!row) return [];
    if (name === "halving" && row[0][3] === of && of < d.k)
      return [now <= add ? "fold +" : "fold ="];
    if (name === "ring" && now === rounds.length) return ["ring last"];
    return [`${name} ${now <= add ? "+" : "="}`];
  });
}
