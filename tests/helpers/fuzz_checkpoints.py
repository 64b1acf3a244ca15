"""Checkpoints that somebody damaged or made up, and what a training makes of them.

    python tests/helpers/fuzz_checkpoints.py 1000           other ones with --seed
    python tests/helpers/fuzz_checkpoints.py 1 --first 123  that one again

Each is the newest checkpoint of a run that goes on with `--resume`; half of the runs
have an older one, which is whole. Right is: code 0, or one line and code 2 or 1, within
10 seconds, in 2 GB of memory beyond those that MXNet takes by itself, with no process,
library or pickle begun. Prints a line of JSON for each that is not, and the counts;
exit code 1 when there was one.
"""

import d2l_ext  # noqa: F401, I001
import argparse
import contextlib
import gzip
import io
import json
import os
import pickle
import random
import resource
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy

from d2l_ext.clusters import checkpoint

MEMORY = 2 << 30
SECONDS = 10
FLAGS = ["--network", "mlp", "--num-examples", "64", "--batch-size", "16",
         "--optimizer", "adam", "--save-prefix"]  # fmt: skip
FORBIDDEN = ("os.system", "os.exec", "os.fork", "os.posix_spawn", "subprocess.Popen",
             "pickle.find_class", "ctypes.dlopen", "socket.connect")  # fmt: skip


class Run:
    """It would write a file if somebody unpickled it."""

    def __reduce__(self):
        return os.system, ("touch executed",)


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


def damaged(data, draw):
    """Some bytes, changed as disks and networks and people change them."""
    data, at = bytearray(data), draw.randrange(len(data))
    how = draw.choice(["flip", "cut", "zeros", "insert", "twice", "numbers", "start"])
    if how == "flip":
        for _ in range(draw.choice([1, 1, 10, 100])):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif how == "cut":
        del data[at:]
    elif how == "zeros":
        data[at : at + 4096] = bytes(len(data[at : at + 4096]))
    elif how == "insert":
        data[at:at] = draw.randbytes(draw.choice([1, 100]))
    elif how == "twice":
        data += data[at:]
    else:  # sizes, in the line at the beginning, and numbers
        at = draw.randrange(300) if how == "start" else draw.randrange(len(data))
        width = draw.choice([2, 4, 8])
        data[at : at + width] = draw.choice([b"\xff", b"\x7f", b"\0"]) * width
    return how, bytes(data)


def value(draw, depth=0):
    """Something of JSON's types that does not belong there."""
    kinds = [None, True, -1, 0, 1, 2**31, 2**63, 10**400, 0.5, 1e308, float("nan"),
             float("-inf"), "", "x", "\x1b[2J\n\r", "ü\ud800", "x" * 100_000, [], {},
             [0] * 1000]  # fmt: skip
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
                              {**record, "settings": value(draw)}])  # fmt: skip
    elif how == "gone":
        part = draw.choice([record, record["state"], record["settings"]])
        del part[draw.choice(list(part))]
    elif how == "more":
        draw.choice([record, record["state"], record["settings"]])["more"] = value(draw)
    else:
        deep = draw.choice([900, 990, 10_000, 1_000_000])
        record = draw.choice([b"", b"{", b"\xff\xfe", b"9" * 10**5, b"[" * deep,
                              b"[" * deep + b"]" * deep,
                              json.dumps(record).encode("utf-16")])  # fmt: skip
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
            "__import__('os').system('touch executed')"]), [6]],
        "words": lambda: value(draw),
    }[how]()  # fmt: skip
    name = draw.choice(["x", "../../x", "record", "param.0", "state.0.0", "ü" * 99])
    rest = draw.choice([b"", bytes(24), pickle.dumps(Run())])
    return f"told: {how}", packed(arrays, record, {name: told}, rest)


def foreign(draw):
    """Files of other kinds."""
    import mxnet as mx  # here: tests use this module without it

    own = signed(draw.randbytes(500))
    files = [b"", b"\n", draw.randbytes(1000), pickle.dumps(Run()), own, own[:86],
             gzip.compress(own), b"\x89PNG\r\n\x1a\n" + bytes(99),
             b"PK\5\6" + bytes(18), signed(b""), signed(pickle.dumps(Run())),
             signed(b"PK\5\6" + bytes(18)),
             checkpoint.MAGIC * 50, signed(own)]  # fmt: skip
    with tempfile.NamedTemporaryFile() as file:
        mx.nd.save(file.name, [mx.nd.ones(9)])
        files += [Path(file.name).read_bytes(), signed(Path(file.name).read_bytes())]
    return "foreign", draw.choice(files)


def no_file(path, good, draw):
    """Put something at `path` that is no file, or an endless one."""
    how = draw.choice(["folder", "full folder", "dangling", "loop", "pipe", "socket",
                       "zeros", "sparse", "longer", "linked", "long link",
                       "lock", "part"])  # fmt: skip
    if how in ("folder", "full folder"):
        path.mkdir()
        if how == "full folder":
            (path / path.name).write_bytes(good)
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "socket":
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(path))
    elif how in ("sparse", "longer"):
        path.write_bytes(good if how == "longer" else b"")
        os.truncate(path, draw.choice([1 << 32, 1 << 40]))
    elif how in ("lock", "part"):
        path.write_bytes(good)
        other = path.with_name(".p.lock" if how == "lock" else
                               f".p-00000001.ckpt.{'0' * 32}.part")  # fmt: skip
        draw.choice([other.mkdir, lambda: os.mkfifo(other), lambda: other.symlink_to(
            "/dev/zero"), lambda: other.write_bytes(bytes(99))])()  # fmt: skip
    else:
        path.with_name("own").write_bytes(good)
        to = {"dangling": "nowhere", "loop": path.name, "linked": "own",
              "zeros": "/dev/zero", "long link": "x" * 300}  # fmt: skip
        path.symlink_to(to[how])
    return f"no file: {how}"


