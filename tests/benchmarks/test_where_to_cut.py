"""The benchmark of placements: every one is measured beside its prediction."""

import pytest

from benchmarks.pipeline import where_to_cut

SMALL = "--layers 1 --seq-len 2 --batch-size 2 --hidden 4 --vocabulary 9 --rounds 1"


@pytest.mark.parametrize("options, expected", [
    ("", {"000", "001", "011"}),
    # One device, the chosen placement, and those that are not contiguous.
    ("--interleaved --apart", {"000", "010"}),
    ("--interleaved --part 2/2", {"000"}),
    ("--placements 011 010", {"000", "011", "010"}),
])
def test_all_placements_asked_for_are_measured(options, expected, run):
    result, _ = run(where_to_cut, "where_to_cut", *SMALL.split(), *options.split())
    rows = {row["placement"]: row for row in result["rows"]}
    assert set(rows) == expected | {result["chosen"]}
    assert all(row["predicted_ms"] > 0 < row["measured_ms"] for row in rows.values())
    best = min(rows[p]["predicted_ms"] for p in ("000", "001", "011") if p in rows)
    assert rows[result["chosen"]]["predicted_ms"] == best
    assert rows[result["chosen"]]["chosen_to_this"] == 1
