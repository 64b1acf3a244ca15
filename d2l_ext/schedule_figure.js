// Draws a schedule whose lanes the page holds, as computed in Python. The functions
// down to moment() have their twins in schedule_svg.py; a test compares the two.
(function () {
  "use strict";

  function count(lane, kind, now) {
    return lane.slice(0, now).split(kind).length - 1;
  }

  function held(lane, now) {
    return count(lane, "F", now) - count(lane, "B", now);
  }

  function peak(lane) {
    return Math.max(...Array.from(lane, (_, t) => held(lane, t + 1)));
  }

  function chunkAt(lane, t, lastFirst) {
    const before = count(lane, lane[t], t);
    const chunks = count(lane, "F", lane.length);
    return lane[t] === "B" && lastFirst ? chunks - 1 - before : before;
  }

  function cell(d, s, t, now) {
    const lane = d.lanes[s], x = 60 + t * d.width, y = 20 + 30 * s;
    const i = s % d.colours.length, fill = d.colours[i];
    const state = t >= now ? "todo" : t === now - 1 ? "now" : "done";
    const box = `x="${x}" y="${y}" width="${d.width - 1}" height="24" rx="2"`;
    const stripes = lane[t] === "B" ? `<rect ${box} fill="url(#${d.name}-stripes)"/>` : "";
    const halo = stripes ? ` stroke="${fill}" stroke-width="3" paint-order="stroke"` : "";
    return `<g class="${state}"><rect ${box} fill="${fill}"/>${stripes}` +
      `<text x="${x + Math.floor(d.width / 2)}" y="${y + 16}" ` +
      `font-size="${d.width > 15 ? 11 : 8}" ` +
      `class="${i ? "on-light" : "on-blue"}"${halo}>` +
      `${chunkAt(lane, t, d.lastFirst)}</text></g>`;
  }

  function row(d, s, now) {
    const lane = d.lanes[s], y = 20 + 30 * s, end = 60 + lane.length * d.width;
    const cells = Array.from(lane, (c, t) => (c === "." ? "" : cell(d, s, t, now)));
    return `<text x="25" y="${y + 16}">stage ${s}</text>` +
      `<rect x="60" y="${y}" width="${end - 60}" height="24" opacity="0.08"/>` +
      cells.join("") +
      `<text x="${end + 35}" y="${y + 16}">${held(lane, now)} / ${peak(lane)}</text>`;
  }

  function drawing(d, now) {
    const slots = d.lanes[0].length, end = 60 + slots * d.width;
    const x = 60 + now * d.width, bottom = 20 + 30 * d.lanes.length;
    return `<text x="${end + 35}" y="12">held / peak</text>` +
      d.lanes.map((_, s) => row(d, s, now)).join("") +
      `<path d="M${x} 14V${bottom}" stroke="currentColor"/>` +
      `<text x="${x}" y="${bottom + 13}">slot ${now}</text>`;
  }

  function summary(d) {
    const p = d.lanes.length, slots = d.lanes[0].length;
    const m = count(d.lanes[0], "F", slots), idle = p * slots - 2 * p * m;
    const percent = Math.round((100 * idle) / (p * slots));
    return `${d.title}, p = ${p} stages, m = ${m} micro-batches: ${idle} of ${p * slots} ` +
      `slots are empty. Bubble: (p − 1) / (m + p − 1) = ${p - 1}/${m + p - 1} = ` +
      `${percent}%. Peak of micro-batches held, stage by stage: ` +
      `${d.lanes.map(peak).join(", ")}.`;
  }

  function moment(d, now) {
    const slots = d.lanes[0].length;
    const doing = d.lanes.map((lane, s) => {
      const word = { F: "forward ", B: "backward ", ".": "waits" }[lane[now - 1]];
      const i = word === "waits" ? "" : chunkAt(lane, now - 1, d.lastFirst);
      return `stage ${s} ${word}${i}`;
    });
    const what = now ? doing.join(", ") : "nothing has begun";
    return `Slot ${now} of ${slots}: ${what}.`;
  }

  // "F3.B" stands for FFF.B: the Python side has counted what repeats.
  function unpack(text) {
    return text.replace(/(.)(\d+)/g, (_, c, n) => c.repeat(Number(n)));
  }

  function start(root) {
    const all = JSON.parse(root.querySelector(".data").textContent);
    const find = (name) => root.querySelector(`[data-role=${name}]`);
    const value = (name) => Number(find(name).value);

    function show() {
      const title = find("schedule").value;
      const lanes = all[title].lanes[`${value("stages")},${value("chunks")}`];
      const d = { name: root.id, title, lastFirst: all[title].last_first,
        colours: all.colours, lanes: lanes.split(" ").map(unpack) };
      const slots = d.lanes[0].length;
      d.width = Math.min(40, Math.floor(560 / slots));
      if (Number(find("clock").max) !== slots) {
        find("clock").max = slots;
        find("clock").value = slots;
      }
      const now = value("clock"), svg = root.querySelector("svg");
      svg.setAttribute("viewBox", `0 0 700 ${40 + 30 * d.lanes.length}`);
      svg.setAttribute("aria-label", summary(d));
      svg.querySelector(".drawing").innerHTML = drawing(d, now);
      find("summary").textContent = summary(d);
      find("moment").textContent = moment(d, now);
      for (const name of ["stages", "chunks", "clock"]) {
        find(`${name}-value`).textContent = value(name);
      }
    }

    function step(by) {
      find("clock").value = value("clock") + by;
      show();
    }

    root.dataset.live = "yes";
    root.querySelector(".controls").hidden = false;
    root.addEventListener("input", show);
    find("back").addEventListener("click", () => step(-1));
    find("on").addEventListener("click", () => step(1));
    show();
  }

  document.querySelectorAll(".schedule-figure:not([data-live])").forEach(start);
})();
