"""Which sentences of a chapter nothing holds: `tools/held.py chapters/PART/NAME.ipynb`.

A sentence that compares (faster, as many as, the same, …), a caption, a formula and a
row of a table with figures stand in `tests/book/held/NAME.yml`, word for word, with
what holds them: `by`, a piece of the chapter's code or of an output that tests compare,
or `why`, a reason that a cell cannot give. Any other sentence may stand as it is, as
long as its numbers are those of its own section's code or outputs.

Prints what is missing, as entries to be filled in, and entries that no longer fit.
Without a chapter, it does the same for the findings of the ledger (`held/claims.yml`),
and for README.md and intro.md. There `by` is `FILE: piece`, of a chapter, of a recorded
result, or of any other file, and may be that in the ledger, too.
`tools/held.py drawings` prints the words in the drawings, as `held/drawings.yml` has
them: who changes a word there reads the chapter again, and writes it twice.
Exercises, and what is folded, are not read; a question may compare.
"""

import json
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
HELD = ROOT / "tests/book/held"
#: Pages without cells: what holds their sentences is in other files.
PAGES = ("README.md", "intro.md")

#: Words that order, compare or say how something moves.
COMPARES = re.compile(
    r"""\b(?: than | twice | half | halves | halved | doubl\w+ | equal\w* | identical
    | same | alike | wins? | won | loses? | lost | gains? | exceed\w* | almost | nearly
    | hardly | dominates? | as\s+\w+\s+as | times\s+(?:as|the) | rises? | falls?
    | grows? | shrinks? | (?:in|de)creas\w+ | drops? | more | most | less | least
    | fewe\w+ | bett\w+ | best | worse | worst | earli\w+ | later | latest | no\s+longer
    | (?:fast|slow|quick|long|short|large?|small|great|high|low|bigg|cheap|near|close?
       |weak|strong|heavi|light|busi|wid|narrow|steep)(?:e?r|e?st) )\b""",
    re.IGNORECASE | re.VERBOSE,
)
NUMBER = re.compile(r"(?<![\w.])\d(?:[\d,]*\d)?(?:\.\d+)?(?![\w]*\.\d)")
#: Numbers in words, from three on; parts have the number of them.
NAMED = {
    "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
    "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "twenty": "20",
    "fifty": "50", "third": "3", "thirds": "3", "quarter": "4", "quarters": "4",
    "fifth": "5", "eighth": "8", "tenth": "10", "sixteenth": "16",
}  # fmt: skip
#: What is no sentence of the page: blocks of code, comments, what is folded.
CUT = [
    re.compile(r"(?ms)^(```|~~~).*?^\1\s*$"),
    re.compile(r"(?s)<details>.*?</details>"),
    re.compile(r"(?s)<!--.*?-->"),
]
#: What holds no number of the run: roles, code, addresses, formulas, versions, years.
NO_NUMBERS = [
    re.compile(r"\{[\w-]+\}`[^`]*`"),
    re.compile(r"`[^`\n]*`"),
    re.compile(r"\$[^$]*\$"),
    re.compile(r"\]\([^)]*\)"),
    re.compile(r"\b\d+\.\d+\.\d+\b"),
    re.compile(r"\b(?:19|20)\d\d\b"),
    # How long a chapter runs, which tests/book/test_durations.py compares.
    re.compile(r"\bin less than (?:a |half )?[a-z]+(?: [a-z]+)?\b"),
]


