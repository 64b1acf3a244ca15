// What page_checks.py asks of a page that is open. Positions are CSS pixels.
"use strict";

// What is measured is where things come to rest.
document.head.insertAdjacentHTML("beforeend",
  "<style>*, ::before, ::after { transition: none !important; }</style>");

// As in a font whose letters are a quarter wider than those of setIn.
function widen() {
  document.head.insertAdjacentHTML("beforeend",
    "<style>.d2l-figure text { letter-spacing: 0.15em; }</style>");
}

// A name and a few words, for messages.
function describe(element) {
  const id = element.id ? `#${element.id}` : "";
  const kind = [...element.classList].slice(0, 2).map((c) => `.${c}`).join("");
  const words = element.textContent.trim().replace(/\s+/g, " ").slice(0, 40);
  return `<${element.localName}${id}${kind}> ${words}`.trim();
}

function isShown(element) {
  const { width, height } = element.getBoundingClientRect();
  return width > 0 && height > 0 &&
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
}

// Whether something around it scrolls or cuts off what is too wide.
function isHeld(element) {
  for (let e = element.parentElement; e && e !== document.body; e = e.parentElement)
    if (getComputedStyle(e).overflowX !== "visible") return true;
  return false;
}

async function layout() {
  await imagesDrawn();
  const page = document.scrollingElement, width = page.clientWidth, problems = [];
  if (page.scrollWidth > width)
    problems.push(`the page is ${page.scrollWidth} wide and scrolls sideways`);
  const outside = [...document.querySelectorAll("main *")].filter((element) => {
    const { left, right } = element.getBoundingClientRect();
    return (left < -1 || right > width + 1) && isShown(element) && !isHeld(element);
  });
  for (const element of outside.filter((e) => !outside.includes(e.parentElement)))
    problems.push(`${describe(element)} is outside the ${width} pixels`);
  return [...problems, ...overlaps(), ...tinyImages(),
    ...drawings().flatMap(drawing)];
}

// Parts of the article stand below one another, and buttons beside one another.
function overlaps() {
  const problems = [];
  const inFlow = (e) => isShown(e) && !["absolute", "fixed"].includes(
    getComputedStyle(e).position) && getComputedStyle(e).float === "none" &&
    !getComputedStyle(e).display.startsWith("inline");
  for (const parent of document.querySelectorAll(
    "article, article section, .cell, .cell_output, .d2l-figure, figure, .admonition"))
    apart([...parent.children].filter(inFlow), (a, b) => b.top >= a.bottom - 1);
  apart([...document.querySelectorAll(".article-header-buttons > *, .primary-toggle")]
    .filter(isShown), (a, b) => b.left >= a.right - 1 || a.left >= b.right - 1);
  function apart(elements, isApart) {
    elements.slice(1).forEach((element, i) => {
      const [a, b] = [elements[i], element].map((e) => e.getBoundingClientRect());
      if (!isApart(a, b))
        problems.push(`${describe(element)} overlaps ${describe(elements[i])}`);
    });
  }
  return problems;
}

// A new width may have asked for another form of a drawing. A broken one never comes.
async function imagesDrawn(patience = 2000) {
  for (let ms = 0; ms < patience && tinyImages().length; ms += 50)
    await new Promise((goOn) => setTimeout(goOn, 50));
}

function tinyImages() {
  return [...document.querySelectorAll("main img")]
    .filter((image) => isShown(image) && !image.naturalWidth)
    .map((image) => `the image ${image.getAttribute("src")} was not drawn`);
}

function drawings() {
  return [...document.querySelectorAll("main svg, .d2l-figure svg")];
}

// Words in a drawing: inside it, not on each other, and made of values.
function drawing(svg) {
  const frame = svg.getBoundingClientRect(), problems = [];
  const texts = [...svg.querySelectorAll("text")].filter(
    (t) => t.textContent.trim() && isShown(t));
  const boxes = texts.map((text) => text.getBoundingClientRect());
  texts.forEach((text, i) => {
    const a = boxes[i], words = text.textContent.trim();
    if (a.left < frame.left - 1 || a.right > frame.right + 1 ||
        a.top < frame.top - 2 || a.bottom > frame.bottom + 2)
      problems.push(`in ${name(svg)}, “${words}” is outside`);
    for (let j = 0; j < i; j++) {
      const b = boxes[j];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      // Boxes have room for accents and descenders, which may share it.
      if (wide > 2 && high > 0.4 * Math.min(a.height, b.height))
        problems.push(
          `in ${name(svg)}, “${words}” lies on “${texts[j].textContent.trim()}”`);
    }
  });
  return problems;
}

