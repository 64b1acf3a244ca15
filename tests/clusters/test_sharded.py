"""A sharded checkpoint is whole or not there, and any number of workers can load it."""

import d2l_ext  # noqa: F401, I001
import multiprocessing
import random
import threading
import time

import numpy
import pytest
from job_checks import wait_for

from d2l_ext.clusters import agreement, checkpoint, sharded
from d2l_ext.clusters.checkpoint import CheckpointError
from d2l_ext.clusters.sharded import ShardedCheckpoints

LAYOUT = {"w": ((5, 7), "float32"), "m": ((11,), "float64"), "t": ((1,), "int64")}
PLAIN = {
    "w": numpy.random.RandomState(0).randn(35).astype("float32"),
    "m": numpy.random.RandomState(1).randn(11),
    "t": numpy.array([7]),
}
SIZE = 30_000  # elements, where processes are killed


def workers(folder, n, layout=LAYOUT):
    return [ShardedCheckpoints(folder / "run", layout, i, n) for i in range(n)]


def save(folder, n, step, arrays=PLAIN, record=None, ranks=None):
    """By n workers, or those of `ranks`, one after the other."""
    everyone = workers(folder, n)
    for worker in everyone if ranks is None else [everyone[i] for i in ranks]:
        parts = {name: x[worker.own(name)] for name, x in arrays.items()}
        worker.save(step, parts, record)
        worker.wait()


def equal(found, arrays=PLAIN):
    return all(found[name].dtype == x.dtype and (found[name] == x).all()
               for name, x in arrays.items())


@pytest.mark.parametrize("n", range(1, 7))
@pytest.mark.parametrize("m", range(1, 7))
def test_what_m_workers_saved_n_workers_load_bit_for_bit(tmp_path, m, n):
    save(tmp_path, m, 4, record={"epoch": 2})
    loaded = [worker.load(4) for worker in workers(tmp_path, n)]
    assert all(record == {"epoch": 2} for _, record in loaded)
    assert equal({name: numpy.concatenate([arrays[name] for arrays, _ in loaded])
                  for name in PLAIN})


def test_what_is_needed_whole_is_whole(tmp_path):
    save(tmp_path, 3, 4)
    arrays, _ = workers(tmp_path, 2)[1].load(4, whole=["w"])
    assert equal(arrays, {"w": PLAIN["w"], "m": PLAIN["m"][5:], "t": PLAIN["t"]})


def test_a_worker_reads_no_shard_in_which_it_has_nothing(tmp_path):
    save(tmp_path, 4, 1)
    (tmp_path / "run-00000001.shards" / "3-of-4.ckpt").unlink()
    assert workers(tmp_path, 2)[0].load(1)[0]["m"].size == 5
    with pytest.raises(CheckpointError, match="3-of-4.ckpt is missing"):
        workers(tmp_path, 2)[1].load(1)


def test_without_its_last_shard_a_checkpoint_is_not_there(tmp_path):
    save(tmp_path, 3, 1)
    save(tmp_path, 3, 2, ranks=[0, 2])
    (alone,) = workers(tmp_path, 1)
    assert alone.steps() == [1] and list(alone.whole()) == [1]
    with pytest.raises(CheckpointError, match=r"00002.shards/manifest.ckpt is missing"):
        alone.load(2)


def test_old_shards_do_not_pass_for_those_of_other_workers(tmp_path):
    """Of a start that was killed: the one of worker 1 would finish the checkpoint."""
    save(tmp_path, 2, 1)
    old = {name: x + 1 for name, x in PLAIN.items()}
    save(tmp_path, 2, 2, old, ranks=[1])
    workers(tmp_path, 2)[0].load(1)
    save(tmp_path, 2, 2, ranks=[0])
    assert workers(tmp_path, 1)[0].steps() == [1]


def test_the_last_two_are_kept(tmp_path):
    for step in (1, 2, 3):
        save(tmp_path, 2, step)
    save(tmp_path, 2, 4, ranks=[1])
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"run-0000000{step}.shards" for step in (2, 3, 4)]


def spoil(path):
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)


DAMAGE = {
    "missing": (lambda path, other: path.unlink(), "1-of-3.ckpt is missing"),
    "empty": (lambda path, other: path.write_bytes(b""), "1-of-3.ckpt is not from"),
    "damaged": (lambda path, other: spoil(path), "1-of-3.ckpt is damaged: its SHA-256"),
    "older": (lambda path, other: path.write_bytes(other), "3.ckpt is not from this"),
}


@pytest.mark.parametrize("spoiled, message", DAMAGE.values(), ids=DAMAGE)
def test_a_spoiled_shard_is_named_and_the_one_before_taken(tmp_path, spoiled, message):
    save(tmp_path, 3, 1, {name: x + 1 for name, x in PLAIN.items()})
    save(tmp_path, 3, 2)
    older, path = (tmp_path / f"run-0000000{i}.shards/1-of-3.ckpt" for i in (1, 2))
    spoiled(path, older.read_bytes())
    two, lines = workers(tmp_path, 2), []
    seen = [{str(step): digest for step, digest in worker.whole(lines.append).items()}
            for worker in two]
    assert [list(steps) for steps in seen] == [["1", "2"], ["1"]]
    assert agreement.common_steps(["worker 0", "worker 1"], seen) == [1]
    assert len(lines) == 1 and message in lines[0]
    for worker in two:
        with pytest.raises(CheckpointError, match=message):
            worker.load(2)
    two[0].load(1)
    assert two[0].steps() == [1]


