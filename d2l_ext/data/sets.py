"""Data sets: images and labels from scikit-learn, a folder, or a download.

They come as arrays, or as minibatches, which may be divided among workers.
"""

import os
from collections import namedtuple
from dataclasses import dataclass
from importlib.util import find_spec
from math import ceil
from numbers import Integral
from pathlib import Path

import mxnet as mx
import numpy
from mxnet import np

from ..checks import known_name, whole_number
from . import download, formats

#: Names the data set when the caller does not; without it, `digits`.
DATASET = "D2L_EXT_DATASET"
#: Names the folder with a data set's files when the caller does not.
DATA_DIR = "D2L_EXT_DATA_DIR"
NUM_TRAIN_DIGITS = 1536  # six batches of 256


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set in memory, as NumPy arrays.

    `train_X` and `test_X`: float32 images from 0 to 1, of shape (n, 1, 28, 28), those
    of CIFAR-10 (n, 3, 32, 32). `train_y` and `test_y`: int32 labels (n,).
    `classes`: the name of each label.
    """

    name: str
    train_X: numpy.ndarray
    train_y: numpy.ndarray
    test_X: numpy.ndarray
    test_y: numpy.ndarray
    classes: tuple

    def __repr__(self):
        return (
            f"<{self.name}: {len(self.train_y):,} training and {len(self.test_y):,} "
            f"test images, {len(self.classes)} classes>"
        )


def load_arrays(name=None, root=None):
    """Load a data set as a `Dataset` of NumPy arrays.

    `name`: `'digits'`, `'fashion_mnist'`, `'mnist'` or `'cifar10'`; default the
    environment variable `D2L_EXT_DATASET`, else `'digits'`. `root`: a folder with
    the files; default the variable `D2L_EXT_DATA_DIR`.

    *digits* are the 1,797 handwritten digits inside scikit-learn, scaled from
    8×8 to 28×28 bilinearly. They need no file and no network. After a fixed
    permutation 1,536 (six batches of 256) are for training and 261 are held out, which
    measure the accuracy on new images by the same writers.

    The others are files; `SETS` lists them. In a folder that is named, by `root` or the
    variable, any number of images is accepted and no SHA-256 is compared; everything
    else is verified. Without one, `data/<name>/` of the repository is used
    (`~/.cache/d2l_ext/<name>/` when the library is installed elsewhere); what is
    missing there is downloaded, and only the official files are accepted. Of CIFAR-10
    that is the archive: its files, unpacked beside it, are read instead, unverified.

    Raises `ValueError` for an unknown name, for `root` with *digits*, and for a
    corrupt file; `FileNotFoundError` for a missing one in a named folder;
    `ConnectionError` when a download fails. Sources: `data/README.md`.
    """
    where = "" if name else f" in {DATASET}"
    name = name or os.environ.get(DATASET) or "digits"
    known_name("data set", name, NAMES, where)
    if name == "digits":
        if root is not None:
            raise ValueError(
                f"the digits come with scikit-learn, not from a folder, but root="
                f"{str(root)!r}: leave it out, or give name='fashion_mnist'"
            )
        return _digits()
    folder = root or os.environ.get(DATA_DIR) or _official_folder(name)
    try:
        X, y, test_X, test_y = SETS[name].read(folder)
        X, test_X = (numpy.divide(part, 255, dtype="float32") for part in (X, test_X))
    except MemoryError as error:
        raise ValueError(
            f"{folder}: the images do not fit into the memory that this process may "
            f"use ({error or 'no more is available'}). Give files with fewer of them "
            f"(root=… or {DATA_DIR})."
        ) from None
    y, test_y = y.astype("int32"), test_y.astype("int32")
    return Dataset(name, X, y, test_X, test_y, SETS[name].classes)


def load_data(batch_size, name=None, root=None, seed=0):
    """Return `(train_iter, test_iter)`, two `Batches`; only the first is shuffled.

    `batch_size`: examples per minibatch. `name`, `root`: as in `load_arrays`.
    `seed`: of the shuffling, default 0. Raises as `load_arrays` and `Batches` do.

    Replaces `d2l.load_data_fashion_mnist` of *Dive into Deep Learning*.
    """
    data = load_arrays(name, root)
    return (
        Batches(data.train_X, data.train_y, batch_size, shuffle=True, seed=seed),
        Batches(data.test_X, data.test_y, batch_size),
    )


class Batches:
    """Minibatches of `X` and `y`: arrays of `mxnet.np` on `mx.cpu(0)`.

    `X` (n, …), delivered as float32; `y` (n,), delivered as int32; NumPy arrays.
    `batch_size`: examples per minibatch; the last one holds the rest.
    `shuffle`, `seed`: every `iter()` is a new epoch, in an order that depends
    only on `seed` and the epoch's number; `epoch` is the number of the next
    one and may be set. `num_parts`, `part_index`: the number of workers, and this
    one's index; default one worker. The parts of an epoch have no example in common,
    are complete, and differ in size by at most one. Worker i takes each `num_parts`-th
    example of the epoch's order, so that the minibatches of all workers in one step
    together are a single worker's in that step at `num_parts` times the `batch_size`.

    `len()` is the number of this part's minibatches, `own` the number of its examples,
    and `num_steps` the number of minibatches of the largest part: every worker's steps.
    Raises `ValueError` for unequal lengths of `X` and `y`, a `batch_size` or
    `num_parts` below 1 or fractional, a `seed` below 0 or fractional, a `part_index`
    out of range, and a part without examples; when it is shuffled, for a `seed` of 2³²
    or more.
    """

    def __init__(self, X, y, batch_size, shuffle=False, seed=0, num_parts=1,
                 part_index=0):
        if len(X) != len(y):
            raise ValueError(
                f"X has {len(X)} examples and y has {len(y)}: "
                "every example needs one label"
            )
        whole_number("batch_size", batch_size)
        whole_number("num_parts", num_parts)
        whole_number("seed", seed, least=0)
        if not isinstance(part_index, Integral) or not 0 <= part_index < num_parts:
            raise ValueError(
                f"part_index={part_index!r}: {num_parts} parts are numbered from 0 "
                f"to {num_parts - 1}"
            )
        if part_index >= len(X):
            raise ValueError(
                f"part {part_index} of {num_parts} would be empty: there are only "
                f"{len(X)} examples. Use at most as many parts as examples."
            )
        self.X, self.y = numpy.asarray(X), numpy.asarray(y)
        self.batch_size, self.shuffle, self.seed = batch_size, shuffle, seed
        self.num_parts, self.part_index = num_parts, part_index
        self.epoch = 0
        self.own = len(range(part_index, len(X), num_parts))
        self.num_steps = ceil(len(X) / (num_parts * batch_size))

    def __len__(self):
        return ceil(self.own / self.batch_size)

    def __iter__(self):
        order = self._order(self.epoch)
        self.epoch += 1
        return self._minibatches(order)

    def _order(self, epoch):
        order = numpy.arange(len(self.X))
        if self.shuffle:
            # This generator's stream is frozen: stored outputs stay true.
            order = numpy.random.RandomState([self.seed, epoch]).permutation(order)
        return order[self.part_index :: self.num_parts]

    def _minibatches(self, order):
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            X = np.array(self.X[rows], dtype="float32", ctx=mx.cpu(0))
            yield X, np.array(self.y[rows], dtype="int32", ctx=mx.cpu(0))


def minibatches(batches):
    """Yield an epoch's `(X, y, n)` of this worker, the same number on all workers.

    `batches`: a `Batches` of this worker's part. `n`: the examples in the minibatches
    of *all* workers in this step, by which the sum of their gradients is divided.
    Parts may differ by one example, so a worker can run out of minibatches one
    step before another. It then gets `X` and `y` without examples, NumPy arrays, and
    pushes zeros: a synchronous store waits for every worker.

    Developed in the chapter *In step*.
    """
    num_examples, k = len(batches.X), batches.num_parts
    mine = iter(batches)
    for start in range(0, num_examples, k * batches.batch_size):
        X, y = next(mine, (batches.X[:0], batches.y[:0]))
        yield X, y, min(k * batches.batch_size, num_examples - start)


# ---- Sources ----


def _digits():
    from scipy.ndimage import zoom

    # Only its file is read: scikit-learn takes as long to import as MXNet.
    folder = find_spec("sklearn").submodule_search_locations[0]
    rows = numpy.loadtxt(Path(folder, "datasets/data/digits.csv.gz"), delimiter=",")
    images, labels = rows[:, :-1], rows[:, -1]
    X = zoom(images.reshape(-1, 8, 8) / 16, (1, 28 / 8, 28 / 8), order=1)
    X = X.clip(0, 1).astype("float32")[:, None]
    order = numpy.random.RandomState(0).permutation(len(X))
    train, test = order[:NUM_TRAIN_DIGITS], order[NUM_TRAIN_DIGITS:]
    y = labels.astype("int32")
    return Dataset("digits", X[train], y[train], X[test], y[test], tuple("0123456789"))


def _official_folder(name):
    """Return the default folder, once its missing files have been downloaded."""
    row, folder = SETS[name], _default_folder(name)
    official = map(download.OfficialFile, row.names, row.sizes, row.sha256)
    try:
        download.fetch(list(official), row.mirrors, folder)
    except ConnectionError as error:
        raise ConnectionError(
            f"{error}, or use the digits, which need no file: name='digits', and "
            f"unset {DATASET}."
        ) from None
    return folder


def _default_folder(name):
    root = Path(__file__).resolve().parents[2]
    if (root / "pyproject.toml").is_file():  # a checkout, or installed with -e
        return root / "data" / name
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "d2l_ext" / name


#: A data set in files: `names`, `sizes` and `sha256` list them; `read` reads a folder.
FileSet = namedtuple("FileSet", "read classes mirrors names sizes sha256")
SETS = {
    # MXNet's own mirror (the files that d2l reads) is not among these: it has
    # the release of 26 August 2017, which holds duplicates and has a different order.
    # Images of one release match labels of the other only by chance.
    "fashion_mnist": FileSet(
        read=formats.read_idx,
        classes=("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal",
                 "Shirt", "Sneaker", "Bag", "Ankle boot"),
        mirrors=(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
            "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
        ),
        names=formats.IDX_FILES,
        sizes=(26_421_880, 29_515, 4_422_102, 5_148),
        sha256=(
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        ),
    ),
    "mnist": FileSet(
        read=formats.read_idx,
        classes=tuple("0123456789"),
        mirrors=(
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/gluon/dataset/mnist/",
        ),
        names=formats.IDX_FILES,
        sizes=(9_912_422, 28_881, 1_648_877, 4_542),
        sha256=(
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
    # The authors' binary version, which holds no pickles.
    "cifar10": FileSet(
        read=formats.read_cifar,
        classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog",
                 "horse", "ship", "truck"),
        mirrors=("https://www.cs.toronto.edu/~kriz/",),
        names=(formats.CIFAR_ARCHIVE,),
        sizes=(170_052_171,),
        sha256=("c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",),
    ),
}
NAMES = ("digits", *SETS)