// Words of a drawing whose colour is too near to that of the shape they lie on.
function paleLabels(svg) {
  const shapes = [...svg.querySelectorAll("rect, circle, ellipse, path, polygon, text")]
    .filter((e) => !e.closest("defs, pattern, marker") && isShown(e));
  const boxes = shapes.map((e) => e.getBoundingClientRect()), hiding = shapes.map(hides);
  return shapes.flatMap((text, i) => {
    if (text.localName !== "text" || !text.textContent.trim()) return [];
    const { left, right, top, bottom } = boxes[i];
    const middle = new DOMPoint((left + right) / 2, (top + bottom) / 2);
    const behind = shapes.slice(0, i).findLast((e, j) => hiding[j] &&
      isIn(boxes[j], middle) && e.isPointInFill(
        middle.matrixTransform(e.getScreenCTM().inverse())));
    const colour = getComputedStyle(text).fill;
    const under = behind ? getComputedStyle(behind).fill : ground(svg.parentElement);
    const ratio = contrast(channels(colour), channels(under));
    return ratio < 4.5 ? [`in ${name(svg)}, “${text.textContent.trim()}”: ` +
      `${colour} on ${under} is ${ratio.toFixed(2)}`] : [];
  });
}

// Whether a shape, of one colour, hides what is behind it. The lines of a hatch hide
// little.
function hides(shape) {
  const { fill, fillOpacity, opacity } = getComputedStyle(shape);
  return shape.localName !== "text" && fill.startsWith("rgb") &&
    (channels(fill)[3] ?? 1) * fillOpacity * opacity >= 0.5;
}

function isIn(box, { x, y }) {
  return x >= box.left && x <= box.right && y >= box.top && y <= box.bottom;
}

// Drawings and figures that are to be read, as they are shown.
function readable() {
  return [...document.querySelectorAll("main img, .d2l-figure svg")].filter((e) =>
    !e.closest("[aria-hidden=true]") && e.checkVisibility() &&
    e.getBoundingClientRect().width && (e.localName === "svg" ||
    /\/_images\/.*\.svg$/.test(e.currentSrc)));
}

// On a phone, words of a figure are large enough to read; a drawing, which may stand in
// another form there, is whole, and whatever scrolls says so.
function smallDrawings() {
  const width = document.documentElement.clientWidth;
  return readable().flatMap((e) => {
    const box = e.closest(".scroll"), { left, right } = e.getBoundingClientRect();
    const what = e.localName === "svg" ? name(e) : e.currentSrc;
    const isSilent = box && box.scrollWidth > box.clientWidth && !saysHowToScroll(box);
    const problems = isSilent ? [`${what} scrolls, and does not say so`] : [];
    if (e.localName === "img" && (left < 0 || right > width))
      problems.push(`${what} is not whole`);
    const scale = e.viewBox ? (right - left) / e.viewBox.baseVal.width : 0;
    const sizes = [...e.querySelectorAll("text")].filter((t) => t.textContent.trim())
      .map((t) => scale * parseFloat(getComputedStyle(t).fontSize));
    if (sizes.some((size) => size < 9))
      problems.push(`${what} has words of ${Math.min(...sizes).toFixed(1)} pixels`);
    return problems;
  });
}

// [the path of its file, the width at which it is shown] of each drawing.
function drawingsInFiles() {
  return readable().filter((e) => e.localName === "img").map((e) =>
    [new URL(e.currentSrc).pathname, e.getBoundingClientRect().width]);
}

function saysHowToScroll(box) {
  return getComputedStyle(box, "::before").content.includes("swipe");
}

// A plot of a cell keeps the width that its words need, and scrolls in a box.
function smallPlots() {
  return [...document.querySelectorAll(".cell_output img")]
    .filter((e) => e.checkVisibility() && e.naturalWidth > 800).flatMap((e) => {
      const { width } = e.getBoundingClientRect(), box = e.parentElement;
      return width >= 600 && box.clientWidth < innerWidth && saysHowToScroll(box) ? []
        : [`a plot is ${width} wide in a box of ${box.clientWidth}: ` +
           getComputedStyle(box, "::before").content];
    });
}

// A chapter opens with a picture, not with its set-up: the picture on the first screen
// and a half, the first section on the first screen.
function opening(screen = 900) {
  const top = (what) => document.querySelector(what)?.getBoundingClientRect().top + scrollY;
  const section = top("article section section > h2");
  const picture = top("main :is(figure, .d2l-figure, article img)");
  return [...(section <= screen ? [] : [`the first section begins at ${section}`]),
    ...(picture <= 1.5 * screen ? [] : [`the first picture begins at ${picture}`])];
}

// The menu shows where the reader is.
function menu() {
  const here = document.querySelector(".bd-sidebar-primary li.current.active > a");
  const { top, bottom } = here?.getBoundingClientRect() ?? {};
  return top >= 0 && bottom <= innerHeight ? []
    : [`the page stands from ${top} to ${bottom} in the menu`];
}

function name(svg) {
  return svg.closest("[id]")?.id || svg.getAttribute("aria-label") || "a drawing";
}

// Every control of every figure is moved, and must change what is seen or said. What is
// seen is checked each time: `faultsOf` returns messages on a drawing.
function operateFigures(faultsOf = (svg) => [...drawing(svg), ...paleLabels(svg)]) {
  return [...document.querySelectorAll(".d2l-figure")]
    .flatMap((figure) => operate(figure, faultsOf));
}