def test_a_damaged_manifest_is_named(tmp_path):
    save(tmp_path, 3, 1)
    spoil(tmp_path / "run-00000001.shards" / sharded.MANIFEST)
    with pytest.raises(CheckpointError, match="manifest.ckpt is damaged"):
        workers(tmp_path, 2)[0].load(1)


def test_another_file_in_the_manifests_place_is_named(tmp_path):
    save(tmp_path, 3, 1)
    folder = tmp_path / "run-00000001.shards"
    (folder / "0-of-3.ckpt").replace(folder / sharded.MANIFEST)
    with pytest.raises(CheckpointError, match="manifest.ckpt is not a manifest"):
        workers(tmp_path, 2)[0].load(1)


@pytest.mark.parametrize(
    "other, message",
    [
        ({"w": ((7, 5), "float32")},
         r"'w' in .*: found float32 \[5, 7\], expected float32 \[7, 5\]"),
        ({"w": ((5, 7), "float64")}, r"float32 \[5, 7\], expected float64 \[5, 7\]"),
        ({"v": ((3,), "float32")}, r"'v' in .*: found None, expected float32 \[3\]"),
    ],
)
def test_a_checkpoint_of_another_layout_is_refused(tmp_path, other, message):
    save(tmp_path, 3, 1)
    with pytest.raises(CheckpointError, match=message):
        workers(tmp_path, 2, {**LAYOUT, **other})[0].load(1)


def test_a_chunk_of_another_size_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"'m' to save on worker 1 of 2: found "
                                              r"float64 \[11\], expected float64 "):
        one = workers(tmp_path, 2)[1]
        one.save(1, {**{k: x[one.own(k)] for k, x in PLAIN.items()}, "m": PLAIN["m"]})


def test_a_chunk_of_several_dimensions_is_refused(tmp_path):
    """Loaded by other workers, it would be cut by rows and not by elements."""
    (alone,) = workers(tmp_path, 1)
    with pytest.raises(CheckpointError, match=r"found float32 \[5, 7\], expected"):
        alone.save(1, {**PLAIN, "w": PLAIN["w"].reshape(5, 7)})


def test_what_is_written_is_what_was_there_when_save_was_called(tmp_path, monkeypatch):
    go_on, write = threading.Event(), checkpoint.write
    monkeypatch.setattr(
        checkpoint, "write", lambda *args: (go_on.wait(), write(*args))
    )
    (alone,) = workers(tmp_path, 1)
    state = {name: x.copy() for name, x in PLAIN.items()}
    alone.save(1, state)  # it comes back while nothing is written yet
    assert alone.steps() == []
    state["w"] += 1
    go_on.set()
    alone.wait()
    assert equal(alone.load(1)[0])


def test_what_went_wrong_in_the_thread_is_told_once(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("disk full")

    (alone,) = workers(tmp_path, 1)
    alone.save(1, PLAIN)
    alone.wait()
    with monkeypatch.context() as broken:
        broken.setattr(checkpoint, "write", full)
        alone.save(2, PLAIN)
        with pytest.raises(OSError, match="disk full"):
            alone.save(3, PLAIN)
    alone.save(4, PLAIN)
    alone.wait()
    assert alone.steps() == [1, 4]


def forever(folder, rank, n, began):
    """Save the steps 1, 2, …, whose arrays say which they are."""
    own = ShardedCheckpoints(folder / "run", {"w": ((SIZE,), "float64")}, rank, n)
    began.wait()
    for step in range(1, 10**6):
        own.save(step, {"w": numpy.full(own.own("w").stop, step)[own.own("w")] * 1.0})


def test_killed_at_any_moment_it_leaves_the_last_finished_one(tmp_path):
    """One of three dies; the others write on until the next step, and are ended."""
    fork, draw = multiprocessing.get_context("fork"), random.Random(0)
    layout = {"w": ((SIZE,), "float64")}
    for trial in range(7):
        folder, began = tmp_path / str(trial), fork.Barrier(4)
        three = [fork.Process(target=forever, args=(folder, i, 3, began), daemon=True)
                 for i in range(3)]
        for process in three:
            process.start()
        seen = ShardedCheckpoints(folder / "run", layout, 1, 3)
        began.wait()
        wait_for(lambda seen=seen, n=trial: max(seen.steps(), default=0) >= n)
        time.sleep(draw.uniform(0, 0.02))
        draw.shuffle(three)
        for process in three:
            process.kill()
            time.sleep(draw.choice([0, 0.005]))
        for process in three:
            process.join()
        two = workers(folder, 2, layout)
        step = max(two[0].steps(), default=0)
        assert step >= trial
        assert all(list(worker.whole(pytest.fail))[-1:] == [step] * (step > 0)
                   for worker in two)
        if step:
            parts = [worker.load(step)[0]["w"] for worker in two]
            assert (numpy.concatenate(parts) == step).all()
