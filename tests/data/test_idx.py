"""An IDX folder is read when it is whole, and else refused by the file's name."""

import gzip
import os
import struct

import numpy
import pytest
from idx_files import bomb, idx_bytes, make_arrays, write_folder

from d2l_ext.data import idx, load_data

IMAGES, LABELS, TEST_IMAGES, TEST_LABELS = idx.FILES
SMALL = "D2L_EXT_TEST_FASHION_MNIST"


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path)


def refusal(folder, error=ValueError):
    """The message with which `folder` is refused: one line, with what to do."""
    with pytest.raises(error) as caught:
        idx.read_folder(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return message


def put(folder, name, data, zipped=True):
    (folder / name).write_bytes(gzip.compress(data) if zipped else data)


@pytest.mark.parametrize("zipped", [True, False])
def test_what_was_written_is_read(tmp_path, zipped):
    arrays = make_arrays(train=5, test=3)
    read = idx.read_folder(write_folder(tmp_path, arrays, zipped))
    for was, now in zip(arrays, read):
        assert now.dtype == "uint8"
        assert numpy.array_equal(was, now)


def test_a_folder_may_mix_gzipped_and_unpacked_files(folder):
    packed = folder / LABELS
    (folder / LABELS[:-3]).write_bytes(gzip.decompress(packed.read_bytes()))
    packed.unlink()
    assert len(idx.read_folder(folder)[1]) == 20


def test_a_file_that_a_browser_unpacked_under_its_old_name_is_read(folder):
    path = folder / IMAGES
    path.write_bytes(gzip.decompress(path.read_bytes()))
    assert len(idx.read_folder(folder)[0]) == 20


def test_the_gzipped_file_is_preferred(folder):
    put(folder, LABELS[:-3], b"junk", zipped=False)
    assert len(idx.read_folder(folder)[1]) == 20


def test_what_is_no_folder_with_files_is_refused(tmp_path):
    (tmp_path / "f").write_text("x")
    (tmp_path / "empty").mkdir()
    message = refusal(tmp_path / "nowhere", FileNotFoundError)
    assert "nowhere" in message and "no such folder" in message and IMAGES in message
    assert "that is a file" in refusal(tmp_path / "f", FileNotFoundError)
    assert "it holds nothing" in refusal(tmp_path / "empty", FileNotFoundError)


def test_missing_files_are_listed_all_at_once_with_what_is_there(folder):
    (folder / TEST_IMAGES).unlink()
    (folder / TEST_LABELS).unlink()
    message = refusal(folder, FileNotFoundError)
    assert f"lacks {TEST_IMAGES}, {TEST_LABELS}" in message
    assert f"holds {IMAGES}, {LABELS}" in message
    assert "D2L_EXT_DATA_DIR" in message


@pytest.mark.parametrize("name", idx.FILES)
@pytest.mark.parametrize("share", [0.2, 0.5, 0.99])
def test_a_truncated_gzip_is_refused_by_name(folder, name, share):
    path = folder / name
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    message = refusal(folder)
    assert str(path) in message
    assert "cut off: its gzip stream ends too early" in message
    assert "Get the file again" in message


@pytest.mark.parametrize("name", idx.FILES)
def test_a_gzip_without_its_checksum_is_refused(folder, name):
    """All pixels are there, but nothing says that they are right."""
    path = folder / name
    path.write_bytes(path.read_bytes()[:-8])
    assert str(path) in refusal(folder)


@pytest.mark.parametrize("name", idx.FILES)
def test_a_wrong_gzip_checksum_is_refused(folder, name):
    path = folder / name
    data = bytearray(path.read_bytes())
    data[-8] ^= 1
    path.write_bytes(data)
    message = refusal(folder)
    assert str(path) in message and "damaged" in message and "CRC" in message


def test_no_flipped_bit_in_a_gzip_passes_as_other_data(folder):
    """Only bits of gzip's header that carry no data (time, system) may differ."""
    path = folder / IMAGES
    good, right = path.read_bytes(), idx.read_images(path)
    for position in range(10, len(good), max(1, len(good) // 300)):
        path.write_bytes(
            good[:position] + bytes([good[position] ^ 4]) + good[position + 1 :]
        )
        try:
            read = idx.read_images(path)
        except ValueError as error:
            assert str(path) in str(error)
        else:
            assert numpy.array_equal(read, right)


@pytest.mark.parametrize("name", idx.FILES)
@pytest.mark.parametrize("zipped", [True, False])
def test_a_truncated_content_is_refused_with_both_sizes(folder, name, zipped):
    data = gzip.decompress((folder / name).read_bytes())
    put(folder, name, data[:-1], zipped)
    declared = len(data) - (16 if "images" in name else 8)
    message = refusal(folder)
    assert str(folder / name) in message
    assert f"{declared:,} bytes, and holds only {declared - 1:,}" in message


@pytest.mark.parametrize("name", idx.FILES)
@pytest.mark.parametrize("zipped", [True, False])
def test_surplus_bytes_are_refused(folder, name, zipped):
    put(folder, name, gzip.decompress((folder / name).read_bytes()) + b"\0", zipped)
    message = refusal(folder)
    assert str(folder / name) in message and "holds more" in message


@pytest.mark.parametrize("length", [0, 3, 4, 7, 15])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_file_shorter_than_its_header_is_refused(folder, length, zipped):
    put(folder, IMAGES, idx_bytes(make_arrays()[0])[:length], zipped)
    assert str(folder / IMAGES) in refusal(folder)


@pytest.mark.parametrize("name, other, wanted, found", [
    (IMAGES, LABELS, "3 (images)", "1 (labels)"),
    (TEST_LABELS, TEST_IMAGES, "1 (labels)", "3 (images)"),
])  # fmt: skip
def test_a_file_in_the_place_of_another_is_refused_as_what_it_is(
    folder, name, other, wanted, found
):
    (folder / name).write_bytes((folder / other).read_bytes())
    message = refusal(folder)
    assert str(folder / name) in message
    assert f"expected the magic number 0x0000080{wanted}" in message
    assert f"found 0x0000080{found}" in message


def test_a_web_page_is_refused_as_no_idx_file(folder):
    put(folder, IMAGES, b"<!DOCTYPE html><title>Sign in</title>", zipped=False)
    assert "found 0x3c21444f (no IDX file)" in refusal(folder)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_header_that_declares_terabytes_is_refused_without_reserving_them(
    folder, zipped
):
    put(folder, IMAGES, struct.pack(">4I", 0x803, 2**32 - 1, 28, 28) + b"x", zipped)
    message = refusal(folder)
    assert str(folder / IMAGES) in message
    assert "declares 4,294,967,295 images; at most 500,000 are read" in message


@pytest.mark.parametrize("zipped", [True, False])
def test_a_header_that_declares_as_many_as_are_read_needs_them(folder, zipped):
    put(folder, IMAGES, struct.pack(">4I", 0x803, 500_000, 28, 28) + b"x", zipped)
    assert "that is 392,000,000 bytes, and holds only 1." in refusal(folder)


@pytest.mark.parametrize("shape, message", [
    ((6_400_000, 28, 28), "declares 6,400,000 images; at most 500,000 are read"),
    ((1, 2**31, 2), "expected images of 28×28, found 2147483648×2"),
])  # fmt: skip
def test_a_stream_of_gigabytes_is_refused_before_it_is_unpacked(
    folder, monkeypatch, shape, message
):
    """23 MB, and 5 GB unpacked."""
    (folder / IMAGES).write_bytes(bomb(struct.pack(">4I", 0x803, *shape), 5000))
    monkeypatch.setattr(idx, "read_at_most", None)
    assert message in refusal(folder)
    (folder / IMAGES).unlink()


def test_no_more_is_unpacked_than_is_declared(folder):
    """One byte more tells that there is more."""
    header = struct.pack(">4I", 0x803, 3, 28, 28)
    (folder / IMAGES).write_bytes(bomb(header, 5000))
    with (folder / IMAGES).open("rb") as file, gzip.open(file) as unzipped:
        assert len(idx.read_at_most(unzipped, 16 + 3 * 784)) == 16 + 3 * 784
        assert file.tell() <= 1 << 17  # what gzip reads ahead of 23 MB
    assert "declares 3 images, that is 2,352 bytes, and holds more" in refusal(folder)
    (folder / IMAGES).unlink()


def test_a_home_folder_of_nobodys_is_refused_as_missing():
    message = refusal("~nobody-of-this-name/data", FileNotFoundError)
    assert message.startswith("~nobody-of-this-name/data: expected a folder")


def test_images_of_another_size_are_refused(folder):
    put(folder, TEST_IMAGES, idx_bytes(numpy.zeros((7, 32, 32), "uint8")))
    message = refusal(folder)
    assert TEST_IMAGES in message
    assert "expected images of 28×28, found 32×32" in message


def test_a_file_without_images_is_refused(folder):
    put(folder, TEST_IMAGES, idx_bytes(numpy.zeros((0, 28, 28), "uint8")))
    assert "expected images, found none" in refusal(folder)


def test_images_and_labels_of_unequal_number_are_refused_with_both_names(folder):
    put(folder, LABELS, idx_bytes(numpy.zeros(19, "uint8")))
    message = refusal(folder)
    assert IMAGES in message and "20 images" in message
    assert LABELS in message and "19 labels" in message


def test_a_label_out_of_range_is_refused_with_its_position(folder):
    labels = make_arrays()[1]
    labels[13] = 10
    put(folder, LABELS, idx_bytes(labels))
    message = refusal(folder)
    assert LABELS in message
    assert "label 10 at position 13, expected 0 to 9" in message


@pytest.mark.skipif(
    SMALL not in os.environ,
    reason=f"set {SMALL} to a folder with real Fashion-MNIST files, "
    "all of them or a part, to test that they are read",
)
def test_real_images_are_read_and_become_minibatches():
    train_X, train_y, test_X, test_y = idx.read_folder(os.environ[SMALL])
    for X, y in ((train_X, train_y), (test_X, test_y)):
        assert X.shape == (len(y), 28, 28)
        assert set(y) == set(range(10))
        assert (X.min(), X.max()) == (0, 255)
    # Photographs of clothes on a black ground: the corners are empty.
    assert numpy.median(train_X[:, 0, 0]) == 0
    assert train_X[:, 8:20, 8:20].mean() > 60
    X, _ = next(iter(load_data(256, "fashion_mnist", os.environ[SMALL])[0]))
    assert X.shape == (256, 1, 28, 28)
    assert (X.asnumpy().min(), X.asnumpy().max()) == (0, 1)
