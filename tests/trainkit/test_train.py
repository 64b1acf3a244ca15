"""The command: what it trains, prints and refuses, and how it goes on when stopped."""

import d2l_ext  # noqa: F401, I001
import json
import math
import multiprocessing
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import fuzz_checkpoints
import mxnet as mx
import numpy
import pytest
from idx_files import make_arrays, write_folder
from mxnet.gluon import nn
from trained import assert_bit_equal, last

from d2l_ext.clusters import checkpoint
from trainkit import command
from d2l_ext.data import sets as data
from trainkit import fit, job, networks, preparation, replicas
from trainkit.flags import parser
from trainkit.parts import Parts

TWO = ["--devices", "cpu:0,cpu:1"]
QUICK = ["--network", "mlp", "--num-examples", "320", "--num-epochs", "2"]  # 10 steps


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for variable in (data.DATASET, data.DATA_DIR, "D2L_EXT_DEVICES"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="module", autouse=True)
def digits():
    """Loaded once: every run of the command would scale them anew."""
    loaded, load = data._digits(), data._digits
    data._digits = lambda: loaded
    yield
    data._digits = load


# ---- What it prints ----


def test_the_last_line_is_json(run):
    code, out, _ = run(*QUICK, *TWO, "--kv-store", "local")
    assert code == 0 and out.count("\n") == 1
    result = json.loads(out)
    assert result.pop("seconds_per_epoch") > 0
    assert result.pop("samples_per_second") > 0
    assert 0.1 < result.pop("accuracy") <= 1
    assert result == {
        "devices": ["cpu:0", "cpu:1"], "network": "mlp", "dataset": "digits",
        "kv_store": "local", "epochs": 2, "steps": 10,
    }


def test_without_a_terminal_there_is_a_plain_line_per_epoch(run):
    first, second = run(*QUICK)[2].splitlines()
    numbers = r"loss \d\.\d{3}  accuracy 0\.\d{3}  [\d.]+ s  [\d,]+ samples/s"
    assert re.fullmatch(f"epoch 1/2  {numbers}", first)
    assert re.fullmatch(f"epoch 2/2  {numbers}", second)


def test_lines_within_an_epoch_come_when_asked_for(run):
    lines = run(*QUICK, "--disp-batches", 2)[2].splitlines()
    assert [re.sub(r"loss.*", "", x) for x in lines] == [
        "epoch 1/2  step 2/5  ", "epoch 1/2  step 4/5  ", "epoch 1/2  ",
        "epoch 2/2  step 2/5  ", "epoch 2/2  step 4/5  ", "epoch 2/2  ",
    ]


def test_on_a_terminal_there_is_a_bar_that_the_epochs_line_replaces(run, monkeypatch):
    monkeypatch.setattr(fit.Progress, "REDRAW", 0)
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True)
    code, out, err = run(*QUICK)
    assert code == 0 and json.loads(out)
    first = err.split("\n")[0].split("\r")
    assert [x for x in first if "[######" in x and " 20%" in x]
    assert first[-2].isspace()  # wiped
    assert first[-1].startswith("epoch 1/2  loss ") and "samples/s" in first[-1]


def test_training_learns(run):
    result = json.loads(run("--network", "mlp", "--num-epochs", 3, *TWO)[1])
    assert result["accuracy"] > 0.85


def test_the_profile_is_valid_and_shows_both_devices(run, tmp_path):
    assert run(*QUICK, *TWO, "--profile", tmp_path / "t.json")[0] == 0
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    worked = {names[e["pid"]] for e in events if e["ph"] == "X"}
    assert {"cpu/0", "cpu/1"} <= worked
    forward = [e for e in events if e["name"] == "log_softmax"]
    assert len(forward) == 3 * 2  # three steps on two devices
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in forward)


