// A slide is 1280 × 720; reveal.js enlarges it to the window. What is too large for it
// is made smaller here, before the first slide is shown.
const BOTTOM = 680, WIDTH = 1200;

function fit(slide) {
  const body = slide.querySelector(".body"), at = slide.getBoundingClientRect();
  const parts = [body, ...body.querySelectorAll("pre, table, img, svg, .MathJax")];
  for (let zoom = 1; zoom > 0.3; zoom -= 0.025) {
    body.style.zoom = zoom;
    body.style.width = `${WIDTH / zoom}px`;
    const boxes = parts.map((part) => part.getBoundingClientRect());
    if (body.scrollWidth <= body.clientWidth + 1 && boxes.every((box) =>
      box.bottom - at.top <= BOTTOM && box.right - at.left <= WIDTH + 40)) break;
  }
}

addEventListener("load", async () => {
  await window.MathJax?.startup.promise; // not every chapter has a formula
  const slides = document.querySelectorAll(".slides > section");
  for (const slide of slides) slide.style.display = "block";
  // A figure lays itself out anew when it learns how wide it is.
  for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
  slides.forEach(fit);
  for (const slide of slides) slide.style.display = "";
  await Reveal.initialize({
    width: 1280, height: 720, margin: 0, center: false, hash: true, transition: "none",
    slideNumber: "c/t", controls: false, plugins: [RevealNotes],
    // Keys are the figure's while the reader is in one.
    keyboardCondition: () => !document.activeElement.closest(".d2l-figure"),
  });
});
