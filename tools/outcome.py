"""The outcome of a chapter on this machine, for its page and the end of a run."""

import json
import re
from dataclasses import dataclass, field

from nbformat import v4

#: What to do about a chapter that failed, here and on its page.
WHAT_TO_DO = (
    "`make book` runs such a chapter again, and only what has not run here yet. "
    "If it fails again, `make doctor` says whether this machine lacks something."
)
#: The same, where one kind of error suggests more.
SUGGESTED = {
    "It ran for more than": "On a slow machine a cell may need more time: "
    "`.venv/bin/python tools/book.py --timeout 3600 execute`.",
    "The kernel died": "A kernel that dies has often run out of memory: "
    "end other programs first.",
}


@dataclass
class Outcome:
    """The outcome of the chapter `path`.

    `error`: the `ChapterError` that ended it, or `None`. `findings`: a list of the
    findings of `bookkit.findings.tell` that did not hold here. `log`: the file with
    the whole error.
    """

    path: object
    error: Exception = None
    findings: list = field(default_factory=list)
    log: object = None

    @property
    def lacks_cores(self):
        """Whether the chapter needs more cores than this machine has."""
        return bool(self.error) and self.error.first_line.startswith("TooFewCores")

    @property
    def failed(self):
        """Whether it ended with an error that does not come from too few cores."""
        return bool(self.error) and not self.lacks_cores

    def what_to_do(self):
        """Return a text on how a reader can solve the problem."""
        for begin, more in SUGGESTED.items():
            if self.error.first_line.startswith(begin):
                return f"{WHAT_TO_DO} {more}"
        return WHAT_TO_DO

    def where(self):
        """Return the error's place: a code cell by its number, or the beginning."""
        return f"code cell {self.error.cell}" if self.error.cell else "its beginning"


def read_findings(file):
    """Return the findings `tell` has written to `file`; none if it is not there."""
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]


def in_words(finding):
    """Return a finding that did not hold, as one line."""
    return f"{finding['what']} {'; '.join(finding['measured'])}"


# Notes on a page.


def say_from_where(nb, outcome=None):
    """Say in the chapter `nb` where its outputs come from, and what happened here.

    `outcome`: of its run on this machine; `None` if there was none yet. The outputs of
    a chapter that failed are the stored ones.
    """
    if not nb.cells or nb.cells[0].cell_type != "markdown":
        return nb
    first = nb.cells[0]
    is_from_here = outcome is not None and outcome.error is None
    where = "made on this machine" if is_from_here else f"stored{_origin(nb)}"
    first.source += f"\n\n*The outputs on this page were {where}.*"
    if outcome and outcome.error:
        _insert_after_question(first, _failure_note(nb, outcome))
    elif outcome and outcome.findings:
        _insert_after_question(first, _findings_note(outcome.findings))
    return nb


def _origin(nb):
    """Return the date and processor, if the chapter printed its provenance."""
    text = json.dumps([cell.get("outputs", ()) for cell in nb.cells])
    found = re.search(r"Run on (.+?) at commit .+?, on (.+?) with \d+ cores", text)
    return f" with the book, on {found[1]} on {found[2]}" if found else " with the book"


def _insert_after_question(cell, note):
    """Insert `note` after a chapter's question, which follows its title."""
    blocks = cell.source.split("\n\n")
    cell.source = "\n\n".join([*blocks[:2], note, *blocks[2:]])


def _failure_note(nb, outcome):
    """Return the note at the top; a second one, its target, goes before the cell."""
    error, place = outcome.error, outcome.where()
    if outcome.lacks_cores:
        return (
            ":::{admonition} This machine has too few cores for this chapter\n"
            ":class: note\nIts outputs are the stored ones, because it records more "
            f"devices than MXNet's profiler can on this machine:\n\n"
            f"{_verbatim(error.first_line)}\n:::"
        )
    if error.cell:
        label = "stopped-here-" + re.sub(r"\W+", "-", outcome.path.stem)
        place = f"[{place}](#{label})"
        code = [i for i, cell in enumerate(nb.cells) if cell.cell_type == "code"]
        here = f"({label})=\n:::{{warning}}\nThis cell failed on this machine. " \
               "The outputs below it, and below the cells that follow, are stored.\n:::"
        nb.cells.insert(code[error.cell - 1], v4.new_markdown_cell(here))
    return (
        ":::{admonition} This chapter failed on this machine\n:class: error\n"
        f"It stopped at {place}, and shows its stored outputs:\n\n"
        f"{_verbatim(error.first_line)}\n\n{outcome.what_to_do()} "
        f"The whole error is at the end of `{outcome.log}`.\n:::"
    )


def _findings_note(findings):
    measured = "\n".join(map(in_words, findings))
    return (
        f":::{{admonition}} {_counted(findings)} did not hold on this machine\n"
        ":class: note\nThe text gives the measurements of the machine that recorded "
        "the book. This machine measured, as the cells below also say:\n\n"
        f"{_verbatim(measured)}\n\n"
        "This is not an error: measurements differ between machines and loads.\n:::"
    )


def _verbatim(text):
    """Return a block that no character of `text` can end."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
    return f"{fence}text\n{text}\n{fence}"


def _counted(findings):
    return "One finding" if len(findings) == 1 else f"{len(findings)} findings"


# The end of a run.


def summary(outcomes, page):
    """Return `make book`'s last lines, on the `outcomes`; `page`: the first page."""
    failed = [outcome for outcome in outcomes if outcome.failed]
    lacking = [outcome for outcome in outcomes if outcome.lacks_cores]
    differing = [outcome for outcome in outcomes if outcome.findings]
    whole = len(outcomes) - len(failed) - len(lacking)
    ran = f"{whole} of {len(outcomes)} chapters have"
    if not failed and not lacking:
        ran = "Every chapter has"
    lines = [f"{ran} run on this machine: {page}"]
    if differing:
        findings = [finding for outcome in differing for finding in outcome.findings]
        lines.append(
            f"\n{_counted(findings)} of the book did not hold on this machine.\n"
            "This is not an error; the pages and their cells say so:"
        )
        for outcome in differing:
            lines.append(f"  {outcome.path}")
            lines += [f"    {in_words(finding)}" for finding in outcome.findings]
    if lacking:
        lines.append("\nThese need more cores than this machine has, so their stored "
                     "outputs stay, and the page says so:")
        for outcome in lacking:
            lines.append(f"  {outcome.path}, {outcome.where()}")
    if failed:
        chapters = "One chapter" if len(failed) == 1 else f"{len(failed)} chapters"
        lines.append(f"\n{chapters} failed: stored outputs stay, and the page says so.")
        for outcome in failed:
            lines.append(f"  {outcome.path}, {outcome.where()}; see {outcome.log}")
            lines.append(f"    {outcome.error.first_line}")
        lines += dict.fromkeys(outcome.what_to_do() for outcome in failed)
    return "\n".join(lines)
