"""Checkpoints that somebody damaged or made up, and what a training makes of them.

    python tests/helpers/fuzz_checkpoints.py --count 1000 --seed 0
    python tests/helpers/fuzz_checkpoints.py --count 1 --first 123    that one again

Each is the newest checkpoint of a run that goes on with `--resume` (`fuzz`); half of
the runs have an older one, which is whole. Right is: code 0, or code 2 and a last line
that is the error, behind no more than notices.
Prints how many trials ended how; exits with 1 when one ended otherwise, and keeps it.
"""

import d2l_ext  # noqa: F401, I001
import gzip
import json
import os
import pickle
import shutil
import sys
import tempfile
from pathlib import Path

import fuzz
import numpy
from fuzz import Executed

from d2l_ext.clusters import checkpoint

FLAGS = ["--network", "mlp", "--num-examples", "64", "--batch-size", "16",
         "--optimizer", "adam", "--save-prefix", "p"]


# ---- What can be in a file ----


def signed(payload):
    """A file with any payload, whose checksum is right."""
    return checkpoint.MAGIC + checkpoint._sha256(payload) + b"\n" + payload


def packed(arrays, record, more=(), rest=b""):
    """A payload; `record`: its bytes, or what JSON makes them of.

    `more`: what it says of further arrays, by name; `rest`: their bytes.
    """
    told = {name: [array.dtype.str, array.shape] for name, array in arrays.items()}
    text = record if isinstance(record, bytes) else json.dumps(record).encode()
    line = json.dumps({**told, **dict(more)}).encode()
    data = b"".join(array.tobytes() for array in arrays.values())
    return b'{"arrays": %b, "record": %b}\n' % (line, text) + data + rest


def value(draw, depth=0):
    """Something of JSON's types that does not belong there."""
    kinds = [None, True, -1, 0, 1, 2**31, 2**63, 10**400, 0.5, 1e308, float("nan"),
             float("-inf"), "", "x", "\x1b[2J\n\r", "ü\ud800", "x" * 100_000, [], {},
             [0] * 1000]
    if depth < 3 and draw.random() < 0.2:
        return {str(i): value(draw, depth + 1) for i in range(draw.randrange(3))}
    return draw.choice(kinds)


def other_record(record, draw):
    """A record with something else in one of its places."""
    how = draw.choice(["state", "settings", "top", "gone", "more", "text"])
    if how in ("state", "settings"):
        record[how][draw.choice(list(record[how]))] = value(draw)
    elif how == "top":
        record = draw.choice([value(draw), {**record, "state": value(draw)},
                              {**record, "settings": value(draw)}])
    elif how == "gone":
        part = draw.choice([record, record["state"], record["settings"]])
        del part[draw.choice(list(part))]
    elif how == "more":
        draw.choice([record, record["state"], record["settings"]])["more"] = value(draw)
    else:
        deep = draw.choice([900, 990, 10_000, 1_000_000])
        record = draw.choice([b"", b"{", b"\xff\xfe", b"9" * 10**5, b"[" * deep,
                              b"[" * deep + b"]" * deep,
                              json.dumps(record).encode("utf-16")])
    return "record: " + how, record


def other_array(arrays, draw):
    """Arrays of which one is not what it should be."""
    name = draw.choice(list(arrays))
    array = arrays[name]
    how = draw.choice(["gone", "shape", "type", "values", "turned", "more"])
    if how == "gone":
        del arrays[name]
    elif how == "shape":
        arrays[name] = draw.choice([array[:-1], array[None], array[0], array[:0]])
    elif how == "type":
        kinds = ["f2", "f8", ">f4", "i1", "i8", ">i8", "c8", "U5", "b1"]
        arrays[name] = array.astype(draw.choice(kinds))
    elif how == "values":
        fill = [-1, 0, 2**31, 2**62]
        if array.dtype.kind == "f":
            fill += [numpy.nan, numpy.inf]
        arrays[name] = numpy.full_like(array, draw.choice(fill))
    elif how == "turned":
        arrays[name] = numpy.array(array.T)
    else:
        arrays[f"state.{draw.randrange(99)}.{draw.randrange(9)}"] = array
    return "array: " + how, arrays


