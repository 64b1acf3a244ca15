"""`--save-shards`: a run whose checkpoint is in parts goes on as one with a file."""

import d2l_ext  # noqa: F401, I001
import errno
import json
import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
from job_checks import PYTHON, nodes_of, nothing_left, wait_for  # noqa: F401
from trained import assert_bit_equal, assert_near, last

import pslaunch as launch
from d2l_ext.clusters.checkpoint import CheckpointError
from d2l_ext.clusters.sharded import ShardedCheckpoints
from trainkit import replicas
from trainkit.parts import Parts

SMALL = ("--network", "mlp", "--num-examples", "96", "--optimizer", "adam",
         "--lr", "0.003", "--save-every", "2")
TWO = ("--devices", "cpu:0,cpu:1", "--shard", "states", "--batch-size", "32")
THREE = ("--devices", "cpu:0,cpu:1,cpu:2", "--batch-size", "32")
TRAIN = [PYTHON, "-m", "d2l_ext.train", *SMALL]
RING = [*TRAIN, "--kv-store", "ring", "--batch-size", "16"]


def state(prefix):
    """Arrays and record of the last checkpoint in parts."""
    return Parts(prefix).load()[1:]


def test_parts_hold_what_a_file_holds_and_any_number_of_devices_goes_on(run, tmp_path):
    file = (*SMALL, *TWO, "--save-prefix", tmp_path / "file", "--num-epochs")
    assert run(*file, 2)[0] == 0
    cut = (*SMALL, "--save-shards", "--save-prefix", tmp_path / "cut", "--num-epochs")
    assert run(*cut, 1, *TWO)[0] == 0
    assert sorted(p.name for p in (tmp_path / "cut-00000003.shards").iterdir()) == [
        "0-of-2.ckpt", "1-of-2.ckpt", "manifest.ckpt"]
    assert run(*cut, 2, *TWO, "--resume")[0] == 0
    whole, _ = last(tmp_path / "file")
    assert_bit_equal(state(tmp_path / "cut")[0], whole)
    code, out, _ = run(*cut, 3, *THREE, "--resume")  # of other devices, undivided
    assert (code, json.loads(out)["steps"]) == (0, 9)
    assert run(*file, 3, "--resume")[0] == 0
    assert_near(state(tmp_path / "cut")[0], last(tmp_path / "file")[0], 1e-5, 1e-6)


def test_workers_of_a_ring_write_a_part_each_and_another_number_goes_on(
    nothing_left, run, tmp_path  # noqa: F811
):
    flags = ["--save-shards", "--save-prefix", str(tmp_path / "ring")]
    for epochs in (1, 2):
        job = launch.run([*RING, *flags, "--num-epochs", str(epochs), "--resume"],
                         num_workers=2, deadline=600)
        assert job.returncode == 0, job.cause
    file = ["--save-prefix", str(tmp_path / "file"), "--num-epochs"]
    one = launch.run([*RING, *file, "2"], num_workers=2, deadline=600)
    assert one.returncode == 0
    assert_bit_equal(state(tmp_path / "ring")[0], last(tmp_path / "file")[0])
    assert run(*SMALL, *THREE, *flags, "--num-epochs", 3, "--resume")[0] == 0
    assert run(*SMALL, *THREE, *file, 3, "--resume")[0] == 0
    assert_bit_equal(state(tmp_path / "ring")[0], last(tmp_path / "file")[0])


def test_a_worker_of_a_ring_is_killed_and_the_job_ends_with_the_bits_of_another(
    nothing_left, tmp_path  # noqa: F811
):
    command = [*RING, "--num-epochs", "40", "--save-shards", "--save-prefix"]
    assert launch.run([*command, tmp_path / "whole"], deadline=600).returncode == 0
    rank, cut = random.randrange(2), Parts(tmp_path / "cut")
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(launch.run, [*command, tmp_path / "cut"], deadline=600,
                             max_restarts=1)
        wait_for(lambda: max(cut.files.steps(), default=0) > 3, 300)
        time.sleep(random.random() / 5)
        os.kill(nodes_of(nothing_left)["worker", rank], signal.SIGKILL)
        job = future.result()
    assert (job.returncode, job.restarts) == (0, 1), job.notes
    assert_bit_equal(state(tmp_path / "cut")[0], state(tmp_path / "whole")[0])