def test_a_run_of_one_step_has_a_profile_too(run, tmp_path):
    one = ["--num-examples", 64, "--num-epochs", 1, "--network", "mlp"]
    assert run(*one, "--profile", tmp_path / "t.json")[0] == 0
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def test_a_profile_that_cannot_be_written_is_named_and_loses_no_epoch(run, tmp_path):
    (tmp_path / "t.json").symlink_to("/dev/full")
    one = ["--num-examples", 64, "--num-epochs", 1, "--network", "mlp"]
    flags = ["--save-prefix", tmp_path / "p", "--profile", tmp_path / "t.json"]
    code, out, err = run(*one, *flags)
    assert (code, out) == (1, "")
    assert f"No space left on device: the profile {tmp_path}/t.json was not" in err
    assert last(tmp_path / "p")[1]["state"]["epoch"] == 1


def test_a_result_that_nobody_gets_is_an_error_with_the_result(run, monkeypatch):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        code, _, err = run(*QUICK)
        assert sys.stdout is None  # Python would write again at its end
        with pytest.raises(OSError):
            full.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())
    line = err.splitlines()[-1]
    assert code == 1 and line.startswith("d2l-ext-train: error: [Errno 28] No space")
    assert json.loads(line[line.index("{"):])["steps"] == 10


def test_closed_streams_do_not_keep_the_real_command_from_training(tmp_path):
    """No file gets the number of one of them, into which MXNet would write."""
    words = [sys.executable, "-m", "d2l_ext.train", *QUICK, "--save-prefix"]
    code = f"{shlex.join(words)} {tmp_path}/p >&- 2>&-"
    assert subprocess.run(["bash", "-c", code], check=False).returncode == 1
    assert last(tmp_path / "p")[1]["state"]["epoch"] == 2


def test_progress_that_cannot_be_written_is_no_reason_to_end(run, monkeypatch):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        code, out, _ = run(*QUICK)
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())
    assert code == 0 and json.loads(out)["steps"] == 10


# ---- The same weights ----


@pytest.mark.parametrize("kv_store", ["local", "device", None])
def test_in_float64_a_longer_run_ends_with_the_same_weights(kv_store):
    """In float32 not: a step may carry 1e-7 over a kink of ReLU, and it grows.

    A start that differs by 6e-8 on one device does the same. In float64 the whole
    trajectory shows that nothing but rounding is different.
    """

    def trained(devices, **how):
        net = networks.build("lenet", (1, 28, 28), devices)
        net.cast("float64")
        model = replicas.Replicas(
            net, devices, "sgd", {"learning_rate": 0.1, "momentum": 0.9}, **how
        )
        dataset = data.load_arrays("digits")
        part = dataset.train_X[:600], dataset.train_y[:600]
        for X, y in data.Batches(*part, 64, shuffle=True):  # the tenth has 24
            model.train_batch(X.astype("float64"), y)
        return numpy.concatenate([p.data().asnumpy().ravel() for p in model.params])

    one = trained([mx.cpu(0)])
    two = trained([mx.cpu(0), mx.cpu(1)], kv_store=kv_store, work_load_list=[3, 1])
    assert one.dtype == "float64"
    assert abs(two - one).max() < 1e-13 * abs(one).max()


def test_the_work_load_list_divides_each_minibatch(run, monkeypatch):
    sizes, split = [], replicas.split_batch

    def noted(*args):
        shards = split(*args)
        sizes.append([len(y) for y in shards[1]])
        return shards

    monkeypatch.setattr(replicas, "split_batch", noted)
    run(*QUICK, *TWO, "--work-load-list", "3,1", "--num-epochs", 1)
    assert sizes[:5] == [[48, 16]] * 5


def test_the_rate_falls_after_the_epochs_that_are_named():
    args = parser().parse_args(
        ["--lr", "0.8", "--lr-factor", "0.5", "--lr-step-epochs", "2,3"]
    )
    rates = [preparation.learning_rate(args, epoch) for epoch in range(5)]
    assert rates == [0.8, 0.8, 0.4, 0.2, 0.2]


# ---- Stopped and taken up again ----


