"""Puts a technique into a page as tabs: MXNet, PyTorch, JAX.

    ```{frameworks} data_parallel/ring
    ```

Each tab has the second cell of the program `peers/data_parallel/ring_torch.py`, what it
printed when it was last run, what it sent, and the whole program to download. Nothing
runs here. Where there is `ring_jax.md` instead, the tab has that text.

The tabs are made by `frameworks.js`; without it, all stand one under another.
"""

from datetime import date

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

import peers

WORDS = {"all_reduce": "allreduce", "reduce_scatter": "reduce-scatter",
         "all_gather": "allgather", "all_to_all": "all-to-all", "send": "messages",
         "broadcast": "broadcast", "scatter": "scatter", "gather": "gather",
         "float64": "in float64, too, there is a difference"}


def origin(framework, kept, why_stale):
    """Return when a program ran, and how far from the chapter's its arrays are."""
    day = f"{date.fromisoformat(kept['date']):%d %B %Y}".lstrip("0")
    what = f"{peers.FRAMEWORKS[framework]} {kept['version']}, {day}"
    if "difference" in kept:
        apart = kept["difference"]
        what += ": equal to the chapter's result"
        what += f", to {apart:.0e} of each array's largest value" if apart else ""
    old = f" **This result is old: the program was {why_stale}.**" if why_stale else ""
    return f"{what}.{old}"


def traffic(kept, reasons, of_chapter):
    """Return what was sent, in sentences."""
    each = {kind: n if isinstance(n, list) else [None, n]
            for kind, n in kept["sent"].items()}
    # A collective is one call of all devices, a message one of its sender: the calls
    # that one device counted are not all messages.
    said = [f"{WORDS[kind]}"
            f"{f' × {calls}' if (calls or 1) > 1 and kind != 'send' else ''}, "
            f"{amount:,} bytes" for kind, (calls, amount) in each.items() if amount]
    same = "" if "difference" not in kept or reasons.keys() - {"float64"} else (
        ", as in the chapter")
    first = f"Sent by all devices together{same}: {'; '.join(said)}." if said else (
        f"Nothing is sent{same}.")
    for kind, why in reasons.items():
        there = of_chapter["sent"].get(kind, 0)
        first += f" {WORDS[kind].capitalize()}: {why}"
        first += f" (The chapter sends {there:,} bytes.)" if there else ""
    return first


class Frameworks(SphinxDirective):
    """The tabs of one technique."""

    required_arguments = 1

    def run(self):
        name = self.arguments[0]
        if not any(peers.ROOT.glob(f"{name}_*")):
            raise self.error(f"peers has no technique {name!r}")
        self.env.note_dependency(str(peers.ROOT / "results" / f"{name}.json"))
        tabs = [self.tab(name, framework) for framework in peers.FRAMEWORKS]
        return [nodes.container("", *tabs, classes=["frameworks"])]

    def tab(self, name, framework):
        words = peers.FRAMEWORKS[framework]
        path = peers.program(name, framework)
        body = self.program(name, framework, path) if path.is_file() else (
            self.words(path.with_suffix(".md")))
        heading = nodes.rubric("", words, classes=["framework-name"])
        return nodes.container("", heading, *body,
                               classes=["framework", f"framework-{framework}"])

    def words(self, path):
        """Return the text that stands where a framework has no counterpart."""
        self.env.note_dependency(str(path))
        if not path.is_file():
            raise self.error(f"there is neither {path.stem}.py nor {path.name}")
        return self.parsed(path.read_text("utf-8"), str(path))

    def program(self, name, framework, path):
        self.env.note_dependency(str(path))
        kept = peers.stored(name)
        code = peers.shown(name, framework)
        shown = [nodes.literal_block(code, code, language="python")]
        if framework not in kept:
            return [*shown, *self.parsed("Not run yet.", str(path))]
        own = kept[framework]
        if own["output"]:
            text = own["output"].rstrip()
            shown.append(nodes.literal_block(text, text, language="none",
                                             classes=["framework-output"]))
        said = origin(framework, own, peers.stale(name, framework)) + " " + traffic(
            own, peers.differs(name, framework), kept["mxnet"])
        lines = self.parsed(said, str(path))
        lines[0]["classes"].append("provenance")
        lines[0] += self.download(path)
        return [*shown, *lines]

    def download(self, path):
        target = path.relative_to(peers.ROOT.parent).as_posix()
        link = addnodes.download_reference(
            "", "", nodes.literal("", path.name), reftarget=f"/{target}",
            refdoc=self.env.docname, refexplicit=True, refdomain="", reftype="download")
        parts = nodes.Text(" Whole program: "), link, nodes.Text(".")
        return nodes.inline("", "", *parts, classes=["on-screen"])

    def parsed(self, text, source):
        held = nodes.container()
        self.state.nested_parse(StringList(text.splitlines(), source), 0, held)
        return held.children


def setup(app):
    app.add_directive("frameworks", Frameworks)
    app.add_js_file("frameworks.js")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