def test_a_part_of_a_save_that_was_not_finished_is_not_taken_for_that_of_another(
    tmp_path
):
    first, second = (Parts(tmp_path / "p", rank, 2) for rank in (0, 1))
    second.save(2, {"w": numpy.zeros(5)}, {})
    second.wait()  # and its job is killed; in the next one
    first.begin()
    first.save(2, {"w": numpy.ones(5)}, {})
    first.end()
    assert first.paths() == [] and first.load() is None


def test_a_damaged_part_is_passed_over_and_with_all_damaged_nothing_is_loaded(
    run, tmp_path
):
    flags = (*SMALL, *TWO, "--save-shards", "--save-prefix", tmp_path / "p")
    assert run(*flags, "--num-epochs", 1)[0] == 0
    steps = sorted(Parts(tmp_path / "p").whole())
    assert steps == [2, 3]
    (tmp_path / "p-00000003.shards" / "1-of-2.ckpt").write_bytes(b"x")
    said = []
    assert Parts(tmp_path / "p").load(said.append)[0].name == "p-00000002.shards"
    assert "1-of-2.ckpt is not from this save" in said[0]
    (tmp_path / "p-00000002.shards" / "0-of-2.ckpt").unlink()
    with pytest.raises(CheckpointError, match="no checkpoint can be used"):
        Parts(tmp_path / "p").load(said.append)


def test_a_checkpoint_that_not_all_workers_have_is_named_before_it_is_removed(tmp_path):
    parts = Parts(tmp_path / "p")
    for step in (1, 2):
        parts.save(step, {"w": numpy.ones(5)}, {})
        parts.wait()
    said, path = [], tmp_path / "p-00000002.shards"
    assert parts.load(said.append, [1])[0].name == "p-00000001.shards"
    (line,) = said
    assert line == (f"warning: {path} is damaged, or not all workers have it; it is "
                    "removed")
    assert not path.exists()


def test_a_stop_beside_a_failed_write_is_one_error(run, tmp_path, monkeypatch):
    """The signal comes in the evaluation, while a thread still writes."""
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def stopped(*_):
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(ShardedCheckpoints, "write", full)
    monkeypatch.setattr(replicas.Replicas, "_count_right", stopped)
    code, out, err = run(*SMALL, "--num-epochs", 2, "--save-shards", "--save-every", 99,
                         "--save-prefix", tmp_path / "p")
    assert (code, out) == (1, "")
    assert "No space left on device" in err.splitlines()[-1], err
    assert "go on with --resume" not in err


def test_a_save_of_which_all_parts_fail_is_one_error(tmp_path):
    parts = Parts(tmp_path / "p", parts=2)
    (tmp_path / "p-00000002.shards").write_text("no folder")
    parts.save(2, {"w": numpy.zeros(5)}, {})
    with pytest.raises(OSError, match="File exists: .*2.shards was not written; earl"):
        parts.wait()
    parts.end()


def test_a_prefix_of_the_other_kind_is_refused(run, refused, tmp_path):
    flags = (*SMALL, "--num-epochs", 1, "--save-prefix", tmp_path / "p")
    assert run(*flags)[0] == 0
    refused(*flags, "--save-shards", "--resume", why="is from a run without --save-sh")


def test_workers_that_would_save_parts_of_different_steps_do_not_begin(
    nothing_left, tmp_path  # noqa: F811
):
    own = "exec \"$@\" --save-every $((2 + DMLC_WORKER_ID))"
    command = ["bash", "-c", own, "worker", *RING, "--save-prefix", str(tmp_path / "p")]
    job = launch.run([*command, "--save-shards"], num_workers=2, deadline=600)
    assert job.returncode != 0
    said = job.output("worker", 0)
    assert "save_every is 2 on worker 0" in said and "3 on worker 1" in said, said
    assert launch.run(command, num_workers=2, deadline=600).returncode == 0
