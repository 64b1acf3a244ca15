"""Runs the JAX program of a page's tab, and records its results.

    python harness_jax.py program_jax.py result.npz

Writes the program's `result`, a list of arrays, as DEVICE.PLACE, and the collectives in
the code that its second cell compiled, read from XLA's text: kind, number of calls, and
bytes sent by all devices together. Those in a loop count for each iteration. A function
that the cell calls several times is compiled once: the program says so in `calls`, as
in `{"step": 5}`.
"""

import glob
import json
import os
import re
import sys
import tempfile
from pathlib import Path

KINDS = {
    "all-reduce": "all_reduce", "all-gather": "all_gather",
    "reduce-scatter": "reduce_scatter", "all-to-all": "all_to_all",
    "collective-permute": "send",
}
BITS = {"pred": 8, "bf16": 16}
OPERATOR = re.compile(
    r"^\s*(?:ROOT )?%\S+ = (?P<out>.*?) (?P<kind>" + "|".join(KINDS) + r")(?:-start)?\("
)
ARRAY = re.compile(r"\b(pred|bf16|[fsu]\d+)\[([\d,]*)\]")


def nbytes(shapes):
    """Return the bytes of all arrays that a text of shapes names."""
    total = 0
    for kind, dims in ARRAY.findall(shapes):
        count = 1
        for n in filter(None, dims.split(",")):
            count *= int(n)
        total += count * BITS.get(kind, int(re.sub(r"\D", "", kind) or 8)) // 8
    return total


def groups(line, devices):
    """Return (number of groups in a collective, number of devices in each)."""
    iota = re.search(r"replica_groups=\[(\d+),(\d+)\]", line)
    if iota:
        return int(iota[1]), int(iota[2])
    listed = re.search(r"replica_groups=\{(\{.*?\})\}", line)
    found = re.findall(r"\{([\d,]+)\}", listed[1]) if listed else []
    return (len(found), len(found[0].split(","))) if found else (1, devices)


def sent_by_all(kind, line, out, devices):
    """Return the bytes that all devices together send for one collective."""
    payload = nbytes(out)
    if kind == "send":
        pairs = re.search(r"source_target_pairs=\{(\{.*?\})\}", line)[1]
        return payload * sum(a != b for a, b in re.findall(r"\{(\d+),(\d+)\}", pairs))
    count, k = groups(line, devices)
    return count * (k - 1) * payload * {
        "all_reduce": 2, "reduce_scatter": k, "all_gather": 1, "all_to_all": 1
    }[kind]


def computations(text):
    """Return the lines of each computation of a module, and the name of its entry."""
    found, entry, name = {}, None, None
    for line in text.splitlines():
        head = re.match(r"^(ENTRY )?%?([\w.\-]+)\b.*\{$", line)
        if head and not line.startswith("HloModule"):
            name = head[2]
            entry = name if head[1] else entry
            found[name] = []
        elif name:
            found[name].append(line)
    return found, entry


def collectives(text, devices):
    """Return [(kind, bytes)] of one run of a compiled module."""
    found, entry = computations(text)

    def walk(name):
        seen = []
        for line in found.get(name, ()):
            operator = OPERATOR.search(line)
            if operator:
                kind = KINDS[operator["kind"]]
                seen.append((kind, sent_by_all(kind, line, operator["out"], devices)))
            for word, inner in re.findall(r"(body|calls|to_apply)=%?([\w.\-]+)", line):
                if word == "to_apply" and " call(" not in line:
                    continue
                trips = re.search(r'known_trip_count":\{"n":"(\d+)"', line)
                times = int(trips[1]) if trips and word == "body" else 1
                seen += walk(inner) * times
            branches = re.search(r"branch_computations=\{(.*?)\}", line)
            for inner in re.findall(r"%?([\w.\-]+)", branches[1] if branches else ""):
                seen += walk(inner)
        return seen

    return walk(entry)


def run_cells(program, folder):
    """Run a program cell by cell: its variables, and XLA's texts of the second cell."""
    with open(program) as file:
        lines = file.read().splitlines(keepends=True)
    starts = [i for i, line in enumerate(lines) if line.startswith("# %%")]
    space, before, texts = {"__name__": "__main__", "__file__": program}, set(), []
    for n, (start, stop) in enumerate(zip(starts, [*starts[1:], len(lines)])):
        text = "\n" * start + "".join(lines[start:stop])
        exec(compile(text, program, "exec"), space)  # noqa: S102  our own program
        there = set(glob.glob(f"{folder}/*after_optimizations.txt"))
        if n == 1:
            texts = [Path(path).read_text() for path in sorted(there - before)]
        before = there
    return space, texts


def views(array, devices):
    """Return each device's array: its own copy if all have one, else the whole."""
    held = getattr(array, "addressable_shards", ())
    if len(held) == devices and array.is_fully_replicated:
        return [shard.data for shard in held]
    return [array] * devices


def main(program, target):
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XLA_FLAGS"] = (f"{os.environ.get('XLA_FLAGS', '')} "
                                   f"--xla_dump_to={folder} --xla_dump_hlo_as_text")
        import jax
        import numpy

        made, texts = run_cells(program, folder)
        seen = [views(a, len(jax.devices())) for a in made["result"]]
        numpy.savez(target, **{f"{device}.{i}": a for i, each in enumerate(seen)
                               for device, a in enumerate(each)})
    sent = {}
    for text in texts:
        name = re.search(r"HloModule (?:jit_)?_*(\w+)", text)[1]
        times = made.get("calls", {}).get(name, 1)
        for kind, amount in collectives(text, len(jax.devices())) * times:
            seen = sent.setdefault(kind, [0, 0])
            seen[0], seen[1] = seen[0] + 1, seen[1] + amount
    with open(f"{target}.json", "w") as file:
        json.dump(sent, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
