// Two timelines of a step, one line of Python apart, recorded; the quicker one goes on
// with its next step while the slower one ends. `now`: milliseconds of both clocks.
const LANE = 24, BETWEEN = 92, NARROW = 350, SMOOTH = true, BEGINS = true;

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

function height(d) {
  return 2 * between(d) + 16;
}

function between(d) {
  return d.narrow ? BETWEEN + 16 : BETWEEN;
}

// Where the lanes begin, how wide and how far down they are.
function frame(d) {
  return d.narrow ? [46, 298, 42] : [60, 630, 26];
}

function x(d, ms) {
  const [left, wide] = frame(d);
  return left + Math.round((wide * Math.min(ms, d.longest)) / d.longest);
}

// The spans of a run until the slower one's end: its step again and again.
function until(d, run) {
  const again = range(Math.ceil(d.longest / run.length));
  return again.flatMap((n) => run.spans.map(([device, kind, start, end]) =>
    [device, kind, start + n * run.length, end + n * run.length]))
    .filter((span) => span[2] < d.longest);
}

function drawing(d, now) {
  const line = x(d, now), bottom = 2 * between(d) - 8;
  return panel(d, d.reads, 0, now) + panel(d, d.keeps, between(d), now) +
    text(Math.max(18, Math.min(line, across(d) - 30)), bottom + 16, `${Math.floor(now)} ms`);
}

function panel(d, run, y, now) {
  const [left, wide, top] = frame(d), line = x(d, now), high = 2 * LANE;
  const ends = range(Math.floor(d.longest / run.length) + 1).slice(1)
    .filter((n) => n * run.length < Math.min(now, d.longest - 0.5))
    .map((n) => `<path d="M${x(d, n * run.length)} ${y + top - 4}v${high + 6}" ` +
      'stroke="currentColor" stroke-dasharray="3 2"/>');
  const verdict = `${run.says} as fast as one device`;
  return text(left, y + 16, run.line, "start", 12) +
    (now < steps(d) ? "" : d.narrow ? text(left, y + 33, verdict, "start", 12, "now")
      : text(left + wide, y + 16, verdict, "end", 12, "now")) +
    d.lanes.map((name, i) => lane(d, run, i, y + top + LANE * i, now)).join("") +
    ends.join("") +
    `<path d="M${line} ${y + top - 3}v${high + 2}" stroke="currentColor"/>`;
}

// A lane until now: what its device did, and red where it did nothing.
function lane(d, run, i, y, now) {
  const [left, wide] = frame(d), line = x(d, now);
  const spans = until(d, run).filter(([device, , start]) =>
    device === d.lanes[i] && start < now);
  return text(left - (d.narrow ? 24 : 30), y + 15, d.lanes[i]) +
    ground(left, y, wide, LANE - 4) +
    `<rect class="idle" x="${left}" y="${y}" width="${line - left}" height="${LANE - 4}"/>` +
    spans.map((span) => bar(d, i, span, y, now)).join("");
}

function bar(d, i, [, kind, start, end], y, now) {
  const from = x(d, start), to = x(d, Math.min(end, now));
  return to - from < 1 ? "" : work(d, i, kind, [from, y, to - from, LANE - 4], "", "done");
}

function says(run) {
  return `with ${run.line}, a step takes ${run.ms.toFixed(0)} ms, ${run.says} as fast ` +
    "as on one device";
}

function summary(d) {
  return `A step of LeNet on two devices, ${d.batch} images: ${says(d.reads)}; ` +
    `${says(d.keeps)}. Plain: forward; striped: backward; crossed: update; dotted: ` +
    "copy. Red: the device has nothing to do.";
}

function moment(d, now) {
  if (!now) return "After 0 ms: nothing has begun.";
  const doing = [d.reads, d.keeps].map((run) => {
    const at = until(d, run).filter((s) => s[2] <= now && now < s[3]);
    const busy = new Set(at.map((span) => span[0])).size;
    return ["no device works", "one device works", "both devices work"][busy];
  });
  return `After ${now} ms: above, ${doing[0]}; below, ${doing[1]}.`;
}