def tiny_dropout():
    """Eight channels: oneDNN then keeps the weights in a layout of its own."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, kernel_size=3, strides=4, activation="relu"))
    net.add(nn.Dropout(0.5), nn.Conv2D(8, kernel_size=3), nn.Dense(10))
    return net


@pytest.fixture
def stop_at(monkeypatch):
    """Send this process a signal in the middle of a step."""

    def arrange(number, signum=signal.SIGTERM):
        original = replicas.Replicas.train_batch

        def train_batch(self, X, y, step, n):
            if step == number:
                os.kill(os.getpid(), signum)
            return original(self, X, y, step, n)

        monkeypatch.setattr(replicas.Replicas, "train_batch", train_batch)

    return arrange


#: Flags of runs, and the step after which each is stopped: 2 is within an epoch, 4 at
#: its end, 7 in the next.
STOPPED = [
    ((), 2), ((), 4), ((), 7),
    ((*TWO, "--kv-store", "local", "--network", "lenet", "--num-examples", 80,
      "--batch-size", 16), 4),
    ((*TWO, "--kv-store", "device", "--optimizer", "adam", "--lr", 0.01), 2),
    ((*TWO, "--kv-store", "none", "--optimizer", "adam", "--lr", 0.01), 7),
    ((*TWO, "--optimizer", "nag", "--lr-step-epochs", "1"), 7),
    ((*TWO, "--network", "dropout", "--mom", 0), 2),
    (("--network", "dropout", "--optimizer", "rmsprop", "--lr", 0.001), 7),
    (("--optimizer", "signum", "--lr", 0.001), 2),
    (("--optimizer", "adagrad",), 7),
]


@pytest.mark.parametrize(
    "flags, step", STOPPED,
    ids=[" ".join(map(str, [*flags, at])) for flags, at in STOPPED],
)
def test_a_run_that_was_stopped_ends_with_the_same_bits(
    run, tmp_path, monkeypatch, stop_at, flags, step
):
    monkeypatch.setitem(networks.NETWORKS, "dropout", tiny_dropout)
    flags = [*QUICK, *flags, "--save-prefix"]
    code, _, undisturbed = run(*flags, tmp_path / "whole")
    stop_at(step)
    stopped, out, before = run(*flags, tmp_path / "cut")
    assert (code, stopped, out) == (0, 128 + signal.SIGTERM, "")
    assert f"stopped by SIGTERM after step {step + 1}; go on with --resume" in before
    mx.np.random.uniform(size=5)  # what was drawn in between plays no part
    code, out, after = run(*flags, tmp_path / "cut", "--resume")
    assert code == 0 and json.loads(out)["steps"] == 10
    assert f"going on from {tmp_path}/cut-{step + 1:08d}.ckpt" in after
    (whole, of_whole), (cut, of_cut) = last(tmp_path / "whole"), last(tmp_path / "cut")
    assert_bit_equal(whole, cut)
    assert of_whole["settings"] == of_cut["settings"]
    # Stopped at its end, an epoch gets no line.
    assert losses(before + after) == losses(undisturbed)[step == 4 :]


def losses(text):
    return re.findall(r"epoch (\d)/2  (loss \S+  accuracy \S+)", text)


def test_ctrl_c_stops_so_too_and_without_a_prefix_keeps_nothing(run, tmp_path, stop_at):
    stop_at(3, signal.SIGINT)
    assert run(*QUICK, "--save-prefix", tmp_path / "p")[0] == 130
    assert last(tmp_path / "p")[1]["state"]["step"] == 4
    code, _, err = run(*QUICK)
    assert code == 130 and "nothing was kept" in err


def test_an_epoch_lasts_as_long_as_its_steps_whatever_is_saved_in_between(
    run, tmp_path, monkeypatch, stop_at
):
    """A clock on which a step takes a second, and a checkpoint a hundred."""
    now = [0.0]

    def takes(seconds, kind, name):
        original = getattr(kind, name)

        def call(*args):
            now[0] += seconds
            return original(*args)

        monkeypatch.setattr(kind, name, call)

    monkeypatch.setattr(fit, "perf_counter", lambda: now[0])
    takes(1, replicas.Replicas, "train_batch")
    takes(100, checkpoint.Checkpoints, "save")
    stop_at(7)
    flags = [*QUICK, "--save-every", 2, "--save-prefix", tmp_path / "p"]
    assert run(*flags)[0] == 128 + signal.SIGTERM
    assert last(tmp_path / "p")[1]["state"]["seconds"] == 3
    code, out, _ = run(*flags, "--resume")
    assert code == 0 and json.loads(out)["seconds_per_epoch"] == 5


def test_a_stop_does_not_wait_for_the_evaluation(run, tmp_path, monkeypatch):
    count, calls = replicas.Replicas._count_right, []

    def counted(*args):
        calls.append(1)
        os.kill(os.getpid(), signal.SIGTERM)
        return count(*args)

    monkeypatch.setattr(replicas.Replicas, "_count_right", counted)
    code, out, _ = run(*QUICK, "--save-prefix", tmp_path / "p")
    assert (code, out, len(calls)) == (143, "", 1)
    assert last(tmp_path / "p")[1]["state"]["epoch"] == 1


def test_ctrl_c_before_the_first_step_ends_with_130_however_often(run, monkeypatch):
    cleared = []

    def impatient(*_):
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            cleared.append(True)

    monkeypatch.setattr(data, "load_arrays", impatient)
    before = signal.getsignal(signal.SIGINT)
    assert run(*QUICK) == (130, "", "") and cleared
    assert signal.getsignal(signal.SIGINT) is before


@contextmanager
def begun(*flags):
    """The real command after a few steps: a process of its own, nothing replaced."""
    process = subprocess.Popen(
        [sys.executable, "-m", "d2l_ext.train", "--network", "mlp", "--num-epochs",
         "200", "--disp-batches", "5", *flags],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    try:
        assert "step 5/24" in process.stderr.readline()
        yield process
    finally:
        process.kill()
        process.wait()


def test_ctrl_c_again_and_again_ends_the_real_command_with_130():
    """Also after training, while Python ends."""
    with begun() as process:
        deadline = time.monotonic() + 600
        while process.poll() is None and time.monotonic() < deadline:
            process.send_signal(signal.SIGINT)
            time.sleep(0.002)
        err = process.stderr.read()
    assert process.returncode == 130
    assert "stopped by SIGINT after step" in err.splitlines()[-1]


def test_a_finished_run_is_evaluated_again_and_may_be_prolonged(run, tmp_path):
    flags = [*QUICK, "--save-prefix", tmp_path / "p"]
    first = json.loads(run(*flags)[1])
    assert json.loads(run(*flags, "--resume")[1]) == first
    assert json.loads(run(*flags, "--resume", "--num-epochs", 3)[1])["steps"] == 15


def in_another_process(argv):
    with open(os.devnull, "w") as nothing:
        sys.stdout = sys.stderr = nothing
        os._exit(command.main(argv))


@pytest.fixture(scope="module")
def processes():
    """Processes that have imported MXNet already: each would take seconds to."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["d2l_ext.train"])
    return context


