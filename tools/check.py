#!/usr/bin/env python3
"""`make check`: style, imports, and the tests that your changes can affect.

A file counts as changed if it differs from `--since` (default: the last commit), or if
git does not track it yet. A change can affect a test that imports the changed module,
directly or through others; the nearest tests run first. After `--seconds` the tests are
ended, and the remaining ones are named: `make test` runs them.
"""

import argparse
import ast
import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import made_by
import notebooks
from bookkit import functions, stored
from packages import SOURCES

ROOT = Path(__file__).resolve().parents[1]
#: Folders whose files can be imported, and how their modules begin.
PLACES = {
    **{name: f"{name}." for name in SOURCES},
    "tools": "", "_sphinx/ext": "", "tests/helpers": "",
}
SIDE_BY_SIDE = ("-q", "-x", "-n", "3", "--dist", "loadfile")
NBVAL = (
    "--nbval", "--nbval-current-env", "--nbval-cell-timeout=1200",
    "--nbval-sanitize-with=tests/book/nbval_sanitize.cfg",
)
#: Tests that read files instead of importing them, by what they read.
READERS = {
    "chapters/": ["tests/book"],
    "chapters/img/": ["tests/bookkit/test_figures_language.py",
                      "tests/bookkit/test_drawings_in_browser.py"],
    "peers/": ["tests/book/test_frameworks.py"],
    "reference/": ["tests/book"],
    "README.md": ["tests/book"], "_toc.yml": ["tests/book"],
    "requirements": ["tests/tools/test_setup.py", "tests/tools/test_licences.py"],
    "pyproject.toml": ["tests/tools/test_setup.py", "tests/tools/test_wheel.py"],
    "tools/": ["tests/tools"], "tests/conftest.py": ["tests"],
    "benchmarks/results/": ["tests/benchmarks", "tests/bookkit/test_stored.py",
                            "tests/tools/test_wheel.py"],
    "bookkit/figures/": ["tests/bookkit"], "exercisekit/": ["tests/exercisekit"],
}


def changed(since="HEAD", root=ROOT):
    """Return files that differ from the commit `since`, removed and new ones, too.

    Raises `CalledProcessError` if there is no such commit, or no repository.
    """
    asked = (["ls-files", "--others", "--exclude-standard"],
             ["diff", "--name-only", "--no-renames", since, "--"])
    said = [
        subprocess.run(["git", *words], cwd=root, capture_output=True, text=True,
                       check=True).stdout
        for words in asked
    ]
    return sorted({line for text in said for line in text.splitlines()})


def module(file):
    """Return the name of the module in `file`, a path from the root; a test's is the
    file's own.
    """
    for place, begin in PLACES.items():
        if file.startswith(f"{place}/"):
            words = Path(file).relative_to(place).with_suffix("").parts
            if words[-1] == "__init__":
                words = words[:-1]
            return (begin + ".".join(words)).strip(".")
    return file


def modules(root=ROOT):
    """Return every module and test: {name: file}."""
    paths = [path for place in (*PLACES, "tests")
             for path in sorted((root / place).rglob("*.py"))]
    return {module(path.relative_to(root).as_posix()): path for path in paths}


def imported(name, path):
    """Yield what the file imports, now or later, and the modules which that may be
    from: their names.
    """
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = functions.imports(tree, package)
    if name != "d2l_ext":  # what the root gives away is imported from its part
        named |= functions.lazy(tree, name)
    for dotted in named.values():
        yield from {dotted, dotted.rpartition(".")[0]}


@cache
def graph(root=ROOT):
    """Return `modules`, and those that import each of them: {name: names}.

    A module that is gone has users as long as they name it.
    """
    known, users = modules(root), {}
    for name, path in known.items():
        for used in imported(name, path):
            users.setdefault(used, set()).add(name)
    return known, users


def reached(files, root=ROOT):
    """Return files of tests a change of `files` can reach, by distance: lists."""
    known, users = graph(root)
    touched = {module(file) for file in files if file.endswith(".py")}
    seen, levels = set(), []
    while touched:
        seen |= touched
        levels.append(sorted(name for name in touched & known.keys()
                             if "/test_" in name))
        touched = {user for name in touched for user in users.get(name, ())} - seen
    read = {test for file in files for begin, tests in READERS.items()
            if file.startswith(begin) for test in tests}
    levels[1:1] = [sorted(read)] if read else []
    return [level for level in levels if level]


