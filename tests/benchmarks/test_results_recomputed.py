"""What a recorded result says of its samples follows from its samples, row by row.

`cost_model`: in `test_fitting.py`."""

from statistics import median

import pytest

from benchmarks.data_parallel import report
from bookkit import stored


def recorded(name, key):
    return stored.read(name).data[key]


def rows(name):
    rows = {row["id"]: row for row in recorded(name, "rows") if "missing" not in row}
    assert rows
    return rows


def spread(values, digits):
    what = {"median": median(values), "min": min(values), "max": max(values)}
    return {key: pytest.approx(value, abs=0.6 * 10**-digits)
            for key, value in what.items()}


def test_compression_its_medians_and_ratios():
    for row in rows("compression").values():
        ways = [row["plain"], row["compressed"]]
        for way in ways:
            assert way["median_s"] == pytest.approx(median(way["seconds"]), abs=1e-4)
        plain, compressed = (way["median_s"] for way in ways)
        assert row["ratio"] == pytest.approx(plain / compressed, abs=6e-4)


def test_distributed_its_medians_and_ratios():
    found = rows("distributed")
    for row in found.values():
        assert row["median_ms"] == pytest.approx(median(row["rounds_ms"]), abs=1e-3)
        if row["against"]:
            pairs = zip(row["rounds_ms"], found[row["against"]]["rounds_ms"])
            ratio = median(a / b for a, b in pairs)
            assert row["ratio"] == pytest.approx(ratio, abs=6e-4)


def test_data_parallel_its_medians_and_speed_ups():
    found = rows("data_parallel")
    medians = {id: [*map(median, row["rounds_ms"])] for id, row in found.items()}
    for id, row in found.items():
        assert row["step_ms"] == spread(medians[id], 3)
        ratios = [a / b for a, b in zip(medians[row["baseline"]], medians[id])]
        assert row["speed_up"] == spread(ratios, 3)
    turns = {id: [[ms / 1e3 for ms in turn] for turn in row["rounds_ms"]]
             for id, row in found.items()}
    faults = {id: [row["page_faults"]] for id, row in found.items()}
    bars = recorded("data_parallel", "bars")
    for bar, again in zip(bars, report.bars(turns, faults)):
        assert bar == {**again, "value": pytest.approx(again["value"], abs=2e-4)}


def test_the_options_in_a_name_reached_the_process_in_pytorch():
    for id, row in rows("data_parallel").items():
        if id.startswith(("torch", "ddp")):
            assert ("graphs" in row["about"]) == ("compile" in id)
            assert row["about"]["channels"] == ("last" if "last" in id else "first")


def test_pipeline_its_medians_and_speed_ups():
    found = rows("pipeline")
    bound = recorded("pipeline", "bar")["bound"]
    for row in found.values():
        assert row["step_ms"] == spread(row["steps_ms"], 1)
        ratios = [a / b for a, b in zip(found["one"]["steps_ms"], row["steps_ms"])]
        assert row["speed_up"] == spread(ratios, 3)
        if row["of_bound"] is not None:
            assert row["of_bound"] == pytest.approx(median(ratios) / bound, abs=1e-3)


@pytest.mark.parametrize("name", [
    name for name in stored.names() if "quiet" in (stored.read(name).data or {})])
def test_what_the_page_compares_was_measured_on_a_quiet_machine(name):
    assert stored.read(name).data["quiet"]["warnings"] == []