@pytest.mark.parametrize(
    "more", [[], ["--shard", "states", "--save-shards"]], ids=" ".join
)
def test_runs_killed_at_random_moments_end_with_the_same_bits(
    run, tmp_path, processes, more
):
    write_folder(tmp_path, make_arrays(train=320))
    flags = ["--dataset", "mnist", "--data-dir", str(tmp_path), "--network", "mlp",
             "--num-epochs", "12", "--optimizer", "adam", "--lr", "0.01", *TWO,
             *more, "--save-every", "1", "--save-prefix"]
    assert run(*flags, tmp_path / "whole")[0] == 0
    argv = [*flags, str(tmp_path / "cut"), "--resume"]
    reached = [0]
    for _ in range(2):
        process = processes.Process(target=in_another_process, args=(argv,))
        process.start()
        # Wait for a new checkpoint, then for a moment that nobody has chosen.
        deadline = time.monotonic() + 600
        while newest(tmp_path) <= reached[-1] and process.is_alive():
            assert time.monotonic() < deadline
            time.sleep(0.001)
        time.sleep(random.uniform(0, 0.05))
        process.kill()
        process.join()
        reached.append(newest(tmp_path))
    assert reached[1] < 60, "all was over before the first was killed"
    code, _, err = run(*argv)
    assert code == 0, err
    kind = Parts if more else checkpoint.Checkpoints
    (_, found, record), (_, right, _) = (kind(tmp_path / name).load()
                                         for name in ("cut", "whole"))
    assert_bit_equal(found, right)
    assert record["state"]["epoch"] == 12
    # Neither a lock nor a half-written file.
    assert not [*tmp_path.rglob(".*"), *tmp_path.rglob("*.part")]