def sections(nb):
    """The main path, as a list of sections: heading, texts, captions, code cells.

    The first, without a heading, is the opening; exercises and puzzles are left out.
    """
    found = [{"heading": "", "text": "", "captions": [], "code": []}]
    for cell in nb["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "markdown":
            found[-1]["code"].append(cell)
            figure = cell["metadata"].get("mystnb", {}).get("figure", {})
            found[-1]["captions"] += [figure["caption"]] if "caption" in figure else []
            continue
        for pattern in CUT:
            source = pattern.sub("", source)
        for piece in re.split(r"(?m)^(?=## )", source):
            if piece.startswith("## "):
                heading, _, piece = piece[3:].partition("\n")
                found.append({"heading": heading.strip(), "text": heading + "\n"})
                found[-1].update(captions=[], code=[])
            found[-1]["text"] += piece + "\n"
    names = [section["heading"] for section in found]
    ends = [names.index(name) for name in ("Exercises", "Puzzles") if name in names]
    return found[: min(ends, default=len(found))]


def sentences(text):
    """The sentences of Markdown, each on one line; a formula and a row are one, too."""
    text = re.sub(r"(?s)\$\$(.*?)\$\$", lambda m: _on_a_line(m[1]), text)
    text = re.sub(r"(?m)^:::\{(?:figure|image)\}.*$|^:(?:name|alt|width):.*$", "", text)
    for line in text.splitlines():
        line = re.sub(r"^(?:[-*>]|\d+\.|#+|:::+\S*)\s+", "", line.strip())
        if line.startswith("|"):
            yield from [line] if re.search(r"\w", line) else []
        elif line.startswith("$$"):
            yield line
        else:
            parts = re.split(r"(?<=[.!?])[*)_]*\s+(?=[A-Z“\"*`\[$({\d])", line)
            yield from (part.strip() for part in parts if re.search(r"\w", part))


def _on_a_line(formula):
    return "\n$$" + " ".join(formula.split()) + "$$\n"


#: A formula in a sentence: more than a letter.
FORMULA = re.compile(r"\$[^$]*[-+=/^<\d][^$]*\$")


def must_be_held(sentence):
    """Whether a sentence compares, or has a formula, or is a row with figures."""
    if sentence.startswith("|"):
        return bool(re.search(r"[\d$]", sentence) or COMPARES.search(sentence))
    return bool(FORMULA.search(sentence) or COMPARES.search(_bare(sentence)))


def _bare(sentence):
    for pattern in NO_NUMBERS:
        sentence = pattern.sub("…", sentence)
    return sentence


def numbers(text):
    """The numbers in a text, without their commas: a set of `str`."""
    return {number.replace(",", "") for number in NUMBER.findall(text)}


def _numbers_said(sentence):
    words = re.findall(r"[a-z]+", sentence.lower())
    return numbers(sentence) | {NAMED[word] for word in words if word in NAMED}


def shown(cells, compared=False):
    """Code and outputs of `cells`; `compared`: only the outputs that nbval compares."""
    parts = []
    for cell in cells:
        parts.append("".join(cell["source"]))
        ignored = "nbval-ignore-output" in _tags(cell)
        for output in [] if compared and ignored else cell["outputs"]:
            data = output.get("data", {})
            parts.append("".join(output.get("text", "")))
            parts += ["".join(data.get(kind, "")) for kind in TEXTS]
    return "\n".join(parts)


TEXTS = ("text/plain", "text/markdown", "text/html")


def open_sentences(nb, entries):
    """What nothing holds: a list of sentence and reason (`why it must be held`)."""
    held = {entry["says"] for entry in entries}
    everything = sections(nb)
    whole = numbers(shown([c for section in everything for c in section["code"]]))
    found = []
    for section in everything:
        wide = section["heading"] in ("", "Summary")
        known = whole if wide else numbers(shown(section["code"]))
        for sentence in sentences(section["text"]):
            if sentence in held:
                continue
            strange = _numbers_said(_bare(sentence)) - known
            if must_be_held(sentence) and not sentence.endswith("?"):
                found.append((sentence, "compares"))
            elif strange:
                found.append((sentence, f"no cell here shows {sorted(strange)}"))
        found += [(c, "a caption") for c in section["captions"] if c not in held]
    return found


def stale(nb, entries):
    """Entries that hold nothing: a sentence that is gone, a piece that is nowhere."""
    everything = sections(nb)
    said = {s for section in everything for s in sentences(section["text"])}
    said |= {c for section in everything for c in section["captions"]}
    compared = _joined(shown([c for s in everything for c in s["code"]], True))
    return _stale(entries, said, lambda piece: _joined(piece) in compared, "cell")


def _stale(entries, said, has, what):
    problems = []
    for entry in entries:
        if entry["says"] not in said:
            problems.append(f"no such sentence: {entry['says']!r}")
        if ("by" in entry) == ("why" in entry):
            problems.append(f"either by or why: {entry['says']!r}")
        if len(entry.get("why", "a good reason")) < 10:
            problems.append(f"no reason: {entry['says']!r}")
        if "by" in entry and not (_joined(entry["by"]) and has(entry["by"])):
            problems.append(f"no {what} has {entry['by']!r}, for {entry['says']!r}")
    says = [entry["says"] for entry in entries]
    return problems + [f"twice: {s!r}" for s in sorted(set(says)) if says.count(s) > 1]


def _joined(text):
    return " ".join(str(text).split())


def findings(claim, nb):
    """What the ledger says of a claim, and the cells of the chapter that show it."""
    tagged = [c for c in nb["cells"] if f"claim-{claim['id']}" in _tags(c)]
    cells = [c for c in nb["cells"] if c["cell_type"] == "code"]
    return list(sentences(claim.get("finding", ""))), tagged, cells


def open_findings(claims, notebooks, entries):
    """Sentences of the ledger that nothing holds: (id, sentence, reason)."""
    held, found = {(e["claim"], e["says"]) for e in entries}, []
    for claim in claims:
        if claim["verdict"] == "open":
            continue
        said, _, cells = findings(claim, notebooks[claim["chapter"]])
        known = numbers(shown(cells))
        for sentence in said:
            strange = _numbers_said(_bare(sentence)) - known
            if (claim["id"], sentence) not in held:
                if must_be_held(sentence):
                    found.append((claim["id"], sentence, "compares"))
                elif strange:
                    why = f"no cell of the chapter shows {sorted(strange)}"
                    found.append((claim["id"], sentence, why))
    return found


def stale_findings(claims, notebooks, entries):
    """Entries that hold nothing of the ledger any more."""
    by_id, problems = {claim["id"]: claim for claim in claims}, []
    for entry in entries:
        claim = by_id.get(entry["claim"])
        if not claim or entry["says"] not in sentences(claim.get("finding", "")):
            problems.append(f"{entry['claim']} does not say {entry['says']!r}")
            continue
        _, tagged, _ = findings(claim, notebooks[claim["chapter"]])
        piece = _joined(entry.get("by", ""))
        if ("by" in entry) == ("why" in entry) or len(entry.get("why", "x" * 10)) < 10:
            problems.append(f"{entry['claim']}: by, or why: {entry['says']!r}")
        elif piece not in _joined(shown(tagged, compared=True)) and not _in_file(piece):
            problems.append(f"{entry['claim']}: its cells do not have {piece!r}")
    return problems


def on_page(text):
    """The sentences of a page without cells; no commands, nor the README's map."""
    text = re.sub(r"(?s)<!-- The map: .*<!-- The map ends", "", text)
    return list(sentences(re.sub(r"(?ms)^```(?:bash|python)$.*?^```$", "", text)))


def open_on_page(text, entries):
    """Sentences of a page that compare, and that nothing holds."""
    held = {entry["says"] for entry in entries}
    return [s for s in on_page(text) if must_be_held(s) and s not in held]


def stale_on_page(text, entries):
    """Entries that hold nothing of a page any more."""
    return _stale(entries, set(on_page(text)), _in_file, "file")


def _in_file(by):
    """Whether `by`, `FILE: piece`, is true; of a chapter, what tests compare counts."""
    name, _, piece = by.partition(": ")
    path = ROOT / name
    text = path.read_text("utf-8") if path.is_file() else ""
    if path.suffix == ".ipynb" and text:
        cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
        text = shown(cells, compared=True)
    return bool(piece.strip()) and _joined(piece) in _joined(text)


def _tags(cell):
    return cell["metadata"].get("tags", [])


def register(page):
    """The entries for the chapter `page`, a list; empty if there is no file."""
    path = HELD / f"{Path(page).stem}.yml"
    return yaml.safe_load(path.read_text("utf-8")) or [] if path.is_file() else []


def words_drawn():
    """The words in each drawing of the chapters, as they stand: {file name: texts}."""
    found = {}
    for path in sorted((ROOT / "chapters/img").glob("*.svg")):
        texts = re.findall(r"(?s)<(?:text|title)\b[^>]*>(.*?)</(?:text|title)>",
                           path.read_text("utf-8"))  # fmt: skip
        found[path.name] = [_joined(re.sub("<[^>]*>", " ", text)) for text in texts]
    return found


def ledger():
    """The claims, and the notebook of each chapter that shows one."""
    claims = yaml.safe_load((ROOT / "reference/claims.yml").read_text("utf-8"))
    pages = {c["chapter"] for c in claims["claims"] if c["verdict"] != "open"}
    texts = {page: (ROOT / f"{page}.ipynb").read_text("utf-8") for page in pages}
    return claims["claims"], {page: json.loads(text) for page, text in texts.items()}


def main(paths):
    """Print what is missing of each chapter, or of the rest; return 1 if any is."""
    if paths == ["drawings"]:
        print(yaml.safe_dump(words_drawn(), allow_unicode=True, width=88), end="")
        return 0
    missing, problems = [], []  # each missing one: first line, sentence, reason
    if not paths:
        claims, notebooks = ledger()
        entries = register("claims")
        for id, *rest in open_findings(claims, notebooks, entries):
            missing.append((f"- claim: {id}\n  says:", *rest))
        problems += stale_findings(claims, notebooks, entries)
    for name in [] if paths else PAGES:
        text, entries = (ROOT / name).read_text("utf-8"), register(name)
        for sentence in open_on_page(text, entries):
            missing.append(("- says:", sentence, f"compares, in {name}"))
        problems += [f"{name}: {p}" for p in stale_on_page(text, entries)]
    for path in map(Path, paths):
        nb, entries = json.loads(path.read_text("utf-8")), register(path)
        missing += [("- says:", *one) for one in open_sentences(nb, entries)]
        problems += [f"{path.stem}: {p}" for p in stale(nb, entries)]
    for begins, sentence, reason in missing:
        print(begins, json.dumps(sentence, ensure_ascii=False) + f"\n  by:  # {reason}")
    for problem in problems:
        print(f"# {problem}")
    return int(bool(missing or problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
