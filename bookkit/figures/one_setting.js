// Two timelines of a step, one line of Python apart, recorded; the quicker one goes on
// with its next step while the slower one ends. `now`: milliseconds of both clocks.
const LEFT = 60, WIDE = 630, LANE = 24, TOP = 26, BETWEEN = 92;

function state(data) {
  const [reads, keeps] = ["reads", "keeps"].map((name) => ({
    line: data.lines[name], ms: data.ms[name], says: data.says[name],
    spans: data.spans[name], length: Math.max(...data.spans[name].map((s) => s[3])) }));
  const lanes = [...new Set(reads.spans.map((span) => span[0]))].sort();
  return { reads, keeps, lanes, batch: data.batch, lane: "device",
    longest: Math.max(reads.length, keeps.length) };
}

function steps(d) {
  return Math.ceil(d.longest);
}

function height() {
  return 2 * BETWEEN + 16;
}

function x(d, ms) {
  return LEFT + Math.round(WIDE * ms / d.longest);
}

// The spans of a run until the slower one's end: its step again and again.
function until(d, run) {
  const again = range(Math.ceil(d.longest / run.length));
  return again.flatMap((n) => run.spans.map(([device, kind, start, end]) =>
    [device, kind, start + n * run.length, end + n * run.length]))
    .filter((span) => span[2] < d.longest);
}

function drawing(d, now) {
  const line = x(d, Math.min(now, d.longest)), bottom = 2 * BETWEEN - 8;
  return panel(d, d.reads, 0, now) + panel(d, d.keeps, BETWEEN, now) +
    `<path d="M${line} 18V${bottom}" stroke="currentColor"/>` +
    text(Math.min(line, 670), bottom + 16, `${now} ms`);
}

function panel(d, run, y, now) {
  const ends = range(Math.floor(d.longest / run.length) + 1).slice(1)
    .filter((n) => n * run.length < d.longest - 0.5)
    .map((n) => `<path d="M${x(d, n * run.length)} ${y + TOP - 4}v${2 * LANE + 6}" ` +
      'stroke="currentColor" stroke-dasharray="3 2"/>');
  return text(LEFT, y + 16, run.line, "start", 12) +
    text(LEFT + WIDE, y + 16, `${run.says} as fast as one device`, "end", 12, "now") +
    d.lanes.map((name, i) => text(30, y + TOP + LANE * i + 15, name) +
      ground(LEFT, y + TOP + LANE * i, WIDE, LANE - 4)).join("") +
    until(d, run).map((span) => bar(d, span, y, now)).join("") + ends.join("");
}

function bar(d, [device, kind, start, end], y, now) {
  const from = x(d, start), to = x(d, Math.min(end, d.longest));
  if (to - from < 1) return "";
  const lane = d.lanes.indexOf(device), when = start >= now ? "todo" : "done";
  return work(d, lane, kind, [from, y + TOP + LANE * lane, to - from, LANE - 4], "", when);
}

function says(run) {
  return `with ${run.line}, a step takes ${run.ms.toFixed(0)} ms, ${run.says} as fast ` +
    "as on one device";
}

function summary(d) {
  return `A step of LeNet on two devices, ${d.batch} images: ${says(d.reads)}; ` +
    `${says(d.keeps)}. Plain: forward; striped: backward; crossed: update; dotted: copy.`;
}

function moment(d, now) {
  const doing = [d.reads, d.keeps].map((run) => {
    const at = until(d, run).filter((s) => s[2] <= now && now < s[3]);
    const busy = new Set(at.map((span) => span[0])).size;
    return `${["no device works", "one device works", "both devices work"][busy]}`;
  });
  return `After ${now} ms: above, ${doing[0]}; below, ${doing[1]}.`;
}