def newest(folder):
    return max((int(p.stem[-8:]) for p in folder.glob("cut-*")), default=0)


def test_the_real_command_ends_by_sigterm_with_143(tmp_path, run):
    flags = ["--save-prefix", str(tmp_path / "p"), "--network", "mlp", "--num-epochs"]
    with begun(*flags[:2]) as process:
        process.terminate()
        out, err = process.communicate(timeout=600)
    assert (process.returncode, out) == (143, "")
    step = int(re.search(r"stopped by SIGTERM after step (\d+)", err)[1])
    assert step < 200 * 24
    epochs = math.ceil((step + 1) / 24)
    code, out, err = run(*flags, epochs, "--resume")
    assert code == 0 and f"-{step:08d}.ckpt, step {step}\n" in err
    run(*flags, epochs, "--save-prefix", tmp_path / "whole")
    assert_bit_equal(last(tmp_path / "whole")[0], last(tmp_path / "p")[0])


# ---- What is refused, or told, when a run goes on ----


@pytest.fixture
def half(run, tmp_path):
    """Flags of a run that has done one epoch of two, and its prefix."""
    flags = [*QUICK, *TWO, "--save-prefix", tmp_path / "p"]
    assert run(*flags, "--save-every", 2, "--num-epochs", 1)[0] == 0
    return flags


def test_other_settings_are_refused_with_the_values(refused, half):
    other = "--num-examples 128 --network lenet --batch-size 32 --optimizer nag "
    other += "--lr 0.2 --lr-step-epochs 1 --mom 0.5 --wd 0 --seed 5 --gc-type 2bit"
    was_and_is = (
        "num_examples was 320 and is 128", "network was mlp and is lenet",
        "batch_size was 64 and is 32", "optimizer was sgd and is nag",
        "lr was 0.1 and is 0.2", r"lr_step_epochs was \[\] and is \[1\]",
        "mom was 0.9 and is 0.5", "wd was 0.0001 and is 0.0", "seed was 0 and is 5",
        "gc_type was none and is 2bit",
    )
    why = "made with other settings: " + ".*; ".join(was_and_is)
    refused(*half, "--resume", *other.split(), why=why)


def test_other_data_are_refused(run, refused, tmp_path):
    for seed in (0, 1):
        (tmp_path / str(seed)).mkdir()
        write_folder(tmp_path / str(seed), make_arrays(seed=seed))
    flags = ["--dataset", "mnist", "--network", "mlp", "--num-epochs", 1,
             "--save-prefix", tmp_path / "p", "--data-dir"]
    assert run(*flags, tmp_path / "0")[0] == 0
    assert run(*flags, tmp_path / "0", "--resume")[0] == 0
    refused(*flags, tmp_path / "1", "--resume", why="checksum of the data was")


def test_other_devices_are_allowed_with_notices(run, half):
    other = "--devices cpu:1,cpu:2,cpu:3 --work-load-list 3,1,1 --kv-store none"
    code, _, err = run(*half, "--resume", *other.split())
    assert code == 0
    for what in ("devices was ['cpu:0', 'cpu:1'] and is ['cpu:1', 'cpu:2', 'cpu:3']",
                 "work_load_list was None and is [3, 1, 1]",
                 "kv_store was device and is none"):
        assert (f"notice: {what}; the weights may differ in the last digits, or more "
                "with dropout") in err


