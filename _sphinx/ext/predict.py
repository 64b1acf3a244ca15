r"""Questions that a reader answers in the page, before the output shows.

A code cell tagged `predict` says in its metadata, under `predict`, what to `ask`, and
where its stored output has the answer, as a regular expression:

    {"ask": "How many …?", "find": "device 0 sent (\\d+)"}            a number
    {"ask": "Which …?", "find": "fastest: (\\w+)", "choices": ["tree", "ring"]}
    {"ask": "Which …?", "largest": "^(\\w+): ([\\d.]+) ms"}           or "smallest"

`find` has one group, and all that it finds is the same; `choices` may also be a
dictionary, from what is printed to what is shown. `largest` finds a name and a number
several times: `choices` leave some out. `_sphinx/static/predict.js` asks. A question
that the output does not answer is a warning, and its output shows at once.
"""

import json
import re
from pathlib import Path

import nbformat
from sphinx.util import logging

TAG = "predict"
#: Buttons that a reader can look over.
MOST = 4


def question(cell):
    """Return what the page asks, the answer and the choices, if any; of a tagged cell.

    Raises `ValueError` where the stored output does not hold the answer.
    """
    asked = cell.metadata.get("predict", {})
    if not asked.get("ask", "").endswith("?"):
        raise ValueError("its metadata `predict` lacks `ask`, a question")
    choices = asked.get("choices", {})
    if not isinstance(choices, dict):
        choices = {name: name for name in choices}
    kind = next((k for k in ("find", "largest", "smallest") if k in asked), None)
    if kind is None:
        raise ValueError("its metadata `predict` lacks `find`, `largest` or `smallest`")
    found = list(dict.fromkeys(re.findall(asked[kind], printed(cell), re.MULTILINE)))
    if kind != "find":
        numbers = {name: number(text) for name, text in found
                   if name in choices or not choices}
        choices = choices or {name: name for name in numbers}
        found = [(max if kind == "largest" else min)(numbers, key=numbers.get)
                 ] if len(numbers) == len(choices) else []
    if len(found) != 1 or choices and found[0] not in choices:
        raise ValueError(f"its stored output has {found or 'nothing'} for {kind} "
                         f"{asked[kind]!r}: one answer is due")
    if not choices:
        number(found[0])
        return {"ask": asked["ask"], "answer": found[0]}
    if not 2 <= len(choices) <= MOST:
        raise ValueError(f"{len(choices)} choices: 2 to {MOST} are due")
    return {"ask": asked["ask"], "answer": choices[found[0]],
            "choices": [*choices.values()]}


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        raise ValueError(f"its stored output has {text!r}, no number") from None


def printed(cell):
    return "".join(o.text if o.output_type == "stream"
                   else o.get("data", {}).get("text/plain", "") + "\n"
                   for o in cell.outputs)


def questions(path, fail):
    """Return those of a notebook, in the order of its tagged cells.

    `fail` is told which cell has none, and why; `None` stands in its place.
    """
    found = []
    for cell in nbformat.read(path, as_version=4).cells:
        if TAG in cell.metadata.get("tags", []):
            try:
                found.append(question(cell))
            except ValueError as error:
                fail(f"{path}, cell {cell.id}, tagged {TAG}: {error}")
                found.append(None)
    return found


def complete(app, pagename, templatename, context, doctree):
    path = Path(app.env.doc2path(pagename))
    if app.builder.name != "html" or doctree is None or path.suffix != ".ipynb":
        return
    if asked := questions(path, logging.getLogger(__name__).warning):
        said = json.dumps(asked, ensure_ascii=False).replace("<", "\\u003c")
        said = f'<script type="application/json" id="predict">{said}</script>'
        context["body"] += said
        app.add_js_file("predict.js")


def setup(app):
    app.connect("html-page-context", complete, priority=800)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
