"""The benchmark of the cost model: its rows, its bars, its result, and a tiny run."""

import pytest

from benchmarks.scale import fitting as benchmark
from benchmarks.scale import study
from bookkit import stored


def test_a_case_is_named_in_words():
    assert benchmark.name(("ring", 4, 5_000_000)) == "ring, 4, 5 MB"
    assert benchmark.name(("pipeline", (6, 2), 128, 4)) == "pipeline, 6+2, 128, 4"


def test_an_unseen_case_has_no_part_in_the_constants():
    fitted = {("local", k, n): 1e-3 + k * n * 1e-9 for k in (2, 3) for n in (10**6,
              3 * 10**6)}
    honest, wrong = 1e-3 + 4 * 5e6 * 1e-9, 1.0
    results = []
    for unseen in (honest, wrong):
        one_pass = {**fitted, ("local", 4, 5 * 10**6): unseen}
        results.append(benchmark.entries([one_pass, one_pass], cores=2))
    assert results[0][1] == results[1][1]  # the constants
    first, second = (rows[-1] for rows, _ in results)
    assert first["use"] == "unseen" and abs(first["error"]) < 1e-3
    assert second["error"] < -0.9
    assert first["noise"] == 0


def test_the_bars_are_those_of_the_unseen_rows():
    rows = [{"use": "fitted", "error": 0.9, "noise": 0.02}] + [
        {"use": "unseen", "error": e, "noise": 0.04} for e in (-0.3, 0.05, 0.02)]
    (middle, worst), noise = benchmark.bars(rows)
    assert (middle["value"], middle["reached"]) == (0.05, True)
    assert (worst["value"], worst["reached"]) == (0.3, False)
    assert noise == 0.04


def test_a_tiny_run_has_fitted_and_unseen_rows(run):
    words = "--passes 1 --rounds 1 --only local ring"
    result, printed = run(benchmark, "cost_model", *words.split())
    assert {row["use"] for row in result["rows"]} == {"fitted", "unseen"}
    assert '"id": "local, 4, 5 MB", "use": "unseen"' in printed


def test_a_choice_without_a_case_to_predict_is_refused_in_a_line(capsys):
    with pytest.raises(SystemExit):
        benchmark.main(["--only", "zzz"])
    assert "--only zzz leaves nothing to predict" in capsys.readouterr().err


def test_the_record_is_what_this_model_makes_of_its_samples():
    record = stored.read("cost_model")
    result = record.data
    cases = {benchmark.name(c): c for c in study.FITTED + study.UNSEEN}
    passes = [{cases[row["id"]]: 1e-3 * ms for row, ms in zip(result["rows"], column)}
              for column in zip(*(row["passes_ms"] for row in result["rows"]))]
    rows, _ = benchmark.entries(passes, record.machine["cores"])
    assert sum(row["use"] == "unseen" for row in rows) >= 12
    for row, again in zip(result["rows"], rows):
        for key in ("measured_ms", "predicted_ms", "error", "noise"):
            assert row[key] == pytest.approx(again[key], rel=1e-3, abs=1e-3), row["id"]
    assert benchmark.bars(result["rows"]) == (result["bars"], result["noise"])