def test_what_compression_held_back_is_said_to_be_lost(run, tmp_path):
    flags = [*QUICK, *TWO, "--gc-type", "2bit", "--save-prefix", tmp_path / "p"]
    run(*flags, "--num-epochs", 1)
    code, _, err = run(*flags, "--resume")
    assert code == 0 and "the residuals of 2bit compression are not stored" in err


def test_a_damaged_checkpoint_is_passed_over_with_a_warning_unless_all_are(
    run, refused, half, tmp_path
):
    saved = checkpoint.Checkpoints(tmp_path / "p")
    newest = saved.paths()[-1]
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    code, _, err = run(*half, "--resume")
    assert code == 0
    assert f"warning: {newest} is damaged" in err
    assert "p-00000004.ckpt, step 4" in err
    assert run(*half[:-1], tmp_path / "whole")[0] == 0
    assert_bit_equal(last(tmp_path / "whole")[0], last(tmp_path / "p")[0])
    for path in saved.paths():
        path.write_bytes(path.read_bytes()[:1000])
    refused(*half, "--resume", why="no checkpoint can be used")


def test_fewer_epochs_than_were_done_are_refused(run, refused, half, stop_at):
    stop_at(7)
    assert run(*half, "--resume")[0] == 143  # in the second epoch
    why = "--num-epochs 1, but .*08.ckpt is from epoch 2: the number includes"
    refused(*half, "--resume", "--num-epochs", 1, why=why)


def test_a_prefix_that_a_run_is_using_is_refused(run, refused, half, tmp_path):
    other = checkpoint.Checkpoints(tmp_path / "p")
    other.begin()
    before = sorted(tmp_path.iterdir())
    refused(*half, "--resume", why=f"process {os.getpid()} on .* holds ")
    assert sorted(tmp_path.iterdir()) == before
    other.end()
    assert run(*half, "--resume")[0] == 0
    assert not list(tmp_path.glob(".*"))


def gone(part):
    part.clear()


CONTENTS = {
    "no record": (lambda _, record: gone(record), "no settings of a run"),
    "no settings": (lambda _, record: record.update(settings=[1]), "no settings"),
    "no lr": (lambda _, record: record["settings"].pop("lr"), "lr was None and is 0.1"),
    "long lr": (lambda _, record: record["settings"].update(lr="\x1b" * 10**6),
                r"other settings: lr was '[\\x1b.]{27,31}' and is 0.1$"),
    "no state": (lambda _, record: gone(record["state"]), "the keys of its state"),
    "a list": (lambda _, record: record.update(state=[]), "the keys of its state"),
    "words": (lambda _, record: record["state"].update(loss="x"), "keys of its state"),
    "true": (lambda _, record: record["state"].update(step=True), "keys of its state"),
    "a later step": (lambda _, record: record["state"].update(step=5, examples=1),
                     "its state is impossible for a training run"),
    "no examples": (lambda _, record: record["state"].update(step=1),
                    "is impossible for a training run"),
    "an earlier time": (lambda _, record: record["state"].update(seconds=-1.0), "impo"),
    "endless epochs": (lambda _, record: record["state"].update(history=[math.inf]),
                       "is impossible"),
    "more epochs": (lambda _, record: record["state"].update(epoch=2), "impossible"),
    "another step": (lambda _, record: record["state"].update(step=1, examples=64),
                     "holds step 6, unlike its name"),
    "no weight": (lambda arrays, _: arrays.pop("param.1"),
                  r"param.1 is missing in the checkpoint and float32 \(128,\) here"),
    "another shape": (lambda arrays, _: arrays.update({"param.1": numpy.zeros((2, 2))}),
                      r"param.1 is float64 \(2, 2\) in the"),
    "another type": (lambda arrays, _: arrays.update({"param.1": numpy.zeros(128)}),
                     r"param.1 is float64 \(128,\) in the"),
    "no momentum": (lambda arrays, _: arrays.pop("state.0.0"), "state.0.0 is missing"),
    "no counts": (lambda arrays, _: arrays.pop("counts"), "counts is missing"),
    "counts below": (lambda arrays, _: arrays["counts"].fill(-1), "counts of updates"),
}


