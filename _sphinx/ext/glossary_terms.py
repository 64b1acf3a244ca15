"""Links each term of the glossary where a page uses it first.

The text of a chapter stays as a reader of the notebook sees it. Here, when the page
is rendered, the first use of a term becomes a link to its entry. Terms are not looked
for in headings, code, formulas, links, and what cells print.
"""

import os
import re

from docutils import nodes
from links import xref
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

GLOSSARY = "reference/glossary"
#: Pages that are lists, or that define the terms themselves.
NOT_ON = {
    f"reference/{page}"
    for page in ("bibliography", "claims", "glossary", "licences", "notation")
}
#: Words with another meaning as well: a notebook's cell, a dense layer, a link on the
#: web. They are linked where they stand alone in bold, and so mean the term.
ALSO_OTHER_WORDS = {
    "asynchronous", "atomic", "balance", "bottleneck", "bound", "box", "cell",
    "context", "copies", "crew", "crossing", "dense", "distributed", "efficiency",
    "fold", "gate", "head", "heartbeat", "host", "key", "layer-wise", "layout", "link",
    "node", "overlap", "padding", "peak", "probe", "profile", "pull", "push", "rank",
    "restart", "role", "schedule", "scratch", "segment", "span", "stale", "state",
    "step", "straggler", "trace", "tree", "trial", "view", "warm-up",
}
#: Where no term is looked for.
CLOSED = (
    nodes.Titular,
    nodes.caption,
    nodes.reference,
    nodes.literal,
    nodes.FixedTextElement,
    nodes.math,
    nodes.math_block,
    nodes.raw,
    nodes.image,
    nodes.Invisible,
    addnodes.pending_xref,
    addnodes.index,
)
BLOCK = re.compile(r"(?ms)^```\{glossary\}\n(.*?)\n```")


def _parsed(text):
    """Yield (names, first sentence), as written, of a glossary page's entries."""
    names = []
    for line in "\n\n".join(BLOCK.findall(text)).splitlines():
        if line and not line.startswith(" "):
            names.append(line)
        elif names:
            yield names, line.strip()
            names = []


def entries(text):
    """Return a glossary page's entries: lists of names that stand for one."""
    return [names for names, _ in _parsed(text)]


def definitions(text):
    """Return {name: the first sentence of its entry, in plain words}."""
    source = re.compile(r" ?\{cite\}`[^`]*`")
    marks = re.compile(r"\{\w+\}`([^`<]+?)(?: <[^>]*>)?`|[`*]")
    return {name: marks.sub(r"\1", source.sub("", first))
            for names, first in _parsed(text) for name in names}


def pattern(names):
    """Return a pattern that finds any of `names` in running text, the longest first,
    also in the plural.

    A name that begins with a capital is a proper name, and is found as it is written.
    """
    ordered = sorted(names, key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(_one, ordered))})(?![\w-])")


def _one(name):
    escaped = re.escape(name).replace(r"\ ", r"\s+")
    if name[0] != name[0].lower():
        return f"{escaped}s?"
    first = f"[{name[0]}{name[0].upper()}]" if name[0].isalpha() else escaped[0]
    return f"{first}{escaped[1:]}(?:s|es)?"


class Terms:
    """The terms of a page that are still to be linked."""

    def __init__(self, entries):
        self.entry = {name: names[0] for names in entries for name in names}
        self.pattern = pattern(self.entry)
        self.linked = set()

    def first_use(self, text, bold):
        """Return the next term in `text` that was not linked yet: (match, name), or
        None.

        `bold`: the words of which `text` is the rest, if they are in bold, else "".
        """
        for match in self.pattern.finditer(text):
            name = self.name_of(match.group())
            entry = self.entry[name]
            if entry in self.linked:
                continue
            if name in ALSO_OTHER_WORDS and match.group() != bold:
                continue
            self.linked.add(entry)
            return match, name
        return None

    def name_of(self, words):
        words = re.sub(r"\s+", " ", words)
        for form in (words, words[0].lower() + words[1:]):
            for name in (form, form.removesuffix("s"), form.removesuffix("es")):
                if name in self.entry:
                    return name
        raise KeyError(words)


class LinkTerms(SphinxTransform):
    """Turns the first use of each term into a link to the glossary."""

    default_priority = 500

    def apply(self):
        page = self.env.docname
        path = os.path.join(self.env.srcdir, f"{GLOSSARY}.md")
        is_list = page in NOT_ON or page.startswith("reference/api")
        if is_list or not os.path.exists(path):
            return
        self.env.note_dependency(path)
        with open(path, encoding="utf-8") as stream:
            glossary = stream.read()
        terms, self.said = Terms(entries(glossary)), definitions(glossary)
        for text in list(self.document.findall(nodes.Text)):
            if not _is_closed(text):
                self.link(text, terms)

    def link(self, text, terms):
        rest, parts = text.astext(), []
        bold = rest.strip(" .:") if isinstance(text.parent, nodes.strong) else ""
        while found := terms.first_use(rest, bold):
            match, name = found
            parts += [nodes.Text(rest[: match.start()]), self.xref(match.group(), name)]
            rest = rest[match.end() :]
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(rest)])

    def xref(self, words, name):
        term = nodes.inline(words, words, classes=["glossary-term"],
                            definition=self.said[name])
        return xref(self.env.docname, "std:term", name, term, classes=["glossary-term"])


def _is_closed(node):
    while node is not None:
        is_element = isinstance(node, nodes.Element)
        if isinstance(node, CLOSED) or is_element and "cell" in node["classes"]:
            return True
        node = node.parent
    return False


def define(app, doctree, page):
    """Define each link's term in its title: a browser shows it where one points."""
    for words in doctree.findall(nodes.inline):
        if "definition" in words and isinstance(words.parent, nodes.reference):
            words.parent["reftitle"] = words["definition"]


def setup(app):
    app.add_transform(LinkTerms)
    app.connect("doctree-resolved", define)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
