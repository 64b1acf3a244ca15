"""Links every cell that shows a claim with its row in the claims ledger.

A code cell with the tag `claim-S4` gets the anchor `claim-S4` (the first such
cell of its page) and, below it, a link to the row. The ledger page is written
with three directives::

    ```{claims-counts}
    ```
    ```{claims-sources}
    ```
    ```{claims-ledger} S D
    ```

The argument of the last one chooses claims by the letter of their id. A row has
the anchor `row-S4`. In prose, ``{ref}`S4 <row-s4>` `` and
``{ref}`its cell <claim-s4>` `` work too. All links go through Sphinx's own
labels, so a link without a target is a warning in every builder.
"""

import os
import re

import claims_data
from docutils import nodes
from links import row_of, table, xref
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)
TAG = re.compile(r"tag_claim-(\w+)$")


def link_to(label, text, docname):
    """Return a link to a label anywhere in the book. `docname` is the linking page."""
    words = nodes.inline(text, text, classes=["std", "std-ref"])
    return xref(docname, "std:ref", label.lower(), words)


def make_target(document, node, *labels):
    """Make `node` the target of `labels`, both as anchors and for links."""
    node["ids"] += labels
    node["names"] += [label.lower() for label in labels]
    document.note_explicit_target(node)
    # docutils leads every name of a node to the same one of its anchors.
    document.nameids.update((label.lower(), label) for label in labels)


class CellAnchors(SphinxTransform):
    """Gives tagged cells their anchors and their links to the ledger."""

    default_priority = 400  # before the domains collect the page's labels (850)

    def apply(self):
        seen = set()
        for cell in list(self.document.findall(nodes.container)):
            names = [m.group(1) for m in map(TAG.match, cell["classes"]) if m]
            if cell.get("nb_element") != "cell_code" or not names:
                continue
            first = [f"claim-{name}" for name in names if name not in seen]
            if first:
                make_target(self.document, cell, *first)
            seen.update(names)
            cell.parent.insert(cell.parent.index(cell) + 1, self.badges(names))

    def badges(self, names):
        line = nodes.paragraph(classes=["claim-badges"])
        for name in names:
            line += link_to(f"row-{name}", f"claim {name}", self.env.docname)
            line += nodes.Text(" ")
        return line


class LedgerDirective(SphinxDirective):
    """What the three directives share: the ledger, read and noted as a source."""

    def load(self):
        path = os.path.join(self.env.srcdir, self.config.claims_file)
        self.env.note_dependency(path)
        return claims_data.load(path)

    def markdown(self, text):
        """Return `text` as inline nodes: code, emphasis and links work."""
        parsed, messages = self.state.inline_text(text, self.lineno)
        return parsed + messages


class CountsDirective(LedgerDirective):
    """How many claims have which verdict."""

    def run(self):
        claims = self.load().claims
        line = nodes.paragraph("", f"{len(claims)} claims: ", classes=["claim-counts"])
        for i, verdict in enumerate(claims_data.VERDICTS):
            number = sum(claim.verdict == verdict for claim in claims)
            line += nodes.Text(", " if i else "")
            line += verdict_node(verdict, f"{number} {verdict}")
        line += nodes.Text(".")
        return [line]


class SourcesDirective(LedgerDirective):
    """The documents that the claims come from, each with an anchor."""

    def run(self):
        listing = nodes.definition_list(classes=["claim-sources"])
        for source in self.load().sources.values():
            term = nodes.term("", source.name)
            make_target(self.state.document, term, f"source-{source.name}")
            text = nodes.paragraph()
            text += nodes.reference("", source.title, refuri=source.url)
            text += [nodes.Text(": "), *self.markdown(source.what), nodes.Text(".")]
            listing += nodes.definition_list_item("", term, nodes.definition("", text))
        return [listing]


class TableDirective(LedgerDirective):
    """A table of claims: id, statement, source, verdict, finding, cell."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        letters = self.arguments[0].split()
        rows = [self.row(c) for c in self.load().claims if c.id[0] in letters]
        head = row_of(["Claim", "Statement", "Verdict", "Finding"])
        classes = ["claims-ledger", "colwidths-given"]
        return [table((8, 40, 14, 38), head, rows, classes)]

    def row(self, claim):
        row = row_of([
            nodes.paragraph("", "", nodes.strong("", claim.id)),
            self.statement(claim),
            self.verdict(claim),
            nodes.paragraph("", "", *self.markdown(claim.finding)),
        ])
        make_target(self.state.document, row, f"row-{claim.id}")
        return row

    def statement(self, claim):
        text = nodes.paragraph("", "", *self.markdown(claim.statement))
        notes = nodes.inline(classes=["claim-notes"])
        for i, name in enumerate(claim.source):
            notes += nodes.Text(", " if i else "(")
            notes += link_to(f"source-{name}", name, self.env.docname)
        flags = "".join(f" · {claims_data.FLAGS[flag]}" for flag in claim.flags)
        notes += nodes.Text(f"{flags})")
        text += [nodes.Text(" "), notes]
        return text

    def verdict(self, claim):
        text = nodes.paragraph("", "", verdict_node(claim.verdict, claim.verdict))
        if claim.verdict != "open":
            self.depend_on(claim)
            text += nodes.Text(" ")
            text += link_to(f"claim-{claim.id}", "see the cell", self.env.docname)
        return text

    def depend_on(self, claim):
        """Read the ledger again when the chapter changes: its cells may move."""
        if claim.chapter in self.env.found_docs:
            self.env.note_dependency(self.env.doc2path(claim.chapter))
            return
        logger.warning(
            "claims.yml: %s is shown in %r, which is not a page of this book",
            claim.id,
            claim.chapter,
            location=self.get_location(),
        )


def verdict_node(verdict, text):
    """Return a verdict as shape and words; the style sheet adds a colour."""
    mark = nodes.inline("", claims_data.MARKERS[verdict], classes=["verdict-mark"])
    return nodes.inline(
        "", "", mark, nodes.Text(f" {text}"), classes=["verdict", f"is-{verdict}"]
    )


def setup(app):
    app.add_config_value("claims_file", "reference/claims.yml", "env")
    app.add_transform(CellAnchors)
    app.add_directive("claims-counts", CountsDirective)
    app.add_directive("claims-sources", SourcesDirective)
    app.add_directive("claims-ledger", TableDirective)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