def stored_at(file, since="HEAD", root=ROOT):
    """Return the text of `file` in the commit `since`; None if it was not there."""
    said = subprocess.run(["git", "show", f"{since}:{file}"], cwd=root,
                          capture_output=True, text=True, check=False)
    return None if said.returncode else said.stdout


def code_changed(file, since="HEAD", root=ROOT):
    """Return whether code, tags or outputs of a chapter differ, not only words of its
    author.

    A comment in a cell and the caption of its figure are such words, as the text is.
    """
    if not (root / file).exists():  # there is nothing to run
        return False
    old = stored_at(file, since, root)
    if old is None:  # a new chapter
        return True
    new = (root / file).read_text(encoding="utf-8")
    before, now = ([_of_a_run(cell) for cell in json.loads(text)["cells"]
                    if cell["cell_type"] == "code"] for text in (old, new))
    return before != now


def only_comments_changed(file, since="HEAD", root=ROOT):
    """Return whether a module is the same to Python; `make test` reads comments."""
    old = stored_at(file, since, root)
    if old is None or not file.endswith(".py"):
        return False
    with suppress(SyntaxError, FileNotFoundError):  # else its tests tell
        new = (root / file).read_text(encoding="utf-8")
        return ast.dump(ast.parse(old)) == ast.dump(ast.parse(new))
    return False


def _of_a_run(cell):
    """Return what a run of `cell` depends on, and what it stored."""
    code = "".join(cell["source"])
    with suppress(SyntaxError):  # else nbval tells
        code = ast.dump(made_by.tree(cell))
    return code, cell["metadata"].get("tags"), cell["outputs"]


def fails(*words, seconds=None):
    """Run a program of this environment; return its exit status, 0 if it succeeds.

    A program that takes longer than `seconds` is stopped; then this returns None, or 1
    if it is pytest and a test had failed.
    """
    with TemporaryDirectory(prefix="check-") as folder:
        cache = ("-o", f"cache_dir={folder}") if words[0] == "pytest" else ()
        process = subprocess.Popen([sys.executable, "-m", *words, *cache], cwd=ROOT)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # pytest ends what its tests have begun
            process.wait()
            return 1 if Path(folder, "v/cache/lastfailed").exists() else None


def contracts():
    """Print the contracts on imports if one is broken; return the exit status."""
    words = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode:
        print(ran.stdout)
    return ran.returncode


def main(argv=None):
    """Check, and return the exit status."""
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("--since", default="HEAD", help="a commit; default: the last")
    flags.add_argument("--seconds", type=float, default=75, metavar="S",
                       help="end the tests after this; default 75")
    args = flags.parse_args(argv)
    begin = time.monotonic()
    try:
        files = changed(args.since)
    except subprocess.CalledProcessError as error:
        print(error.stderr, end="", file=sys.stderr)
        return 2
    files = [file for file in files if not only_comments_changed(file, args.since)]
    style = ["ruff", "check", "--quiet", "."]
    if fails(*style) or fails("codespell_lib") or contracts():
        return 1
    levels = reached(files)
    count = sum(map(len, levels))
    print(f"{len(files)} files changed; {count} test files can reach them")
    while levels:
        left = max(args.seconds - (time.monotonic() - begin), 0)
        wrong = fails("pytest", *SIDE_BY_SIDE, *levels[0], seconds=left)
        if wrong:
            return 1
        if wrong is None:
            break
        del levels[0]
    ran = [file for file in files if file.endswith(".ipynb")
           and code_changed(file, args.since)]
    if ran and fails("pytest", *SIDE_BY_SIDE, *NBVAL, *ran):
        return 1
    stale = made_by.stale(ROOT, notebooks.chapters(ROOT))
    if stale:
        print(made_by.report(stale))
    results = stored.stale()
    if results:
        print(f"stale: {len(results)} results (python -m bookkit.stored --stale)")
    fails("peers", "--stale")
    for level in levels:
        print("not finished in time:", *level)
    print(f"checked in {time.monotonic() - begin:.0f} s; `make test` checks the rest")
    return 0


if __name__ == "__main__":
    sys.exit(main())
