"""Makes the book, as `make book` and `make html` ask for it.

    tools/book.py execute               all chapters, on this machine's devices; pages
    tools/book.py render                pages of stored outputs; a warning is an error

Chapters run one after the other, because they measure times, and in a copy of the
sources. `execute` keeps the outputs of a chapter whose code, library, packages,
settings and devices are those of an earlier run. `rerun.py` stores outputs.
"""

import argparse
import shutil
import sys
import time
from pathlib import Path

import nbformat

from expected import Expected, about
from listings import copy_to_render
from made_by import durations
from notebooks import (
    TIMEOUT,
    Cache,
    ChapterError,
    chapters,
    prepare_environment,
    surroundings,
)
from outcome import Outcome, read_findings, say_from_where, summary
from running import Progress, beside, run_chapter
from sources import (
    PAGES,
    RenderError,
    build,
    copy_sources,
    differences,
    publish,
    render,
    state,
)


class Pages:
    """The pages of the book in `root`, made from its copy `work` while chapters run.

    A page that cannot be rendered anew stays as it was.
    """

    #: From one rendering to the next pass so many times the seconds that one takes, at
    #: least: it needs the cores, too.
    PATIENCE = 4

    def __init__(self, root, work):
        self.root, self.work, self.next = root, work, 0.0

    def begin(self, left, seconds):
        """Show the book, and say so; return the first page.

        `left`: how many chapters are to be executed, which takes `seconds`. The pages
        of the library's reference come with the first of them.
        """
        page = self.end(**({"BOOK_REFERENCE_LATER": "yes"} if left else {}))
        print(
            f"The book can be read: {page}\n"
            "Open it in a browser. From another machine: "
            f"python3 -m http.server --directory {PAGES} 8000\n"
            "and look at http://localhost:8000 through your tunnel, or at this host."
        )
        if left:
            print(
                f"\nChapters that run here now: {left}; that takes {about(seconds)}, "
                "estimated anew after each.\nUntil then they show stored outputs. "
                "Control-C loses nothing: the next run continues."
            )
        sys.stdout.flush()
        return page

    def follow(self):
        """Show what has changed, unless that was just done."""
        if time.monotonic() > self.next:
            self.end()

    def end(self, **variables):
        """Show what has changed; return the first page. `variables`: see `build`."""
        begin = time.monotonic()
        pages = build(self.work, "html", strict=False, **variables)
        page = publish(self.root, pages)
        end = time.monotonic()
        self.next = end + self.PATIENCE * (end - begin)
        return page


def execute_book(root, work, timeout, pages):
    """Show the book in `root`, then execute its chapters in the copy `work`.

    A chapter that was executed before, and has not changed, shows those outputs from
    the start, the others the stored ones; each page says which. A chapter that fails
    keeps the stored ones, and its page says so. `pages`: `Pages`. Returns the first
    page and an `Outcome` of each chapter.
    """
    cache = Cache(root / "_build" / "cache", surroundings(root))
    expected = Expected(stored_seconds(root))
    paths, outcomes = chapters(work), {}
    for path in paths:
        nb = nbformat.read(work / path, as_version=4)
        if cache.recall(path, nb):
            made = nb.metadata["made_here"]
            outcomes[path] = Outcome(path, findings=made["findings"])
            expected.ran(path, made["seconds"])
        nbformat.write(say_from_where(nb, outcomes.get(path)), work / path)
    left = [path for path in paths if path not in outcomes]
    page = pages.begin(len(left), expected.seconds(left))
    progress = Progress(len(paths))
    for path in paths:
        progress.start(path)
        if path in outcomes:
            progress.end("unchanged")
            continue
        nb, outcome = _try(root, work, path, progress, timeout)
        outcomes[path] = outcome
        left.remove(path)
        if not outcome.error:
            cache.keep(path, nb)
            expected.ran(path, nb.metadata["made_here"]["seconds"])
            rest = f"  ({about(expected.seconds(left))} left)" if left else ""
            progress.end(f"{progress.seconds():.1f} s{rest}")
        nbformat.write(say_from_where(nb, outcome), work / path)
        if left:
            pages.follow()
        else:
            page = pages.end()
    return page, [outcomes[path] for path in paths]


def _try(root, work, path, progress, timeout):
    """Execute the chapter `path`; return the notebook and its `Outcome`.

    A chapter that fails is returned as it was, with its stored outputs.
    """
    # The source anew: the copy says where the stored outputs come from.
    shutil.copyfile(root / path, work / path)
    found, log = (beside(root, path, kind) for kind in ("findings", "log"))
    found.unlink(missing_ok=True)
    reading = {"D2L_EXT_FINDINGS": str(found), "D2L_EXT_RECORDING": None}
    try:
        nb = run_chapter(root, work, path, progress, timeout, reading)
    except ChapterError as error:
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"\n{error}\n")
        print(f"\n{error}\n", file=sys.stderr, flush=True)
        stored = nbformat.read(root / path, as_version=4)
        return stored, Outcome(path, error, log=log.relative_to(root))
    findings = read_findings(found)
    nb.metadata["made_here"] = {"seconds": progress.seconds(), "findings": findings}
    return nb, Outcome(path, findings=findings)


def stored_seconds(root):
    """Return how long each chapter ran when it was recorded: {path: seconds}."""
    recorded = durations(root)
    return {Path(f"{page}.ipynb"): entry["seconds"] for page, entry in recorded.items()}


# The commands: each returns an exit status.


def make(root, arguments):
    work = root / "_build" / "book"
    before = state(root)
    copy_sources(root, work)
    page, outcomes = execute_book(root, work, arguments.timeout, Pages(root, work))
    print(f"\n{summary(outcomes, page)}", flush=True)
    changed = differences(before, state(root))
    if changed:
        print(
            f"These files changed while the book was made: {', '.join(changed)}.\n"
            "If that was not you, a chapter writes into the checkout: it must not.",
            file=sys.stderr,
        )
        return 1
    return 1 if any(outcome.failed for outcome in outcomes) else 0


def show(root, arguments):
    work = root / "_build" / "stored"
    copy_to_render(root, work)
    print(f"Rendered the stored outputs: {render(root, work, strict=True)}")
    return 0


COMMANDS = {"execute": make, "render": show}


def main(argv=None):
    """Run the command that `argv` names; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--timeout", type=int, default=TIMEOUT, help="seconds per cell")
    parser.add_argument("command", choices=COMMANDS)
    arguments = parser.parse_args(argv)
    prepare_environment()
    try:
        return COMMANDS[arguments.command](arguments.root.resolve(), arguments)
    except KeyboardInterrupt:
        print("\nStopped. The pages stay as they are, and the next run goes on.",
              file=sys.stderr)
        return 130
    except (ChapterError, RenderError, FileNotFoundError) as error:
        print(f"\n{error}\n\nThe book was not made.", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
