"""The benchmark of LeNet's step: its rows, its bars, and one tiny run of it."""

import pytest

from benchmarks.data_parallel import lenet, report, rows

TINY = ["--batch-size", "8", "--rounds", "1", "--steps", "1"]

# Rows and report


def turns(**ms):
    """Two rounds of one step, by row id with underscores."""
    return {k.replace("_", "-"): [[v / 1e3], [v / 1e3]] for k, v in ms.items()}


def test_every_row_is_compared_with_a_row_on_one_device():
    by_id = {row.id: row for row in rows.ROWS}
    assert {by_id[row.baseline].devices for row in rows.ROWS} == {1}
    assert set(rows.SCRATCH + rows.GLUON) <= set(by_id)


@pytest.mark.parametrize("peers, python, reason", [
    (False, "python", "left out by --no-peers"),
    (True, None, "not installed: make bench-peers"),
])
def test_a_peer_that_is_not_measured_has_a_reason(peers, python, reason):
    ours, missing = rows.chosen([], peers, python)
    assert missing == {row.id: reason for row in rows.ROWS if row.peer}
    assert len(ours) + len(missing) == len(rows.ROWS)


def test_an_unknown_row_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="no id begins with it.*scratch-1, scratch-2"):
        rows.chosen(["caffe"], True, None)


def verdicts(**ms):
    """(value, reached) of each bar, when no row has a page fault but the first."""
    faults = {id: [51 * (id == "scratch-1")] for id in turns(**ms)}
    bars = report.bars(turns(**ms), faults)
    return [bar["rows"] for bar in bars], [(b["value"], b["reached"]) for b in bars]


def test_the_best_step_is_judged_against_its_own_one_device_and_each_peer():
    compared, judged = verdicts(
        scratch_1=60, scratch_2=30, replay_1=50, replay_2=25, gluon_1=48,
        gluon_2_local=40, gluon_2_device=24, ddp_2=30, jax_2=32)
    assert compared == [["replay-1", "replay-2"], ["gluon-1", "gluon-2-device"],
                        ["gluon-2-device", "ddp-2"], ["gluon-2-device", "jax-2"],
                        ["scratch-1", None]]
    assert judged == [(2.0, True), (2.0, True), (0.8, True), (0.75, True), (51, False)]


def test_a_bar_that_is_missed_says_so():
    _, judged = verdicts(scratch_1=60, scratch_2=40, jax_2=40)
    assert judged[:2] == [(1.5, False), (None, None)]
    assert judged[2:4] == [(None, None), (1.0, False)]


# The real thing


@pytest.fixture(scope="module")
def tiny(run, tmp_path_factory):
    """A run with two rows of ours, and peers whose interpreter lacks them."""
    python = tmp_path_factory.mktemp("peer") / "python"
    python.write_text("#!/bin/sh\necho \"No module named 'torch'\" >&2\nexit 1\n")
    python.chmod(0o755)
    rows = ["--only", "scratch-1", "scratch-2", "gluon-2-local", "torch-1"]
    return run(lenet, "data_parallel", *TINY, *rows, "--peer-python", python)


def test_a_tiny_run_has_every_row(tiny):
    result, _ = tiny
    assert [entry["id"] for entry in result["rows"]] == [row.id for row in rows.ROWS]
    measured = [e for e in result["rows"] if "missing" not in e]
    assert [e["id"] for e in measured] == ["scratch-1", "scratch-2", "gluon-2-local"]
    assert all(len(e["rounds_ms"]) == len(e["rounds_ms"][0]) == 1 for e in measured)


def test_scratch_and_gluon_train_to_the_same_loss(tiny):
    agreement = tiny[0]["agreement"]
    assert agreement["apart"] <= agreement["tolerance"]


def test_a_peer_that_is_not_installed_is_a_row_that_says_so(tiny):
    result, text = tiny
    (entry,) = [e for e in result["rows"] if e["id"] == "torch-1"]
    assert entry["missing"] == "No module named 'torch'"
    assert '"missing": "No module named' in text


def test_a_batch_that_four_devices_cannot_share_is_refused(capsys):
    with pytest.raises(SystemExit):
        lenet.main(["--batch-size", "6"])
    assert "--batch-size 6: four devices share it evenly" in capsys.readouterr().err
