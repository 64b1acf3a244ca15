"""Data sets have the promised form, and minibatches divide them completely."""

import d2l_ext  # noqa: F401, I001
import hashlib
import re
from pathlib import Path

import mxnet as mx
import numpy
import pytest
from cifar_files import write_archive, write_files
from hypothesis import given, settings
from hypothesis import strategies as st
from idx_files import make_arrays, write_folder

from d2l_ext.data import sets as data
from d2l_ext.data import download, formats
from d2l_ext.data.sets import Batches

@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for variable in (data.DATASET, data.DATA_DIR, "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def urlopen(url, **_):
        raise AssertionError(f"the test asked for {url}")

    monkeypatch.setattr(download, "urlopen", urlopen)


@pytest.fixture(scope="module")
def digits():
    return data.load_arrays("digits")


def numbered(n):
    """Examples that can be told apart: X and y hold the example's number."""
    return numpy.arange(n, dtype="float32").reshape(n, 1), numpy.arange(n)


def epoch_of(batches):
    """The example numbers of one epoch, a list per minibatch."""
    return [y.asnumpy().tolist() for _, y in batches]


def flat(lists):
    return [number for numbers in lists for number in numbers]


# ---- The digits ----


def test_the_digits_are_the_default(digits, monkeypatch):
    assert data.load_arrays().name == "digits"
    monkeypatch.setenv(data.DATASET, "")
    assert data.load_arrays().name == "digits"
    assert repr(digits) == "<digits: 1,536 training and 261 test images, 10 classes>"


def test_the_digits_are_those_of_scikit_learn_each_once_scaled_bilinearly(digits):
    """Against the formula, written out; after a fixed permutation."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = numpy.random.RandomState(0).permutation(1797)
    at = numpy.arange(28) * 7 / 27
    left = numpy.minimum(at.astype(int), 6)
    W = numpy.zeros((28, 8))
    W[numpy.arange(28), left] = 1 - (at - left)
    W[numpy.arange(28), left + 1] = at - left
    scaled = W @ (images[order].reshape(-1, 8, 8) / 16) @ W.T
    X = numpy.concatenate([digits.train_X, digits.test_X])
    assert (X.dtype, X.shape) == ("float32", (1797, 1, 28, 28))
    assert numpy.abs(X[:, 0] - scaled).max() < 1e-6
    assert X.min() == 0 and X.max() == 1
    y = numpy.concatenate([digits.train_y, digits.test_y])
    assert y.dtype == "int32" and numpy.array_equal(y, labels[order])
    assert digits.classes == tuple("0123456789")


def test_the_digits_read_no_folder(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="not from a folder.*leave it out"):
        data.load_arrays("digits", root=tmp_path)
    monkeypatch.setenv(data.DATA_DIR, str(tmp_path / "meant for another data set"))
    assert len(data.load_arrays("digits").train_y) == 1536


# ---- Which data set ----


def test_the_variable_names_the_data_set_and_the_argument_goes_before_it(
    monkeypatch, tmp_path
):
    monkeypatch.setenv(data.DATASET, "mnist")
    assert data.load_arrays(root=write_folder(tmp_path)).name == "mnist"
    assert data.load_arrays("digits").name == "digits"


@pytest.mark.parametrize("name", ["fashion-mnist", "FashionMNIST", "fashon_mnist"])
def test_an_unknown_name_is_refused_with_the_known_ones_and_a_suggestion(name):
    with pytest.raises(ValueError) as caught:
        data.load_arrays(name)
    assert repr(name) in str(caught.value)
    assert "digits, fashion_mnist, mnist" in str(caught.value)
    assert "Did you mean 'fashion_mnist'?" in str(caught.value)


def test_an_unknown_name_in_the_variable_is_refused_with_the_variable(monkeypatch):
    monkeypatch.setenv(data.DATASET, "imagenet")
    with pytest.raises(ValueError, match=f"'imagenet' in {data.DATASET}: choose"):
        data.load_arrays()


# ---- Folders ----


@pytest.mark.parametrize("name", ["fashion_mnist", "mnist"])
def test_a_folder_is_read_as_it_is(name, tmp_path):
    arrays = make_arrays(train=20, test=7)
    read = data.load_arrays(name, write_folder(tmp_path, arrays))
    assert (read.name, len(read.classes)) == (name, 10)
    for X, y, images, labels in (
        (read.train_X, read.train_y, *arrays[:2]),
        (read.test_X, read.test_y, *arrays[2:]),
    ):
        assert (X.dtype, y.dtype) == ("float32", "int32")
        assert X.shape == (len(images), 1, 28, 28)
        assert numpy.array_equal(X[:, 0], images.astype("float32") / 255)
        assert numpy.array_equal(y, labels)


def test_cifar10_has_the_promised_form(tmp_path):
    loaded = data.load_arrays("cifar10", write_files(tmp_path))
    raw = formats.read_cifar(tmp_path)
    assert (loaded.train_X.dtype, loaded.train_X.shape) == ("float32", (10, 3, 32, 32))
    assert numpy.allclose(loaded.test_X * 255, raw[2])
    assert (loaded.test_y.dtype, len(loaded.classes)) == ("int32", 10)


def test_the_argument_goes_before_the_variable_and_that_before_the_default(
    tmp_path, monkeypatch
):
    for n, name in enumerate(("argument", "variable"), start=1):
        (tmp_path / name).mkdir()
        write_folder(tmp_path / name, make_arrays(train=n))
    monkeypatch.setenv(data.DATA_DIR, str(tmp_path / "variable"))
    assert len(data.load_arrays("mnist").train_y) == 2
    assert len(data.load_arrays("mnist", tmp_path / "argument").train_y) == 1


def test_images_that_do_not_fit_into_memory_are_refused_with_their_folder(
    tmp_path, monkeypatch
):
    def divide(*_, **__):
        return numpy.empty(2**60, "float32")

    write_folder(tmp_path)
    monkeypatch.setattr(numpy, "divide", divide)
    with pytest.raises(ValueError) as caught:
        data.load_arrays("mnist", tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}: the images do not fit into the memory")
    assert "Unable to allocate 4.00 EiB" in message and data.DATA_DIR in message
    assert caught.value.__suppress_context__


def test_the_default_folder_is_the_checkouts_or_the_users_cache_without_one(
    tmp_path, monkeypatch
):
    assert data._default_folder("mnist").parts[-2:] == ("data", "mnist")
    monkeypatch.setattr(data, "__file__", str(tmp_path / "site/d2l_ext/data/sets.py"))
    monkeypatch.setenv("HOME", str(tmp_path))
    expected = tmp_path / ".cache" / "d2l_ext" / "mnist"
    assert data._default_folder("mnist") == expected
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    assert data._default_folder("mnist") == tmp_path / "c" / "d2l_ext" / "mnist"


@pytest.fixture
def default_folder(tmp_path, monkeypatch):
    folder = tmp_path / "default"
    monkeypatch.setattr(data, "_default_folder", lambda name: folder)
    return folder


def test_only_the_official_files_are_accepted_in_the_default_folder(default_folder):
    default_folder.mkdir()
    write_folder(default_folder)
    with pytest.raises(ValueError, match="train-images.*is not the official file"):
        data.load_arrays("fashion_mnist")


@pytest.mark.parametrize(("name", "write", "sizes"), [
    ("fashion_mnist", write_folder, [26_421_880, 29_515, 4_422_102, 5_148]),
    ("cifar10", write_archive, [170_052_171]),
])
def test_the_default_folder_is_filled_by_a_download(
    default_folder, monkeypatch, name, write, sizes
):
    def fetch(files, mirrors, folder):
        assert [f.size for f in files] == sizes
        assert [f.name for f in files] == list(data.SETS[name].names)
        assert mirrors == data.SETS[name].mirrors
        folder.mkdir()
        write(folder)

    monkeypatch.setattr(download, "fetch", fetch)
    assert len(data.load_arrays(name).train_y) in (10, 20)


def test_a_failed_download_says_how_to_go_on(default_folder, monkeypatch):
    def urlopen(url, **_):
        raise OSError("Network is unreachable")

    monkeypatch.setattr(download, "urlopen", urlopen)
    with pytest.raises(ConnectionError) as caught:
        data.load_arrays("fashion_mnist")
    message = str(caught.value)
    assert len(message.splitlines()) == 5
    for mirror in data.SETS["fashion_mnist"].mirrors:
        assert f"{mirror}: Network is unreachable" in message
    assert str(default_folder) in message
    assert "name='digits'" in message
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("name", data.SETS)
def test_every_row_of_the_table_is_complete_and_the_data_card_says_it(name):
    card = (data._default_folder(name).parent / "README.md").read_text("utf-8")
    section = card.split(f"\n## {name}\n")[1].split("\n## ")[0]
    row = data.SETS[name]
    assert len(row.classes) == 10
    assert len(row.mirrors) == (1 if name == "cifar10" else 3)
    assert all(re.fullmatch("https?://.*/", mirror) for mirror in row.mirrors)
    assert len(row.names) == len(row.sizes) == len(set(row.sha256))
    for file, size, sha256 in zip(row.names, row.sizes, row.sha256):
        assert re.fullmatch("[0-9a-f]{64}", sha256)
        line = rf"\| `{file}` \| {size:,} \| `\w{{32}}` \| `{sha256}` \|"
        assert re.search(line, section)


def test_the_data_card_says_what_scikit_learn_holds(digits):
    import sklearn

    path = Path(sklearn.__file__).parent / "datasets/data/digits.csv.gz"
    card = (data._default_folder("digits").parent / "README.md").read_text("utf-8")
    assert f"{path.stat().st_size:,} bytes" in card
    assert hashlib.sha256(path.read_bytes()).hexdigest() in card
    counts = numpy.bincount(numpy.concatenate([digits.train_y, digits.test_y]))
    assert f"classes of {counts.min()} to {counts.max()} images" in card


# ---- Minibatches ----


def test_a_minibatch_is_a_pair_of_mxnet_arrays():
    X, y = numpy.ones((3, 1, 28, 28)), numpy.arange(3)  # float64 and int64
    X, y = next(iter(Batches(X, y, 2)))
    assert type(X) is type(y) is mx.np.ndarray
    assert (X.shape, y.shape) == ((2, 1, 28, 28), (2,))
    assert (X.dtype, y.dtype) == ("float32", "int32")
    assert X.ctx == y.ctx == mx.cpu(0)


def test_without_shuffling_the_order_is_that_of_the_data():
    batches = Batches(*numbered(7), batch_size=3)
    assert len(batches) == 3
    assert epoch_of(batches) == epoch_of(batches) == [[0, 1, 2], [3, 4, 5], [6]]


def test_an_example_keeps_its_label():
    for X, y in Batches(*numbered(50), batch_size=8, shuffle=True, num_parts=3):
        assert X.asnumpy()[:, 0].tolist() == y.asnumpy().tolist()


def test_each_epoch_and_each_seed_has_its_order_alike_on_every_machine():
    batches = Batches(*numbered(8), batch_size=8, shuffle=True)
    assert [epoch_of(batches) for _ in range(2)] == [
        [[3, 7, 4, 0, 2, 6, 5, 1]],
        [[0, 5, 6, 1, 3, 2, 4, 7]],
    ]
    other = Batches(*numbered(8), batch_size=8, shuffle=True, seed=1)
    assert epoch_of(other) == [[6, 3, 7, 1, 4, 0, 2, 5]]


def test_every_iter_is_an_epoch_even_if_it_is_not_used():
    batches = Batches(*numbered(50), batch_size=8, shuffle=True)
    iter(batches)
    second = epoch_of(batches)
    assert batches.epoch == 2
    batches.epoch = 1
    assert epoch_of(batches) == second


def test_two_loops_at_once_do_not_disturb_each_other():
    batches = Batches(*numbered(3), batch_size=1)
    pairs = [(a.item(), b.item()) for (_, a), (_, b) in zip(batches, batches)]
    assert pairs == [(0, 0), (1, 1), (2, 2)]


@given(
    n=st.integers(1, 60),
    batch_size=st.integers(1, 70),
    parts=st.integers(1, 60),
    shuffle=st.booleans(),
)
@settings(max_examples=40)
def test_the_parts_are_disjoint_complete_and_even(n, batch_size, parts, shuffle):
    parts = min(n, parts)
    workers = [
        Batches(*numbered(n), batch_size, shuffle, num_parts=parts, part_index=i)
        for i in range(parts)
    ]
    for _ in range(2):
        epochs = [epoch_of(worker) for worker in workers]
        sizes = [len(flat(epoch)) for epoch in epochs]
        assert sorted(flat(map(flat, epochs))) == list(range(n))
        assert max(sizes) - min(sizes) <= 1
        for worker, epoch in zip(workers, epochs):
            assert len(worker) == len(epoch)
            assert all(len(numbers) == batch_size for numbers in epoch[:-1])
            assert 1 <= len(epoch[-1]) <= batch_size


@pytest.mark.parametrize("options, message", [
    ({"batch_size": 0}, "batch_size must be a whole number of at least 1, not 0"),
    ({"batch_size": -4}, "batch_size must be .* not -4"),
    ({"batch_size": 2.5}, "batch_size must be .* not 2.5"),
    ({"num_parts": 0}, "num_parts must be .* not 0"),
    ({"seed": -1}, "seed must be a whole number of at least 0, not -1"),
    ({"num_parts": 2, "part_index": 2}, "part_index=2: 2 parts .* from 0 to 1"),
    ({"num_parts": 2, "part_index": -1}, "part_index=-1: 2 parts"),
    ({"num_parts": 2, "part_index": 0.5}, "part_index=0.5: 2 parts"),
    ({"num_parts": 9, "part_index": 5}, "part 5 of 9 would be empty.* 5 examples"),
])
def test_unusable_arguments_are_refused_with_their_values(options, message):
    with pytest.raises(ValueError, match=message):
        Batches(*numbered(5), **{"batch_size": 2, **options})


def test_unequal_lengths_are_refused_with_both():
    with pytest.raises(ValueError, match="X has 5 examples and y has 4"):
        Batches(numbered(5)[0], numbered(4)[1], 2)


# ---- Both together ----


def test_load_data_shuffles_the_training_part_only(digits):
    train_iter, test_iter = data.load_data(256)
    assert (len(train_iter), len(test_iter)) == (6, 2)
    assert flat(epoch_of(test_iter)) == digits.test_y.tolist()
    first, second = flat(epoch_of(train_iter)), flat(epoch_of(train_iter))
    assert sorted(first) == sorted(second) == sorted(digits.train_y)
    assert digits.train_y.tolist() not in (first, second)
    assert first != second


def test_load_data_hands_on_the_seed():
    def first(seed):
        return epoch_of(data.load_data(256, seed=seed)[0])

    assert first(3) == first(3) != first(4)