def spoil(path, good, draw):
    """Put a checkpoint at `path` that is not as good as `good`; its kind."""
    kinds = ["damaged", "signed", "record", "array", "told", "foreign", "no"]
    kind = draw.choice(kinds)
    if kind == "no":
        return no_file(path, good, draw)
    path.write_bytes(good)
    arrays, record = checkpoint.read(path)
    if kind == "damaged":
        how, data = damaged(good, draw)
        how = f"damaged: {how}"
    elif kind == "signed":
        how, data = damaged(good[len(checkpoint.MAGIC) + 65 :], draw)
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


def trained(argv):
    """Run the trainer here: code, and what it says; a code None for a traceback."""
    from d2l_ext import train

    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            code = train.main([*map(str, argv)])
        except BaseException:  # noqa: BLE001  a traceback is what is looked for
            return None, traceback.format_exc()
    return code, said.getvalue()


def outcome(code, said):
    """In a word or two."""
    if code == 0:
        return "passed over" if "warning: " in said else "read"
    if code is None:
        return "wrong: traceback"
    *before, last = said.splitlines()
    if not last.startswith("d2l-ext-train: error: "):
        return f"wrong: code {code}"
    told = ("warning: ", "notice: ", "going on from", "epoch ")
    if not all(line.startswith(told) for line in before):
        return "wrong: several lines"
    return f"refused, code {code}"


def child(seed, first, last):
    """Try the files of these numbers, a line of JSON for each."""
    from d2l_ext.data import sets as data

    loaded = data._digits()
    data._digits = lambda: loaded
    forbidden = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        base = Path("base")
        code, said = trained([*FLAGS, base / "p", "--num-epochs", 1, "--save-every", 3])
        assert code == 0, said
        older, newest = checkpoint.Checkpoints(base / "p").paths()
        good = newest.read_bytes()
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        sys.addaudithook(lambda event, _: forbidden.append(event))
        for number in range(first, last):
            draw = random.Random(f"{seed}/{number}")
            shutil.rmtree("run", ignore_errors=True)
            Path("run").mkdir()
            if draw.random() < 0.5:
                shutil.copy(older, "run")
            kind = spoil(Path("run", newest.name), good, draw)
            forbidden.clear()
            clock = time.monotonic()
            print(json.dumps({"number": number, "kind": kind}), flush=True)
            code, said = trained([*FLAGS, "run/p", "--num-epochs", 2, "--resume"])
            found = outcome(code, said)
            begun = sorted({*forbidden} & {*FORBIDDEN})
            if begun or Path("executed").exists():
                found = f"wrong: executed {begun}"
            seconds = round(time.monotonic() - clock, 2)
            print(json.dumps({"outcome": found, "seconds": seconds,
                              "said": said[-1500:]}), flush=True)  # fmt: skip


def tried(seed, first, last):
    """Yield what became of each number; a child that hangs or dies is begun anew."""
    while first < last:
        command = [sys.executable, __file__, "--child", f"{seed},{first},{last}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            seen, wait = {}, 300  # seconds until MXNet is there
            while line := _line(process.stdout, wait):
                seen.update(json.loads(line))
                wait = SECONDS
                if "outcome" in seen:
                    yield seen
                    seen, first, wait = {}, first + 1, 60
            process.kill()
        if not seen and first < last:
            raise RuntimeError(f"no child begins: code {process.returncode}")
        if seen:
            how = "hang" if process.returncode == -9 else f"ended {process.returncode}"
            yield {**seen, "outcome": f"wrong: {how}"}
            first += 1


def _line(stream, seconds):
    """The next line, or nothing when none comes in time."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        return stream.readline() if selector.select(seconds) else b""


def fuzz(seed, first, count):
    """Counts by outcome and by kind, and the wrong ones."""
    found = list(tried(seed, first, first + count))
    kinds = Counter(f"{one['kind']} -> {one['outcome']}" for one in found)
    return {
        "files": len(found), "seed": seed, "first": first,
        "slowest": max(one.get("seconds", SECONDS) for one in found),
        "outcomes": dict(Counter(one["outcome"] for one in found).most_common()),
        "kinds": dict(sorted(kinds.items())),
        "wrong": [one for one in found if "wrong" in one["outcome"]],
    }  # fmt: skip


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("count", type=int, nargs="?", default=1000)
    flags.add_argument("--seed", type=int, default=0)
    flags.add_argument("--first", type=int, default=0)
    flags.add_argument("--child", help=argparse.SUPPRESS)
    args = flags.parse_args()
    if args.child:
        return child(*map(int, args.child.split(",")))
    result = fuzz(args.seed, args.first, args.count)
    for one in result["wrong"]:
        print(json.dumps(one), file=sys.stderr)
    print(json.dumps({**result, "wrong": len(result["wrong"])}, indent=1))
    return int(bool(result["wrong"]))


if __name__ == "__main__":
    sys.exit(main())
