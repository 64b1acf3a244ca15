"""The pipeline's benchmark: its checks, its figures, and one tiny run."""

import pytest

from benchmarks import measure
from benchmarks.pipeline import lstm_pipeline as benchmark


def test_a_tiny_run_compares_three_placements(run):
    tiny = ["--seq-len", "3", "--hidden", "8", "--rounds", "2"]
    result, printed = run(benchmark, "pipeline", *tiny)
    assert [row["id"] for row in result["rows"]] == ["one", "contiguous", "interleaved"]
    assert result["bar"]["bound"] == 1.5
    assert '{"bound": 1.5, "share": 0.9, "reached": ' in printed


def test_ratios_are_paired_and_compared_with_the_bound():
    turns = {
        "one": [(2.0, 0), (8.0, 0), (4.0, 0)],
        "contiguous": [(1.0, 5), (4.0, 7), (4.0, 9)],
        "interleaved": [(2.0, 0), (8.0, 0), (4.0, 0)],
    }
    one, contiguous, interleaved = benchmark.entries(turns, seq_len=3)
    assert one["of_bound"] is None
    assert contiguous["speed_up"] == {"median": 2.0, "min": 1.0, "max": 2.0}
    assert contiguous["of_bound"] == pytest.approx(2.0 / 1.5, abs=1e-3)
    assert contiguous["page_faults"] == 7
    assert interleaved["speed_up"]["median"] == 1.0


def test_a_row_with_other_gradients_is_refused_by_name():
    bound, X, y = benchmark.bind_all(T=3, H=8)
    bound["interleaved"].params["l2_h2h_bias"][:] = 1
    with pytest.raises(measure.Disagreement, match="interleaved: not one"):
        benchmark.check_bits(bound, X, y)
