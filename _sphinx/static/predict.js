// A question above a cell: its output, and the paragraph below it, show once the reader has
// said a number, or chosen, or asked to see. The browser's search finds them.
document.addEventListener("DOMContentLoaded", () => {
  const said = document.querySelector("#predict");
  if (!said) return;
  const questions = JSON.parse(said.textContent);
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const make = (tag, about, ...inside) => {
    const made = Object.assign(document.createElement(tag), about);
    made.append(...inside);
    return made;
  };
  const number = (text) => (text.trim() ? Number(text.replace(/[,\s%]/g, "")) : NaN);

  document.querySelectorAll(".cell.tag_predict").forEach((cell, i) => {
    if (!questions[i]) return;
    const { ask, answer, choices } = questions[i], output = cell.querySelector(".cell_output");
    let next = cell.nextElementSibling;
    while (next?.matches(".claim-badges, .lab")) next = next.nextElementSibling;
    const hidden = next?.matches("p") && !/\bPredict\b/.test(next.textContent)
      ? [output, next] : [output];
    if (hidden.some((part) => part.contains(target))) return;

    const told = make("p", { className: "predict-told", tabIndex: -1 });
    told.setAttribute("role", "status");
    const button = (textContent, act) => {
      const made = make("button", { type: "button", textContent });
      made.addEventListener("click", act);
      return made;
    };
    const show = (guess) => {
      for (const part of hidden) part.removeAttribute("hidden");
      form.remove();
      below.remove();
      const right = guess === answer || number(guess ?? "") === number(answer);
      told.textContent = `${ask} ${guess ? `You: ${guess}, the` : "The"} machine: ${answer}${
        right ? ", too" : ""}.`;
    };
    const shown = (guess) => { show(guess); told.focus({ preventScroll: true }); };
    const guessed = () => {
      if (Number.isNaN(number(field.value))) {
        told.textContent = "Enter a number, or have it shown.";
        field.focus();
      } else shown(field.value.trim());
    };
    const field = make("input", { ariaLabel: "Your number", autocomplete: "off", inputMode: "decimal" });
    const ways = choices ? choices.map((choice) => button(choice, () => shown(choice)))
      : [field, make("button", { type: "submit", textContent: "Guess" })];
    const form = make(choices ? "div" : "form", { className: "predict" }, make("fieldset", {},
      make("legend", { textContent: ask }), ...ways, button("Show it", () => shown())));
    form.addEventListener("submit", (event) => { event.preventDefault(); guessed(); });
    const below = make("p", { className: "predict" }, button("Show the output", () => shown()));
    cell.prepend(form, told);
    output.before(below);
    for (const part of hidden) {
      part.classList.add("predicted");
      part.setAttribute("hidden", "until-found");
      part.addEventListener("beforematch", () => show());
    }
  });
});
