#!/usr/bin/env python3
"""Puts wrong statements into a copy of the book, one at a time: are they noticed?

    tests/helpers/wrong_prose.py 60 --seed 1

A number or a direction in a sentence, a caption, a formula, a stored output that is not
compared, a figure of a recorded result, a word in a drawing. The tests that hold
sentences, outputs and results run on each. Prints what was not noticed.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import held

TESTS = (
    "tests/book/test_held.py", "tests/book/test_outputs.py",
    "tests/book/test_typed_figures.py", "tests/book/test_durations.py",
    "tests/benchmarks/test_results_recomputed.py", "tests/bookkit/test_stored.py",
)  # fmt: skip
OPPOSITE = {
    "more": "less", "less": "more", "most": "least", "fewer": "more", "same": "other",
    "larger": "smaller", "smaller": "larger", "longer": "shorter", "twice": "half",
    "shorter": "longer", "faster": "slower", "slower": "faster", "half": "twice",
    "higher": "lower", "lower": "higher", "better": "worse", "worse": "better",
    "grows": "shrinks", "equal": "unequal", "all": "no", "never": "always",
    "before": "after", "after": "before", "first": "last", "last": "first",
}  # fmt: skip
WORD = re.compile(rf"\b({'|'.join(OPPOSITE)})\b")


def texts(nb):
    """The sentences of the main path, and where each stands: cell, text."""
    said = {s for section in held.sections(nb) for s in held.sentences(section["text"])}
    for cell in nb["cells"]:
        if cell["cell_type"] == "markdown":
            yield from ((cell, s) for s in said if s in "".join(cell["source"]))


def put(cell, old, new):
    cell["source"] = "".join(cell["source"]).replace(old, new, 1)


def number(nb, rng):
    found = [(c, s) for c, s in texts(nb) if held.NUMBER.search(held._bare(s))]
    cell, said = rng.choice(found)
    match = rng.choice([*held.NUMBER.finditer(held._bare(said))])
    new = said.replace(match[0], str(int(float(match[0].replace(",", ""))) + 3), 1)
    put(cell, said, new)
    return said, new


def direction(nb, rng):
    cell, said = rng.choice([(c, s) for c, s in texts(nb) if WORD.search(s)])
    new = WORD.sub(lambda m: OPPOSITE[m[1]], said, count=1)
    put(cell, said, new)
    return said, new


def formula(nb, rng):
    math = re.compile(r"\$[^$]*[-+\d][^$]*\$")
    cell, said = rng.choice([(c, s) for c, s in texts(nb) if math.search(s)])
    old = math.search(said)[0]
    turned = old.replace("-", "+") if "-" in old else re.sub(r"\d", "7", old, count=1)
    new = said.replace(old, turned)
    put(cell, said, new)
    return said, new


def caption(nb, rng):
    figures = [c["metadata"].get("mystnb", {}).get("figure", {}) for c in nb["cells"]]
    figure = rng.choice([figure for figure in figures if "caption" in figure])
    old = figure["caption"]
    words = old.split()
    del words[rng.randrange(len(words))]
    figure["caption"] = " ".join(words)
    return old, figure["caption"]


def output(nb, rng):
    found = [
        stored for cell in nb["cells"] for stored in cell.get("outputs", [])
        if "nbval-ignore-output" in cell["metadata"].get("tags", [])
        and re.search(r"\d", "".join(stored.get("text", "")))
    ]  # fmt: skip
    stored = rng.choice(found)
    old = "".join(stored["text"])
    stored["text"] = re.sub(r"\d", lambda m: str(9 - int(m[0])), old, count=1)
    return old, stored["text"]


IN_CHAPTERS = [number, direction, formula, caption, output]


def in_chapter(kind, root, rng):
    paths = sorted(root.glob("chapters/*/*.ipynb"))
    while True:
        path = rng.choice(paths)
        nb = json.loads(path.read_text("utf-8"))
        try:
            old, new = kind(nb, rng)
        except IndexError:  # this chapter has nothing of the kind
            continue
        if old != new:
            path.write_text(json.dumps(nb, indent=1, ensure_ascii=False) + "\n")
            return path, old, new


def in_result(root, rng):
    """A median, a ratio or another figure of a recorded result."""
    path = rng.choice(sorted([*root.glob("benchmarks/results/*.json"),
                              *root.glob("chapters/results/*.json")]))  # fmt: skip
    text = path.read_text("utf-8")
    keys = r'"(?:median\w*|ratio|speed_up|seconds\w*|measured\w*|error|value)": '
    spots = [*re.finditer(keys + r"(-?\d+\.\d+)", text)]
    if not spots:
        return in_result(root, rng)
    spot = rng.choice(spots)
    new = str(round(float(spot[1]) * 1.1, 4))
    path.write_text(text[: spot.start(1)] + new + text[spot.end(1) :])
    return path, spot[0], new


def in_drawing(root, rng):
    path = rng.choice(sorted(root.glob("chapters/img/*.svg")))
    text = path.read_text("utf-8")
    spot = rng.choice([*re.finditer(r">([^<>]*\w[^<>]*)</(?:text|tspan)>", text)])
    new = WORD.sub(lambda m: OPPOSITE[m[1]], spot[1])
    new = new if new != spot[1] else spot[1] + " not"
    path.write_text(text[: spot.start(1)] + new + text[spot.end(1) :])
    return path, spot[1], new


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, noticed = random.Random(given.seed), 0
    kinds = [*IN_CHAPTERS, in_result, in_drawing]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "book"
        clone = ["git", "clone", "--quiet", str(ROOT), str(root)]
        subprocess.run(clone, check=True)
        command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider"]
        subprocess.run([*command, *TESTS], cwd=root, check=True, stdout=-3)
        for i in range(given.count):
            kind = kinds[i % len(kinds)]
            chapter = kind in IN_CHAPTERS
            path, old, new = (in_chapter(kind, root, rng) if chapter
                              else kind(root, rng))  # fmt: skip
            ran = subprocess.run([*command, *TESTS], cwd=root, capture_output=True,
                                 text=True, check=False)  # fmt: skip
            noticed += ran.returncode == 1
            if ran.returncode != 1:
                print(f"NOT NOTICED ({kind.__name__}) {path.name}:\n  {old}\n  {new}")
            subprocess.run(["git", "checkout", "-q", "."], cwd=root, check=True)
    print(f"{noticed} of {given.count} were noticed")
    return noticed < given.count


if __name__ == "__main__":
    sys.exit(main())
