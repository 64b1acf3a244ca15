"""What a page says, beside what its cells show: three rules, and nothing to keep.

A number in a sentence stands in the code or the outputs of its section, so whoever
changes one is told of the other. A section that compares has a cell that asserts or
shows something. A page without cells takes times and speed-ups from stored results.
"""

import math
import re
from contextlib import suppress

from notebook_cells import asserts, label, tags

#: Words that order, compare or say how something moves.
COMPARES = re.compile(
    r"""\b(?: than | twice | doubl\w+ | equal\w* | identical | same
    | wins? | loses? | gains? | exceed\w* | as\s+\w+\s+as | times\s+(?:as|the)
    | rises? | falls? | grows? | shrinks? | (?:in|de)creas\w+ | more | most | less
    | least | fewe\w+ | bett\w+ | best | worse | worst
    | (?:fast|slow|quick|long|short|large?|small|great|high|low)(?:e?r|e?st) )\b""",
    re.IGNORECASE | re.VERBOSE,
)
NUMBER = re.compile(
    r"(?<![\w.])(\d(?:[\d,]*\d)?(?:\.\d+)?(?:e-?\d+)?)(?!\w|\.\d)"
    r"(\s?(?:%|[nµm]?s\b|[kMGT](?:i?B|bit|flop|B/s)|(?:mill|bill|tr?ill)ion|second))?"
)
#: A number in code or output: also 65_536, 300e12, 10**8.
WRITTEN = re.compile(r"(?<![\w.])(\d[\d_,]*(?:\.\d+)?(?:e-?\d+)?)(?:\*\*(\d+))?")
#: Numbers in words; of a part, the number of parts.
NAMED = {
    "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
    "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "thirteen": "13",
    "sixteen": "16", "twenty": "20", "thirty": "30", "fifty": "50", "third": "3",
    "quarter": "4", "fifth": "5", "sixth": "6", "eighth": "8", "ninth": "9",
    "tenth": "10", "thirds": "3", "quarters": "4",
}
#: What is no sentence of ours: blocks of code, comments, the marks of what is folded,
#: and what other programs do.
CUT = [
    re.compile(r"(?ms)^(```|~~~)(?!\{figure).*?^\1\s*$"),
    re.compile(r"(?s)<!--.*?-->|</?details>|<summary>.*?</summary>"),
    re.compile(r"(?ms)^\*?Elsewhere.*?(?=\n\n|\Z)"),
]
#: What holds no number of a run, by its kind: roles, code, links, formulas, powers,
#: names with a number, labels, versions, years, and how long the chapter runs.
NO_RUN = [
    re.compile(r"\{[\w-]+\}`[^`]*`"),
    re.compile(r"`[^`\n]*`"),
    re.compile(r"\$[^$]*\$"),
    re.compile(r"\[[^\]]*\]\([^)]*\)"),
    re.compile(r"(?:\d+·)?\d+[⁻⁰¹²³⁴-⁹]+"),
    re.compile(r"\b[A-Za-z]+-\d+\b|\b\d+[-×]\w+\b"),
    re.compile(r"(?i)\b(?:exercise|puzzle|stage|version|rank|page)s? \d[\d.]*"),
    re.compile(r"\b\d+\.\d+\.\d+\b"),
    re.compile(r"\b(?:19|20)\d\d\b"),
    re.compile(r"\bin less than (?:a |half )?[a-z]+(?: [a-z]+)?\b"),
]
#: A time below a second, or a speed-up, typed by hand.
TYPED = re.compile(
    r"\b\d[\d.,]*\s*(?:ms|µs|milliseconds|(?:times|×)\s*(?:as\s+(?:fast|quick|slow)"
    r"|faster|slower|quicker))\b|\b(?:twice|half)\s+as\s+(?:fast|quick|slow)\b"
    r"|\bspeed-?ups?\s+(?:of|is|was)\s+(?:about\s+)?\d"
)
#: What nobody reads in an HTML output.
MARKUP = re.compile(r"(?s)<(script|style)\b.*?</\1>|<[^>]*>")
#: Sections whose numbers may be of any other section.
WIDE = ("", "Summary")


