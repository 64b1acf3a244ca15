"""Data files as nobody should write them: the trainer reads them, or says one line.

    python tests/helpers/fuzz_data.py --count 1000 --seed 0
    python tests/helpers/fuzz_data.py --count 1 --first 123      that one again

Each trial takes good files of a format, spoils one of them (damaged, foreign,
nested, huge declared sizes, no file at all), and runs the trainer on them (`fuzz`). It
must end with code 0, or with code 2 and one line on standard error that names the
folder. A text is read by `text.load_text`, which has no flag of the trainer's.

Prints how many trials ended how; exits with 1 when one ended otherwise, and keeps it.
"""

import bz2
import gzip
import io
import lzma
import os
import pickle
import struct
import sys
import tarfile
import zipfile
from functools import partial

import fuzz
import numpy
from cifar_files import header, write_archive, write_files
from fuzz import Executed
from idx_files import bomb, idx_bytes, make_arrays, write_folder

from d2l_ext.data import formats, text
from trainkit import (
    command,
    preparation,  # noqa: F401  (the forks shall find it loaded)
)

FORMATS = ("idx", "idx unpacked", "cifar", "cifar unpacked", "text")
SIZES = (-(2**33), -512, -1, 0, 1, 511, 3073, 2**31 - 1, 2**32 - 1, 5_000_000_000,
         2**40, 2**63 - 1)
MAIN = ["--network", "mlp", "--num-epochs", "1", "--batch-size", "4",
        "--num-examples", "4"]


# ---- Good files ----


def write(kind, folder, rng):
    """Good files of a format; the paths of those that may be spoilt."""
    if kind == "text":
        (folder / "text").write_text("To be, or not to be: that is the question.\n")
    elif kind.startswith("idx"):
        write_folder(folder, make_arrays(8, 4), zipped=kind == "idx")
    elif kind == "cifar":
        write_archive(folder)
    else:
        write_files(folder)
    return sorted(folder.iterdir())


# ---- What is done to them: content and randomness -> content ----


def foreign(data, rng):
    zipped, array = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("../data", data)
    numpy.save(array, numpy.array([Executed()], dtype=object), allow_pickle=True)
    return rng.choice((
        b"", b"\0" * 4096, rng.randbytes(5000), zipped.getvalue(), array.getvalue(),
        pickle.dumps(Executed()), pickle.dumps({b"data": Executed()}, protocol=2),
        b"<!DOCTYPE html><title>Sign in</title>", b"\x7fELF" + rng.randbytes(500),
        b"\x89PNG\r\n\x1a\n" + rng.randbytes(500), lzma.compress(data),
        bz2.compress(data), b"\xff\xfet\0e\0x\0t\0", "\N{SNOWMAN}".encode() * 99,
        header(formats.CIFAR_FILES[0], 3073) + rng.randbytes(9000),
        idx_bytes(numpy.zeros((2, 32, 32))), idx_bytes(numpy.full(8, 11)),
    ))


def nested(data, rng):
    for _ in range(rng.choice((1, 1, 2, 50))):
        data = rng.choice((gzip.compress, in_a_tar))(data)
    return rng.choice((data, gzip.compress(b"") * rng.choice((1, 9999)) + data))


def in_a_tar(data):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        held = {formats.CIFAR_FILES[0]: data, "data_batch_1": pickle.dumps(Executed())}
        for name, content in held.items():
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def huge(data, rng):
    """Sizes that are declared, and as many zeros behind some of them."""
    unpacked = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    if int.from_bytes(unpacked[:4], "big") in (0x801, 0x803):
        sizes = [rng.choice((8, 28, 500_000, *SIZES)) % 2**32 for _ in range(3)]
        sizes[1:] = rng.choice((sizes[1:], (28, 28), (28, 28)))
        head = unpacked[:4] + struct.pack(">3I", *sizes)
    else:
        head = header(rng.choice((*formats.CIFAR_FILES, "x")), rng.choice(SIZES),
                      rng.choice((b"0", b"x", b"g", b"L", b"S")))
        head = rng.choice((b"", header("first", 0))) + head
    many = rng.choice((0, 1, 300, 5000))
    packed = unpacked is not data and rng.random() < 0.9
    return bomb(head, many) if packed else head + bytes(many)


def damaged(data, rng):
    return fuzz.damaged(data, rng)[1]


def inside(mutate):
    """Spoils what a gzip stream holds, and packs it again."""

    def mutate_inside(data, rng):
        unpacked = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        spoilt = mutate(unpacked, rng)
        return gzip.compress(spoilt, 1) if unpacked is not data else spoilt

    mutate_inside.__name__ = f"{mutate.__name__} inside"
    return mutate_inside


MUTATIONS = (damaged, inside(damaged), damaged, inside(damaged), foreign,
             inside(foreign), nested, huge, fuzz.no_file)


# ---- One trial ----


def spoil(number, folder, rng):
    kind = FORMATS[number % len(FORMATS)]
    mutate = MUTATIONS[number // len(FORMATS) % len(MUTATIONS)]
    path = rng.choice(write(kind, folder, rng))
    if mutate is fuzz.no_file:
        how = fuzz.no_file(path, rng)
    else:
        how = mutate.__name__
        path.write_bytes(mutate(path.read_bytes(), rng))
    return f"{kind}: {how}", partial(read, kind)


def read(kind, folder):
    """In the fork: read as the trainer does; the exit code."""
    if kind == "text":
        try:
            text.load_text(folder / "text")
        except (ValueError, OSError) as error:
            print(error, file=sys.stderr)
            return 2
        return 0
    name = "cifar10" if kind.startswith("cifar") else "mnist"
    return command.main([*MAIN, "--dataset", name, "--data-dir", str(folder)])


def outcome(code, lines, folder):
    if code == 0:
        return "read"
    if code == 2 and lines.count("\n") == 1 and str(folder) in lines:
        return "refused in one line"
    return f"ENDED with code {code}"


if __name__ == "__main__":
    os.environ.pop("D2L_EXT_DATA_DIR", None)
    sys.exit(fuzz.main(__doc__, spoil, outcome))