def made_up(arrays, record, draw):
    """Arrays of more bytes than are there, of none, of objects, or of Python."""
    how = draw.choice(["shape", "type", "words", "many"])
    if how == "many":
        empty = {str(i): ["<f4", [0]] for i in range(20_000)}
        return "told: many", packed(arrays, record, empty)
    told = {
        "shape": lambda: ["<f4", draw.choice([
            [10**12], [2**62, 4], [-1], [1] * 40, [0, 10**30], [10**600], [1.5], 6, [],
            "x", [[2], 3], {"x": 1}, [True], [6] * 10**5])],
        "type": lambda: [draw.choice([
            "|O", "<f3", "|V1000000000", "<U6", "f4,f4", "float32", [["a", "<f4"]], 4,
            "__import__('os').system('mkdir EXECUTED')"]), [6]],
        "words": lambda: value(draw),
    }[how]()
    name = draw.choice(["x", "../../x", "record", "param.0", "state.0.0", "ü" * 99])
    rest = draw.choice([b"", bytes(24), pickle.dumps(Executed())])
    return f"told: {how}", packed(arrays, record, {name: told}, rest)


def foreign(draw):
    """Files of other kinds."""
    import mxnet as mx  # here: tests use this module without it

    own = signed(draw.randbytes(500))
    files = [b"", b"\n", draw.randbytes(1000), pickle.dumps(Executed()), own, own[:86],
             gzip.compress(own), b"\x89PNG\r\n\x1a\n" + bytes(99),
             b"PK\5\6" + bytes(18), signed(b""), signed(pickle.dumps(Executed())),
             signed(b"PK\5\6" + bytes(18)),
             checkpoint.MAGIC * 50, signed(own)]
    with tempfile.NamedTemporaryFile() as file:
        mx.nd.save(file.name, [mx.nd.ones(9)])
        files += [Path(file.name).read_bytes(), signed(Path(file.name).read_bytes())]
    return "foreign", draw.choice(files)


def beside(path, draw):
    """Something where a file should be that the command itself would make."""
    name = draw.choice([".p.lock", f".p-00000001.ckpt.{'0' * 32}.part"])
    other = path.with_name(name)
    draw.choice([other.mkdir, lambda: os.mkfifo(other), lambda: other.symlink_to(
        "/dev/zero"), lambda: other.write_bytes(bytes(99))])()
    return "no file: lock or part"


def spoilt(path, draw):
    """Make the good checkpoint at `path` a worse one; its kind."""
    kind = draw.choice(
        ["damaged", "signed", "record", "array", "told", "foreign", "no"])
    if kind == "no":
        return draw.choice([beside] + 6 * [fuzz.no_file])(path, draw)
    good = path.read_bytes()
    arrays, record = checkpoint.read(path)
    if kind == "damaged":
        how, data = fuzz.damaged(good, draw)
        how = f"damaged: {how}"
    elif kind == "signed":
        how, data = fuzz.damaged(good[len(checkpoint.MAGIC) + 65 :], draw)
        how, data = f"damaged and signed: {how}", signed(data)
    elif kind == "record":
        how, record = other_record(record, draw)
        data = signed(packed(arrays, record))
    elif kind == "array":
        how, arrays = other_array(arrays, draw)
        data = signed(packed(arrays, record))
    elif kind == "told":
        how, data = made_up(arrays, record, draw)
        data = signed(data)
    else:
        how, data = foreign(draw)
    path.write_bytes(data)
    return how


# ---- What becomes of it ----


def spoil(base, folder, draw):
    """Put a spoilt run into `folder`, of the checkpoints in `base`."""
    older, newest = checkpoint.Checkpoints(base / "p").paths()
    if draw.random() < 0.5:
        shutil.copy(older, folder)
    return spoilt(Path(shutil.copy(newest, folder)), draw), read


def read(folder):
    """In the fork: go on with the run."""
    from trainkit import command

    return command.main([*FLAGS, "--num-epochs", "2", "--resume"])


def outcome(code, lines, folder):
    if code == 0:
        return "passed over" if "warning: " in lines else "read"
    *before, last = lines.splitlines() or [""]
    told = ("warning: ", "notice: ", "going on from", "epoch ")
    if code == 2 and last.startswith("d2l-ext-train: error: ") and all(
            line.startswith(told) for line in before):
        return "refused in one line"
    return f"ENDED with code {code}"


def main():
    from d2l_ext.data import sets as data
    from trainkit import command, preparation  # noqa: F401  (the forks find MXNet loaded)

    loaded = data._digits()
    data._digits = lambda: loaded
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder, "base")
        base.mkdir()
        ended, said = fuzz.trial(lambda _: command.main(
            [*FLAGS, "--num-epochs", "1", "--save-every", "3"]), outcome, base)
        assert ended == "read", said
        return fuzz.main(__doc__, lambda _, *words: spoil(base, *words), outcome)


if __name__ == "__main__":
    sys.exit(main())