class Section:
    """The text under a heading, its captions and its code cells."""

    def __init__(self, heading):
        self.heading, self.text, self.captions, self.code = heading, "", [], []

    def sentences(self):
        """The sentences of the text, each on one line, then the captions."""
        text = re.sub(r"(?s)\$\$.*?\$\$", "", self.text)
        text = re.sub(r"(?m)^:::.*$|^:(?:name|alt|width):.*$|^```.*$", "", text)
        for line in text.splitlines():
            line = re.sub(r"^(?:[-*>]|\d+\.|#+)\s+", "", line.strip())
            parts = re.split(r"(?<=[.!?])[*)_]*\s+(?=[A-Z“\"*`\[$({\d])", line)
            yield from (part.strip() for part in parts if re.search(r"\w", part))
        yield from self.captions


def sections(nb):
    """The sections of a chapter; the first has no heading."""
    found = [Section("")]
    for cell in nb.cells:
        if cell.cell_type == "code":
            found[-1].code.append(cell)
            figure = cell.metadata.get("mystnb", {}).get("figure", {})
            found[-1].captions += [figure["caption"]] if "caption" in figure else []
            continue
        text = cell.source
        for pattern in CUT:
            text = pattern.sub("", text)
        for piece in re.split(r"(?m)^(?=## )", text):
            if piece.startswith("## "):
                heading, _, piece = piece[3:].partition("\n")
                found.append(Section(heading.strip()))
            found[-1].text += piece + "\n"
    return found


def shown(cells):
    """The code and the outputs of `cells`, as one text."""
    parts = []
    for cell in cells:
        parts.append(cell.source)
        for output in cell.outputs:
            data = output.get("data", {})
            parts += [output.get("text", ""), data.get("text/plain", ""),
                      data.get("text/markdown", ""),
                      MARKUP.sub(" ", data.get("text/html", ""))]
    return "\n".join(parts)


def values(text):
    """The numbers in code and outputs: also 65_536, 300e12 and 10**8."""
    found = set()
    for number, power in WRITTEN.findall(text):
        with suppress(OverflowError):
            value = float(number.strip("_,").replace(",", "").replace("_", ""))
            found.add(value ** int(power or 1))
    return found


def is_shown(number, unit, known):
    """Whether a number is among the `known`; with a unit, in whatever unit."""
    if number in known:
        return True
    sizes = [10.0**e for e in (-2, 2, -9, -6, -3, 3, 6, 9, 12)] if unit else []
    return any(math.isclose(number * size, k) for size in sizes for k in known)


def strange_numbers(nb, page):
    """Numbers in sentences that no cell of their section shows, in whatever unit.

    Cells of the opening belong to each section. In the opening itself, the summary and
    in words, numbers may be of any section. What a work says is its own, where it is
    cited.
    """
    everything = sections(nb)
    whole = values(shown([cell for section in everything for cell in section.code]))
    first = everything[0].code
    for section in everything:
        wide = section.heading in WIDE
        here = whole if wide else values(shown(first + section.code))
        for sentence in section.sentences():
            if "{cite}" in sentence:
                continue
            bare = sentence
            for pattern in NO_RUN:
                bare = pattern.sub("…", bare)
            words = re.findall(r"[a-z]+(?:-[a-z]+)*", bare.lower())
            said = {(NAMED[w], ""): whole for w in words if w in NAMED}
            said |= {(n.replace(",", ""), u): here for n, u in NUMBER.findall(bare)}
            for (number, unit), known in said.items():
                if not is_shown(float(number), unit, known):
                    yield (
                        f"{section.heading or 'the opening'!r} says {number}, which no "
                        f"cell there has or prints: {sentence!r}. Print it in a cell "
                        "of this section, or say it without the number"
                    )


def bare_comparisons(nb, page):
    """Sections that compare, and have no cell that could show it."""
    for section in sections(nb):
        if section.heading in WIDE or not section.code:
            continue
        found = [s for s in section.sentences() if COMPARES.search(s)]
        if found and not any(_shows(cell) for cell in section.code):
            yield (
                f"{section.heading!r} compares ({found[0]!r}), and no cell there "
                f"asserts or prints, from {label(section.code[0])} on"
            )


def typed_times(text):
    """Times below a second and speed-ups in Markdown that come from no role."""
    for pattern in (*CUT, *NO_RUN):
        text = pattern.sub("…", text)
    return [match.group() for match in TYPED.finditer(text)]


def _shows(cell):
    return asserts(cell) or bool(cell.outputs) and "remove-cell" not in tags(cell)