function operate(figure, faultsOf) {
  for (const fold of figure.querySelectorAll("details")) fold.open = true;
  const problems = [], label = (c) => c.dataset.role || c.getAttribute("aria-label");
  const seen = () => figure.querySelector("svg").innerHTML +
    [...figure.querySelectorAll("p")].map((p) => p.textContent).join("\n");
  const note = (problem) => {
    const text = `${figure.id}: ${problem}`;
    if (!problems.includes(text)) problems.push(text);
  };
  function set(control, value) {
    control.value = value;
    control.dispatchEvent(new Event("input", { bubbles: true }));
    faultsOf(figure.querySelector("svg")).forEach(note);
    const strange = seen().match(/NaN|undefined|Infinity|\[object/);
    if (strange) note(`${label(control)} = ${value} shows ${strange[0]}`);
  }
  function changes(control) {
    const first = control.value, states = new Set([seen()]);
    for (const value of values(control)) {
      set(control, value);
      states.add(seen());
    }
    set(control, first);
    return states.size > 1;
  }
  const middle = (c) => Math.round((Number(c.min) + Number(c.max)) / 2);
  const values = (c) => c.localName === "select" ? [...c.options].map((o) => o.value)
    : [c.min, middle(c), c.max];

  const controls = [...figure.querySelectorAll(".controls :is(input, select)")];
  const buttons = [...figure.querySelectorAll(".controls button")];
  if (!controls.length) note("there is nothing to operate");
  for (const control of [...controls, ...buttons])
    if (!isShown(control)) note(`${label(control)} is not shown`);
  for (const control of controls) {
    // What it changes may depend on another choice.
    const others = controls.filter((c) => c !== control && c.localName === "select");
    const choices = others.flatMap((c) => values(c).map((value) => [c, value]));
    if (!changes(control) && !choices.some(([other, value]) => {
      const first = other.value;
      set(other, value);
      const does = changes(control);
      set(other, first);
      return does;
    })) note(`${label(control)} changes nothing`);
  }
  for (const button of buttons) {
    for (const c of controls) if (c.min) set(c, middle(c));
    const state = () => seen() + buttons.map((b) => b.textContent);
    const before = state();
    button.click();
    if (state() === before) note(`the button ${label(button)} changes nothing`);
  }
  return problems;
}

// Words whose colour is too near to the ground's: WCAG asks for a ratio of 4.5, and of 3
// where letters are large. axe looks at overlapping elements, too, and takes minutes.
function paleWords() {
  const problems = new Map();
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const element = words.currentNode.parentElement, style = getComputedStyle(element);
    const key = [style.color, ground(element), style.fontSize, style.fontWeight].join();
    if (problems.has(key) || !words.currentNode.textContent.trim() ||
        element.closest("script, style, svg, mjx-container, [aria-hidden=true]") ||
        !isShown(element)) continue;
    const pixels = parseFloat(style.fontSize);
    const isLarge = pixels >= 24 || (pixels >= 18.66 && style.fontWeight >= 700);
    const ratio = contrast(channels(style.color), channels(ground(element)));
    problems.set(key, ratio < (isLarge ? 3 : 4.5) &&
      `${describe(element)}: ${style.color} on ${ground(element)} is ${ratio.toFixed(2)}`);
  }
  return [...[...problems.values()].filter(Boolean), ...drawings().flatMap(paleLabels)];
}

// The colour behind an element: its own, or of what it lies on.
function ground(element) {
  for (let e = element; e; e = e.parentElement) {
    const { backgroundColor } = getComputedStyle(e);
    if ((channels(backgroundColor)[3] ?? 1) > 0.5) return backgroundColor;
  }
  return "rgb(255, 255, 255)";
}

function channels(colour) {
  const numbers = colour.match(/[\d.]+(e-\d+)?/g).map(Number);
  return colour.startsWith("color(") ? numbers.map((n, i) => (i < 3 ? n * 255 : n))
    : numbers;
}

function contrast(...colours) {
  const [low, high] = colours.map(([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  }).sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

// Programs in one colour: axe looks at every element, and a chapter has thousands of
// coloured words.
function thinOut() {
  for (const word of document.querySelectorAll(".highlight pre span"))
    word.replaceWith(...word.childNodes);
}

// What axe says against the page, colours apart. Preloading would read style sheets as
// data, which no browser allows for files.
async function faults() {
  const rules = ["color-contrast", "color-contrast-enhanced", "link-in-text-block"];
  const { violations } = await axe.run(document, {
    rules: Object.fromEntries(rules.map((rule) => [rule, { enabled: false }])),
    resultTypes: ["violations"],
    preload: false,
  });
  return violations.flatMap(({ id, nodes }) => nodes.map((node) =>
    `${id}: ${node.target.flat().join(" ")} ${node.html.slice(0, 120)}: ` +
    node.failureSummary.replace(/\s+/g, " ")));
}
