"""The benchmark of placements: every one is measured beside its prediction."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "where_to_cut.py"
SMALL = "--layers 1 --seq-len 2 --batch-size 2 --hidden 4 --vocabulary 9 --rounds 1"


@pytest.mark.parametrize(
    "options, expected",
    [
        ("", {"000", "001", "011"}),
        # One device, the chosen placement, and those that are not contiguous.
        ("--interleaved --apart", {"000", "010"}),
        ("--interleaved --part 2/2", {"000"}),
        ("--placements 011 010", {"000", "011", "010"}),
    ],
)
def test_all_placements_asked_for_are_measured(options, expected, tmp_path):
    file = tmp_path / "result.json"
    command = [sys.executable, SCRIPT, *SMALL.split(), *options.split(),
               "--output", file]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    result = json.loads(file.read_text())
    rows = {row["placement"]: row for row in result["rows"]}
    assert set(rows) == expected | {result["chosen"]}
    assert all(row["predicted_ms"] > 0 < row["measured_ms"] for row in rows.values())
    best = min(rows[p]["predicted_ms"] for p in ("000", "001", "011") if p in rows)
    assert rows[result["chosen"]]["predicted_ms"] == best
    assert rows[result["chosen"]]["chosen_to_this"] == 1
