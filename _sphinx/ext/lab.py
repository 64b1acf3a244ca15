"""Editors for exercises and cells that a page can run: what each begins with.

`_sphinx/static/lab.js` makes them; the pages that have none do not load it. `lab-task`
puts one anywhere: its arguments are the chapter and the number, and below is the code
with which it begins, which is shown where no script runs.
"""

import json
import sys
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).parents[2]))
from bookkit.lab import cells, pack
from d2l_ext import palette

chapters = cache(pack.chapters)  # by the sources, which no build changes


def tasks(chapter):
    """Return {number: what the editor begins with} of a chapter's exercises."""
    from exercisekit import questions

    return {number: pack.stub(question)
            for (_, number), question in questions(chapter).items()}


def complete(app, pagename, templatename, context, doctree):
    chapter = pagename.split("/")[-1]
    if app.builder.name != "html" or doctree is None:
        return
    placed = {(n["chapter"], n["number"]) for n in doctree.findall(_Place)}
    found = {chapter: tasks(chapter)} if chapter in chapters() else {}
    path = Path(app.env.doc2path(pagename))
    codes = cells.editors(path) if path.suffix == ".ipynb" else []
    for name, number in placed:
        found.setdefault(name, {})[number] = tasks(name)[number]
    if found or codes:
        said = json.dumps({"chapter": chapter, "tasks": found, "cells": codes,
                           "colours": palette.DEVICE_COLOURS})
        said = said.replace("<", "\\u003c")
        context["body"] += f'<script type="application/json" id="lab">{said}</script>'
        app.add_js_file("lab.js")
        app.add_css_file("lab.css")


class _Place(nodes.General, nodes.Element):
    pass


class LabTask(SphinxDirective):
    """An editor for one exercise: chapter and number, and the code to begin with."""

    required_arguments, has_content = 2, True

    def run(self):
        chapter, number = self.arguments
        place = _Place(chapter=chapter, number=int(number))
        code = "\n".join(self.content)
        place += nodes.literal_block(code, code, language="python")
        return [place]


def _begin(writer, node):
    writer.body.append(f'<div class="lab-place" data-chapter="{node["chapter"]}" '
                       f'data-number="{node["number"]}">')


def _end(writer, node):
    writer.body.append("</div>")


def setup(app):
    app.add_node(_Place, html=(_begin, _end))
    app.add_directive("lab-task", LabTask)
    app.connect("html-page-context", complete, priority=800)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