def test_content_that_no_training_wrote_is_an_error_in_one_line(run, half, tmp_path):
    newest = checkpoint.Checkpoints(tmp_path / "p").paths()[-1]
    for name, (change, message) in CONTENTS.items():
        arrays, record = checkpoint.read(newest)
        whole = newest.read_bytes()
        change(arrays, record)
        checkpoint.write(newest, arrays, record)
        code, out, err = run(*half, "--resume")
        newest.write_bytes(whole)
        line = err.splitlines()[-1]
        assert (code, out) == (2, "") and re.search(message, line), (name, err)
        assert newest.name in line and line.startswith("d2l-ext-train: error: "), name


def test_made_up_and_damaged_checkpoints_are_one_line_or_passed_over():
    """A sample; `tests/helpers/fuzz_checkpoints.py` tries as many as are wanted."""
    command = [sys.executable, fuzz_checkpoints.__file__, "--count", "30"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "\n0 of 30 ended as none may" in done.stdout, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-2].partition(" ")[2])
    assert found.keys() == {"refused in one line", "passed over", "read"}


def test_a_last_minibatch_may_have_one_example_for_each_device(run):
    flags = ["--network", "mlp", "--num-epochs", 1, "--batch-size", 8]
    assert run(*flags, "--num-examples", 10, *TWO)[0] == 0


# ---- Wrong flags ----


