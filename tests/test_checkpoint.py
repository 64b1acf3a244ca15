"""A checkpoint is whole or it is not there, and nothing damaged is ever loaded."""

import d2l_ext  # noqa: F401, I001
import os
import random

import numpy
import pytest

from d2l_ext import checkpoint
from d2l_ext.checkpoint import CheckpointError, Checkpoints

ARRAYS = {
    "param.0": numpy.arange(6, dtype="float32").reshape(2, 3),
    "counts": numpy.array([7, 8]),
}
RECORD = {"state": {"epoch": 2, "loss": 0.1}, "settings": {"lr": 1e-4, "devices": []}}


@pytest.fixture
def path(tmp_path):
    checkpoint.write(tmp_path / "run-00000001.ckpt", ARRAYS, RECORD)
    return tmp_path / "run-00000001.ckpt"


def numbered(step):
    return {"param.0": numpy.full(3, step)}, {"step": step}


def saved(folder, *steps):
    run = Checkpoints(folder / "run")
    for step in steps:
        run.save(step, *numbered(step))
    return run


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def flip(path, position, bit=0):
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


# ---- One file ----


def test_what_is_written_is_read(path):
    arrays, record = checkpoint.read(path)
    assert record == RECORD
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert numpy.array_equal(arrays[name], array)


def test_a_file_cut_off_anywhere_is_refused(path):
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(CheckpointError):
            checkpoint.read(path)


def test_a_flipped_bit_anywhere_is_refused(path):
    whole = path.read_bytes()
    for position in range(len(whole)):
        flip(path, position, bit=position % 8)
        with pytest.raises(CheckpointError, match="run-00000001.ckpt"):
            checkpoint.read(path)
        path.write_bytes(whole)


def test_a_pickle_is_never_opened(tmp_path):
    """Even with the right checksum: to read a pickle is to run it."""
    import io

    packed = io.BytesIO()
    numpy.savez(packed, record=numpy.array([print], dtype=object))
    payload = packed.getvalue()
    path = tmp_path / "run-00000001.ckpt"
    path.write_bytes(checkpoint.MAGIC + checkpoint._sha256(payload) + b"\n" + payload)
    with pytest.raises(CheckpointError, match="holds something else"):
        checkpoint.read(path)


def test_the_name_of_the_record_is_taken(tmp_path):
    with pytest.raises(ValueError, match="'record' is taken"):
        checkpoint.write(tmp_path / "x", {"record": numpy.zeros(1)}, {})


# ---- Interrupted writing ----


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_what_fails_while_it_is_written_leaves_the_old_state(
    tmp_path, monkeypatch, call
):
    run = saved(tmp_path, 1)
    before = names(tmp_path)

    def broken(*_):
        raise OSError("disk full")

    owner = os if call == "fsync" else checkpoint.Path
    monkeypatch.setattr(owner, call, broken)
    with pytest.raises(OSError, match="disk full"):
        run.save(2, *numbered(2))
    assert names(tmp_path) == before
    assert run.load()[2] == {"step": 1}


def test_the_name_comes_after_the_bytes_are_on_the_disk(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, checkpoint.Path.replace
    monkeypatch.setattr(os, "fsync", lambda f: (calls.append("fsync"), fsync(f)))
    monkeypatch.setattr(
        checkpoint.Path, "replace", lambda a, b: (calls.append("name"), replace(a, b))
    )
    saved(tmp_path, 1)
    assert calls == ["fsync", "name", "fsync"]  # the last one for the folder


def test_what_a_killed_writer_left_is_never_loaded_and_is_removed(tmp_path):
    run = saved(tmp_path, 1)
    whole = run.paths()[0].read_bytes()
    left = tmp_path / ".run-00000002.ckpt.0123.part"
    left.write_bytes(whole[:-1])
    assert run.load()[2] == {"step": 1}
    run.save(3, *numbered(3))
    assert names(tmp_path) == ["run-00000001.ckpt", "run-00000003.ckpt"]


# ---- A run's checkpoints ----


def test_the_last_two_are_kept(tmp_path):
    saved(tmp_path, 1, 2, 10, 9_999)
    assert names(tmp_path) == ["run-00000010.ckpt", "run-00009999.ckpt"]


def test_the_last_one_is_loaded(tmp_path):
    path, arrays, record = saved(tmp_path, 1, 2, 10).load()
    assert (path.name, record) == ("run-00000010.ckpt", {"step": 10})
    assert numpy.array_equal(arrays["param.0"], [10, 10, 10])


def test_nothing_is_loaded_where_nothing_is(tmp_path):
    assert Checkpoints(tmp_path / "new" / "run").load() is None


def test_a_damaged_one_is_passed_over_and_named(tmp_path):
    run, lines = saved(tmp_path, 1, 2), []
    flip(run.paths()[-1], random.Random(0).randrange(100, 400))
    assert run.load(warn=lines.append)[2] == {"step": 1}
    assert len(lines) == 1
    assert "run-00000002.ckpt is damaged" in lines[0]
    assert "going on from run-00000001.ckpt" in lines[0]


def test_when_all_are_damaged_none_is_loaded(tmp_path):
    run = saved(tmp_path, 1, 2)
    for path in run.paths():
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CheckpointError, match="no checkpoint can be used") as error:
        run.load()
    assert all(path.name in str(error.value) for path in run.paths())


def test_a_later_damaged_one_does_not_cost_a_whole_one(tmp_path):
    """Kept by number alone, the damaged one would push out the one before."""
    run = saved(tmp_path, 1, 9)
    run.paths()[-1].write_bytes(b"")
    run.save(2, *numbered(2))
    assert run.load(warn=lambda _: None)[2] == {"step": 2}
    assert names(tmp_path) == [f"run-0000000{i}.ckpt" for i in (1, 2, 9)]


def test_another_runs_files_are_left_alone(tmp_path):
    others = ["run-1.ckpt", "runner-00000001.ckpt", "x.run-00000001.ckpt"]
    for name in others:
        (tmp_path / name).write_bytes(b"")
    assert saved(tmp_path, 1, 2, 3).load()[2] == {"step": 3}
    assert set(others) < set(names(tmp_path))


def test_the_folder_of_the_prefix_is_made(tmp_path):
    Checkpoints(tmp_path / "a" / "b" / "run").save(1, *numbered(1))
    assert names(tmp_path / "a" / "b") == ["run-00000001.ckpt"]


@pytest.mark.parametrize("prefix", ["", "folder/", ".."])
def test_a_prefix_needs_a_name(prefix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="names a folder"):
        Checkpoints(prefix)
