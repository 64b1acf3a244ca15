"""A job that is killed and started again ends with the weights of one that was not."""

import d2l_ext  # noqa: F401, I001
import resource

import numpy
from job_checks import PYTHON, nothing_left  # noqa: F401
from trained import assert_bit_equal, last

import pslaunch as launch
from benchmarks.clusters.recovery import story
from d2l_ext.clusters.checkpoint import Checkpoints

TRAIN = [PYTHON, "-m", "d2l_ext.train", "--network", "mlp", "--num-examples", "321",
         "--batch-size", "32", "--kv-store", "dist_sync"]
#: 6 steps an epoch, enough for two kills on a busy machine; a line and a checkpoint
#: where a test can see them.
STEPS = ["--num-epochs", "12", "--save-every", "4", "--disp-batches", "1"]


# ---- Killed, and started again ----


def job(prefix, *lose):
    """The story of a job of two workers and a server that loses these processes."""
    words = ["-n", 2, "-s", 1, "--deadline", 600, "--max-restarts", 2, *TRAIN, *STEPS]
    return story.run(story.Local(), [*words, "--save-prefix", prefix], lose)


def after_five_steps(start):
    return lambda told: told.last_step(start) > told.went_on.get(start, 0) + 5


def test_whoever_is_killed_the_final_state_is_that_of_an_undisturbed_job(
    nothing_left, tmp_path  # noqa: F811
):
    """Weights, momentum, counts: bit by bit, whichever of the roles was killed."""
    whole = job(tmp_path / "whole")
    assert whole.job["returncode"] == 0, whole.said
    killed = [(after_five_steps(1), "worker 0"), (after_five_steps(2), "server 0")]
    cut = job(tmp_path / "cut", *killed)
    assert (cut.job["returncode"], cut.job["restarts"]) == (0, 2), cut.said
    assert [note.split(";")[0] for note in cut.job["notes"]] == [
        f"{name} was ended by SIGKILL" for _, name in killed]
    arrays, record = last(tmp_path / "whole")
    assert abs(arrays["state.0.0"]).max() > 0  # there is momentum to lose
    assert_bit_equal(arrays, last(tmp_path / "cut")[0])
    assert last(tmp_path / "cut")[1]["state"]["epoch"] == record["state"]["epoch"]
    # Each start but the first goes on, no more than an interval behind.
    assert cut.went_on.keys() == {2, 3} and min(cut.went_on.values()) > 0
    assert max(cut.done_again().values()) <= 4


# ---- What workers must have in common ----

OTHER = """
import d2l_ext, os, sys
if os.environ["DMLC_WORKER_ID"] == "1":
    os.environ["MXNET_KVSTORE_BIGARRAY_BOUND"] = "1000"
    sys.argv += ["--lr", "0.3"]
import mxnet
if os.environ["DMLC_WORKER_ID"] == "1":
    mxnet.__version__ = "1.8.0"
from trainkit import command
sys.exit(command.main())
"""


def test_workers_that_are_not_alike_are_refused_before_the_first_step():
    job = launch.run([PYTHON, "-c", OTHER, *TRAIN[3:], "--disp-batches", "1"],
                     num_servers=2, max_restarts=2)
    assert (job.returncode, job.restarts) == (2, 0)
    message = job.last_lines()
    for part in (
        "MXNet is '1.9.1' on worker 0 (127.0.0.1), '1.8.0' on worker 1 (127.0.0.1)",
        "MXNET_KVSTORE_BIGARRAY_BOUND is '1000000' on worker 0 (127.0.0.1), '1000' on",
        "lr is 0.1 on worker 0 (127.0.0.1), 0.3 on worker 1",
    ):
        assert part in message
    assert " step " not in message


def test_a_checkpoint_that_only_one_worker_has_is_not_gone_on_from(tmp_path):
    words = " ".join([*TRAIN, "--num-epochs", "1", "--resume", "--save-prefix"])
    command = ["bash", "-c", f"exec {words} {tmp_path}/$DMLC_WORKER_ID/p"]
    assert launch.run(command).returncode == 0
    job = launch.run(command)
    assert job.returncode == 2
    message = job.last_lines()
    assert "no whole checkpoint in common, by steps: worker 0 (127.0.0.1): 6" in message
    assert "worker 1 (127.0.0.1): none. --save-prefix must name" in message


# ---- Alone ----


def test_a_newer_checkpoint_that_others_do_not_have_is_passed_over(tmp_path):
    saved = Checkpoints(tmp_path / "p")
    for step in (3, 6):
        saved.save(step, {"a": numpy.zeros(2)}, {})
    lines = []
    path, _, _ = saved.load(lines.append, steps=[3])
    assert path.name == "p-00000003.ckpt" and "not all workers have" in lines[0]
    (tmp_path / "p-00000006.ckpt").write_bytes(b"half")
    assert list(saved.whole()) == [3]


def test_a_full_disk_leaves_the_old_checkpoint_from_which_the_run_goes_on(
    run, tmp_path
):
    """Files may not grow beyond 50 kB for a while; the checkpoint has 70 or more."""
    flags = ["--network", "mlp", "--num-examples", "321", "--save-prefix"]
    assert run(*flags, tmp_path / "whole", "--num-epochs", 2)[0] == 0
    assert run(*flags, tmp_path / "cut", "--num-epochs", 1)[0] == 0
    (old,) = tmp_path.glob("cut-*")
    before, limit = old.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limit[1]))
    try:
        first = run(*flags, tmp_path / "new")
        code, _, err = run(*flags, tmp_path / "cut", "--num-epochs", 2, "--resume")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    none = "d2l-ext-train: error: [Errno 27] File too large: "
    none += f"{tmp_path}/new-00000006.ckpt was not written; no earlier one is there\n"
    assert first == (1, "", none)
    assert len(before) > 50_000 and code == 1
    assert f"cut-00000012.ckpt was not written; {old.name} is there" in err
    assert "File too large" in err
    assert old.read_bytes() == before and list(tmp_path.glob("*cut*")) == [old]
    assert run(*flags, tmp_path / "cut", "--num-epochs", 2, "--resume")[0] == 0
    assert_bit_equal(last(tmp_path / "whole")[0], last(tmp_path / "cut")[0])


def test_only_a_start_after_the_first_goes_on_unasked(run, tmp_path, monkeypatch):
    flags = ["--network", "mlp", "--num-examples", "64", "--num-epochs", "1",
             "--save-prefix", tmp_path / "p"]
    for start, code, word in (("1", 0, "epoch 1/1"), ("2", 0, "going on from"),
                              ("1", 2, "there are checkpoints already"),
                              ("", 2, "there are checkpoints already")):
        monkeypatch.setenv("D2L_EXT_START", start)
        found, _, err = run(*flags)
        assert found == code and word in err