@pytest.mark.parametrize(
    "flags, message",
    [
        ("--devices tpu:0", "unknown device 'tpu:0'"),
        ("--devices cpu:0,cpu:0", "a device is listed twice"),
        ("--gpus 0,x", "'0,x': expected numbers with commas"),
        ("--gpus 0 --devices cpu:0", "--gpus and --devices exclude each other"),
        ("--network lennet", "unknown network 'lennet'.*Did you mean 'lenet'"),
        ("--dataset fashion-mnist", "unknown data set.*Did you mean 'fashion_mnist'"),
        ("--data-dir /tmp", "--data-dir cannot.* digits.*: name another --dataset"),
        ("--dataset mnist --data-dir /no/where", "/no/where lacks train-images"),
        ("--dataset cifar10 --data-dir /no/where", "there is no such folder"),
        ("--devices cpu:0,cpu:1,cpu:2 --batch-size 2", "2 examples cannot be split"),
        ("--devices cpu:0,cpu:1 --batch-size 9 --num-examples 10",
         "last minibatch of an epoch would have 1 of 10 examples for 2 devices"),
        ("--num-examples 9999", "--num-examples 9999: there are only 1,536"),
        ("--work-load-list 3,1", r"work_load_list=\[3, 1\] does not fit 1 devices"),
        ("--network transformer --tensor 2 --devices cpu:0,cpu:1 --work-load-list 1,1",
         "list has 2 numbers: give one for each of the 1 groups of 2 devices"),
        ("--work-load-list 3,-1", "'-1': expected a positive number"),
        ("--resume", "--resume needs --save-prefix"),
        ("--save-every 5", "--save-every needs --save-prefix"),
        ("--save-prefix /dev/null/p", "/dev/null"),
        ("--kv-store dist-sync", "expected one of local, .*Did you mean 'dist_sync'"),
        ("--kv-store dist_sync", "needs a job of workers.* pslaunch -n 2 -s 1"),
        ("--kv-store dist_p3", "'dist_p3': p3 is not a type of store.* Use dist_sync"),
        ("--allreduce rang", "unknown allreduce 'rang'.*Did you mean 'ring'"),
        ("--allreduce ring", "--allreduce ring needs --kv-store none"),
        ("--kv-store dist_async --lr-step-epochs 1", "learning rate only once"),
        ("--local-steps 0", "'0': expected a whole number of at least 1"),
        ("--local-steps 4", "--kv-store device cannot .* --local-steps 4.*use dist"),
        ("--local-steps 4 --kv-store dist_async", "--kv-store dist_async cannot"),
        ("--local-steps 4 --kv-store dist_sync --save-prefix p", "one worker.s weigh"),
        ("--outer-lr 0.7", "--outer-mom need --local-steps"),
        ("--outer-mom 1", "'1': expected a number of at least 0 and below 1"),
        ("--optimizer adma", "Did you mean 'adam'"),
        ("--gc-type 2bit", "needs at least two devices and --kv-store device"),
        ("--gc-type 2bit --kv-store local --devices cpu:0,cpu:1", "not 2 and local"),
        ("--batch-size 0", "'0': expected a whole number of at least 1"),
        ("--batch-size 1.5", "'1.5': expected a whole number of at least 1"),
        ("--lr nan", "'nan': expected a positive number"),
        ("--seed -1", "'-1': expected a whole number"),
        ("--profile /no/where.json", "--profile /no/where.json: cannot write"),
        ("--profile t.json --devices cpu:0,cpu:999", "cpu.999. .*room for cpu.0. to"),
        ("--num-epoch 5", "unrecognized arguments: --num-epoch"),
        ("--save-prefix=", "--save-prefix: '': expected a name: this one is empty"),
        ("--profile=", "--profile: '': expected a name: this one is empty"),
        ("--devices cpu:2147483647", "unknown device 'cpu:2147483647'.*up to 9999"),
        ("--lr 1e308", "'1e308': expected a positive number of at most 3.4e[+]38"),
        ("--wd 1e308", "'1e308': expected a number from 0 to 3.4e[+]38"),
        ("--mom 2", "'2': expected a number of at least 0 and below 1"),
        ("--gc-threshold 1e308", "'1e308': expected a positive number"),
        ("--lr-step-epochs 3,2", "'3,2': expected ascending whole numbers of at least"),
        ("--lr-step-epochs 0", "'0': expected ascending whole numbers of at least 1"),
        ("--lr-factor 1.5", "'1.5': expected a positive number of at most 1"),
        ("--save-shards", "--save-shards needs --save-prefix"),
        ("--save-shards --save-prefix p --kv-store dist_async", "at different steps"),
        ("--shard state", "from none, states, gradients, parameters. Did you"),
        ("--shard states --gc-type 2bit", "--gc-type cannot be .* with --shard states"),
        ("--shard states --recompute", "--recompute cannot.* --shard.* in one piece"),
        ("--shard gradients --accumulate 2", "--accumulate cannot .* with --shard gr"),
        ("--shard states --kv-store dist_sync", "among the devices of one process"),
        ("--tensor 2", "--tensor 2 divides the heads of attention, and lenet has none"),
        ("--tensor 0", "'0': expected a whole number of at least 1"),
        ("--network transformer --tensor 2", "--tensor 2: 1 devices cannot be divided"),
        ("--network transformer --tensor 5 --devices cpu:0,cpu:1,cpu:2,cpu:3,cpu:4",
         "4 heads and"),
        ("--network transformer --shard states", "--shard states cannot .* --network"),
        ("--network transformer --recompute --accumulate 2", "--accumulate, --recomp"),
        ("--network transformer --gc-type 2bit", "--gc-type cannot be .* --network"),
        ("--network transformer --kv-store dist_sync", "dist_sync cannot be"),
        ("--network transformer --data-dir /tmp", "one text .--dataset FILE"),
        ("--network transformer --dataset /no/text", "no text file '/no/text'"),
    ],
)
def test_a_wrong_flag_is_an_error_in_one_line(refused, flags, message):
    refused(*flags.split(), why=message)


def test_gpus_that_are_not_there_are_named(refused, monkeypatch):
    count = mx.context.num_gpus()
    refused("--gpus", f"0,{count}", why=f"MXNet sees {count} GPUs")
    monkeypatch.setattr(mx.context, "num_gpus", lambda: 0)
    monkeypatch.setenv("D2L_EXT_DEVICES", "gpu")
    refused(*QUICK, why="MXNet sees 0")


def test_gpus_are_taken_by_their_numbers(monkeypatch):
    monkeypatch.setattr(mx.context, "num_gpus", lambda: 3)
    args = parser().parse_args(["--gpus", "0,2"])
    assert job.from_flags(args).places == [mx.gpu(0), mx.gpu(2)]
