"""A checkpoint is whole or it is not there, and nothing damaged is ever loaded."""

import d2l_ext  # noqa: F401, I001
import os
import random
import shutil
import subprocess
import sys

import numpy
import pytest
from fuzz_checkpoints import packed, signed

from d2l_ext.clusters import checkpoint
from d2l_ext.clusters.checkpoint import CheckpointError, Checkpoints

#: In Fortran's order; with the name of the other part of a file; empty.
ARRAYS = {
    "param.0": numpy.asfortranarray(numpy.arange(6, dtype="float32").reshape(2, 3)),
    "record": numpy.array([7, 8]),
    "none": numpy.zeros((0, 2)),
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
        arrays[name][...] = 1  # it can be written to


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


def test_arrays_of_anything_but_numbers_are_refused(tmp_path):
    """NumPy would pickle them, and no checkpoint is unpickled."""
    with pytest.raises(ValueError, match="array 'a' has dtype object: give numbers"):
        checkpoint.write(tmp_path / "x", {"a": numpy.array([print])}, {})


def told(*of, rest=bytes(24)):
    """A payload that says so of an array x, whose bytes are `rest`."""
    return packed({}, {}, {"x": of}, rest)


PICKLE = b"\x80\x04cos\nsystem\n(V exit\ntR."
FORGED = {
    "nothing": (b"", "not found"),
    "a pickle": (PICKLE, "utf-8"),
    "another list": (b"[]\n", "list indices"),
    "no record": (b'{"arrays": {}}\n', "'record'"),
    "no arrays": (b'{"record": {}}\n', "'arrays'"),
    "a list of arrays": (b'{"arrays": [], "record": {}}\n', "'items'"),
    "a large array": (told("<f8", [10**15]),
                      r"'x' is \['<f8', \[1000000000000000\]\]: .* too small"),
    "a size beyond all": (told("<f8", [2**62, 4]), "'x' .* too big"),
    "no side": (told("<f8", [0, 10**30]), "'x'"),
    "a side that is none": (told("<f8", [-1]), "'x' .*: not a shape"),
    "an array for nobody": (packed({}, {}) + b"x", "1 bytes follow the last array"),
    "objects": (told("|O8", [3]), "'x' .*: not a numeric type"),
    "fields": (told([["a", "<f8"]], [3]), "'x'"),
    "code": (told("<f8", "exit(3)"), "'x'"),
    "no type": (told([3]), "'x'"),
    "nested lists": (packed({}, b"[" * 10**5), "recursion"),
}


@pytest.mark.parametrize("payload, message", FORGED.values(), ids=FORGED)
def test_content_is_checked_although_its_sum_is_right(tmp_path, payload, message):
    """Whoever makes up a file makes up its SHA-256 too."""
    (tmp_path / "x").write_bytes(signed(payload))
    with pytest.raises(CheckpointError, match=f"x has unexpected .*: .*{message}"):
        checkpoint.read(tmp_path / "x")


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    run = saved(tmp_path, 1, 2)
    os.truncate(run.paths()[-1], 1 << 40)  # nearly all of it is a hole
    lines = []
    assert Checkpoints(tmp_path / "run", most=10_000).load(lines.append)[2]["step"] == 1
    assert "has 1,099,511,627,776 bytes; those of this run have at most" in lines[0]


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


def test_what_a_neighbour_is_writing_is_left_alone(tmp_path):
    part = tmp_path / ".run-b-00000001.ckpt.0123.part"
    part.write_bytes(b"")
    saved(tmp_path, 1)
    assert part.exists()


# ---- One run at a time ----


def test_a_second_run_with_the_same_prefix_is_refused(tmp_path):
    run, second = Checkpoints(tmp_path / "run"), Checkpoints(tmp_path / "run")
    run.begin()
    with pytest.raises(ValueError, match=rf"process {os.getpid()} on \S+ holds .*run"):
        second.begin()
    neighbour = Checkpoints(tmp_path / "run-b")
    neighbour.begin()
    run.end()
    second.begin()
    second.end()
    neighbour.end()
    assert names(tmp_path) == []


def test_a_killed_run_holds_no_lock(tmp_path):
    code = ("import os, sys; from d2l_ext.clusters.checkpoint import Checkpoints; "
            "Checkpoints(sys.argv[1]).begin(); os.kill(os.getpid(), 9)")
    words = [sys.executable, "-c", code, tmp_path / "run"]
    assert subprocess.run(words, check=False).returncode == -9
    assert names(tmp_path) == [".run.lock"]
    run = Checkpoints(tmp_path / "run")
    run.begin()
    run.end()
    assert names(tmp_path) == []


def test_a_lock_whose_file_was_removed_is_taken_anew(tmp_path, monkeypatch):
    """By the run that had it, between our opening the file and our locking it."""
    flock, path = checkpoint.fcntl.flock, tmp_path / ".run.lock"

    def removed_first(*args):
        monkeypatch.setattr(checkpoint.fcntl, "flock", flock)
        path.unlink()
        flock(*args)

    monkeypatch.setattr(checkpoint.fcntl, "flock", removed_first)
    Checkpoints(tmp_path / "run").begin()
    assert path.exists()


def test_a_folder_that_knows_no_locks_is_told_of(tmp_path, monkeypatch):
    def missing(*_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(checkpoint.fcntl, "flock", missing)
    run, lines = Checkpoints(tmp_path / "run"), []
    run.begin(warn=lines.append)
    run.end()
    (line,) = lines
    assert line == (f"warning: {tmp_path} supports no locks (Function not "
                    "implemented): nothing will stop a second run with this prefix")


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("all of it")
    (tmp_path / ".run.lock").symlink_to("precious")
    with pytest.raises(OSError, match="no checkpoint can be written as .*/run-"):
        Checkpoints(tmp_path / "run").begin()
    assert (tmp_path / "precious").read_text() == "all of it"


# ---- Where nothing can be written ----


def begun_in(folder, mount):
    """What `begin` raises in a folder with a file system of its own."""
    code = ("import sys; from d2l_ext.clusters.checkpoint import Checkpoints\n"
            "try: Checkpoints(sys.argv[1]).begin(10**5)\n"
            "except OSError as error: print(error)")
    mounted = f"mount -t tmpfs {mount} none {folder}"
    script = f"{mounted} && exec {sys.executable} -c '{code}' {folder}/p"
    words = ["unshare", "-m", "bash", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(
    os.geteuid() or not shutil.which("unshare")
    or subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"],
                      check=False, capture_output=True).returncode,
    reason="to mount a file system takes root",
)
@pytest.mark.parametrize("mount, message", [
    ("-o ro", "Read-only file system: no"),
    ("-o size=4k", "No space left on device: no"),
    ("-o size=64k", "only 61,440 of 100,000 bytes are free: no"),
    ("-o size=1m", ""),
])
def test_a_folder_that_takes_no_checkpoint_is_refused(tmp_path, mount, message):
    told = f"checkpoint can be written as {tmp_path}/p-00000000.ckpt\n"
    found = begun_in(tmp_path, mount)
    assert found.endswith(f"{message} {told}" if message else "")
    assert bool(found) == bool(message)


def test_a_run_that_cannot_begin_holds_no_lock(tmp_path):
    with pytest.raises(OSError, match="of 1,000,000,000,000,000,000 bytes are free"):
        (first := Checkpoints(tmp_path / "run")).begin(need=10**18)
    (second := Checkpoints(tmp_path / "run")).begin()
    first.end()
    assert names(tmp_path) == [".run.lock"]
    second.end()
    assert names(tmp_path) == []


@pytest.mark.parametrize("length", [210, 300])
def test_a_name_that_leaves_no_room_is_refused(tmp_path, length):
    with pytest.raises(OSError, match="File name too long: no checkpoint can be"):
        Checkpoints(tmp_path / ("x" * length)).begin()
    assert [name for name in names(tmp_path) if ".lock" not in name] == []


# ---- A run's checkpoints ----


def test_the_last_two_are_kept(tmp_path):
    saved(tmp_path, 1, 2, 10, 9_999)
    assert names(tmp_path) == ["run-00000010.ckpt", "run-00009999.ckpt"]


def test_nothing_is_loaded_where_nothing_is(tmp_path):
    assert Checkpoints(tmp_path / "new" / "one" / "run").load() is None


def test_a_damaged_one_is_passed_over_and_named(tmp_path):
    run, lines = saved(tmp_path, 1, 2), []
    path = run.paths()[-1]
    flip(path, random.Random(0).randrange(100, path.stat().st_size))
    assert run.load(warn=lines.append)[2] == {"step": 1}
    assert len(lines) == 1
    assert "run-00000002.ckpt is damaged" in lines[0]
    assert "going on from run-00000001.ckpt" in lines[0]


NO_FILES = {
    "folder": (lambda path: path.mkdir(), "is a folder, not a file"),
    "pipe": (os.mkfifo, "is a pipe or a device, not a file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "a device, not a file"),
    "dangling link": (lambda path: path.symlink_to("gone"), "No such file"),
    "loop": (lambda path: path.symlink_to(path.name), "Too many levels"),
    "long link": (lambda path: path.symlink_to("x" * 300), "File name too long"),
}


@pytest.mark.parametrize("make, message", NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file_is_passed_over_and_named(tmp_path, make, message):
    run, lines = saved(tmp_path, 1), []
    path = tmp_path / "run-00000002.ckpt"
    make(path)
    assert run.load(lines.append)[2] == {"step": 1} and list(run.whole()) == [1]
    assert len(lines) == 1 and str(path) in lines[0] and message in lines[0]
    for step in (3, 4):
        run.save(step, *numbered(step))
    assert [p for p in run.paths() if p != path] == [
        tmp_path / f"run-0000000{step}.ckpt" for step in (3, 4)]


def test_a_folder_where_a_checkpoint_comes_is_moved_aside(tmp_path):
    run = saved(tmp_path, 1)
    (tmp_path / "run-00000002.ckpt" / "precious").mkdir(parents=True)
    run.save(2, *numbered(2))
    assert run.load()[2] == {"step": 2}
    assert (tmp_path / "run-00000002.ckpt.aside" / "precious").exists()


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


def test_a_damaged_one_of_an_earlier_step_does_not_cost_a_whole_one(tmp_path):
    """A run that goes on from the one before may save at other steps."""
    first = Checkpoints(tmp_path / "run")
    for step in (10, 20):
        first.save(step, {}, step)
    first.paths()[-1].write_bytes(b"damaged")
    second = Checkpoints(tmp_path / "run")
    assert second.load(lambda line: None)[2] == 10
    second.save(25, {}, 25)
    assert sorted(second.whole()) == [10, 25]
    second.save(30, {}, 30)
    assert sorted(second.whole()) == [25, 30]
    assert [path.name[-7:-5] for path in second.paths()] == ["20", "25", "30"]


def test_another_runs_files_are_left_alone(tmp_path):
    others = ["run-1.ckpt", "runner-00000001.ckpt", "x.run-00000001.ckpt"]
    for name in others:
        (tmp_path / name).write_bytes(b"")
    assert saved(tmp_path, 1, 2, 3).load()[2] == {"step": 3}
    assert set(others) < set(names(tmp_path))


@pytest.mark.parametrize("prefix", ["", "folder/", ".."])
def test_a_prefix_needs_a_name(prefix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="names a folder"):
        Checkpoints(prefix)
