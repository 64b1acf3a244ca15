"""Files of MNIST's format and of CIFAR-10 are read whole and right, or refused."""

import d2l_ext  # noqa: F401, I001
import gzip
import io
import os
import struct
import tarfile
import tracemalloc

import numpy
import pytest
from cifar_files import header, make_files, write_archive, write_files
from idx_files import bomb, idx_bytes, make_arrays, write_folder

from d2l_ext.data import formats, load_data
from d2l_ext.data.formats import CIFAR_ARCHIVE, CIFAR_FILES, read_cifar, read_idx

IMAGES, LABELS, TEST_IMAGES, TEST_LABELS = formats.IDX_FILES
SMALL = "D2L_EXT_TEST_FASHION_MNIST"


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path)


def refusal(read, folder, error=ValueError):
    """The message with which `folder` is refused: one line, with what to do."""
    with pytest.raises(error) as caught:
        read(folder)
    message = str(caught.value)
    assert "\n" not in message and message.startswith(str(folder))
    assert "name another folder (root=… or D2L_EXT_DATA_DIR)" in message
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return message


def put(folder, name, data, zipped=True):
    (folder / name).write_bytes(gzip.compress(data) if zipped else data)


def same(these, those):
    return all(numpy.array_equal(a, b) for a, b in zip(these, those))


@pytest.mark.parametrize("read", [read_idx, read_cifar])
def test_what_is_no_folder_with_files_is_refused(read, tmp_path):
    (tmp_path / "f").write_text("x")
    (tmp_path / "empty").mkdir()
    for name, found in (("nowhere", "there is no such folder"),
                        ("f", "there is no such folder"),
                        ("empty", "it holds nothing")):
        assert f"{found}. Put the files there" in refusal(
            read, tmp_path / name, FileNotFoundError
        )
    message = refusal(read, "~nobody-of-this-name/data", FileNotFoundError)
    assert "there is no such folder" in message


# ---- MNIST's format ----


@pytest.mark.parametrize("zipped", [True, False])
def test_what_was_written_is_read(tmp_path, zipped):
    images, labels, *test = make_arrays(train=5, test=3)
    read = read_idx(write_folder(tmp_path, [images, labels, *test], zipped))
    assert {part.dtype.name for part in read} == {"uint8"}
    assert same(read, (images[:, None], labels, test[0][:, None], test[1]))


def test_a_folder_may_mix_gzipped_and_unpacked_files(folder):
    """Also where a browser unpacked a file under its old name."""
    (folder / LABELS[:-3]).write_bytes(gzip.decompress((folder / LABELS).read_bytes()))
    (folder / LABELS).unlink()
    put(folder, IMAGES, gzip.decompress((folder / IMAGES).read_bytes()), zipped=False)
    assert [len(part) for part in read_idx(folder)[:2]] == [20, 20]


def test_the_gzipped_file_is_preferred(folder):
    put(folder, LABELS[:-3], b"junk", zipped=False)
    assert len(read_idx(folder)[1]) == 20


def test_missing_files_are_listed_all_at_once_with_what_is_there(folder):
    (folder / TEST_IMAGES).unlink()
    (folder / TEST_LABELS).unlink()
    message = refusal(read_idx, folder, FileNotFoundError)
    assert f"lacks {TEST_IMAGES}, {TEST_LABELS}" in message
    assert f"holds {IMAGES}, {LABELS}" in message


@pytest.mark.parametrize("name", formats.IDX_FILES)
def test_a_gzip_that_is_not_whole_is_refused_by_name(folder, name):
    """Cut off, without its checksum, or with another one."""
    path = folder / name
    data = path.read_bytes()
    for length in (len(data) // 5, len(data) // 2, len(data) - 9, len(data) - 8):
        path.write_bytes(data[:length])
        assert f"{name} is truncated or corrupt: Compr" in refusal(read_idx, folder)
    path.write_bytes(data[:-8] + bytes([data[-8] ^ 1]) + data[-7:])
    assert f"{name} is truncated or corrupt: CRC" in refusal(read_idx, folder)


def test_no_flipped_bit_in_a_gzip_passes_as_other_data(folder):
    """Only bits of gzip's header that carry no data (time, system) may differ."""
    path = folder / IMAGES
    good, right = path.read_bytes(), read_idx(folder)
    for position in range(10, len(good), max(1, len(good) // 300)):
        path.write_bytes(
            good[:position] + bytes([good[position] ^ 4]) + good[position + 1 :]
        )
        try:
            read = read_idx(folder)
        except ValueError as error:
            assert str(path) in str(error)
        else:
            assert same(read, right)


@pytest.mark.parametrize("name", formats.IDX_FILES)
@pytest.mark.parametrize("zipped", [True, False])
def test_fewer_or_more_bytes_than_declared_are_refused(folder, name, zipped):
    data = gzip.decompress((folder / name).read_bytes())
    declared = len(data) - (16 if "images" in name else 8)
    put(folder, name, data[:-1], zipped)
    message = refusal(read_idx, folder)
    assert f"{declared:,} bytes, and holds only {declared - 1:,}" in message
    put(folder, name, data + b"\0", zipped)
    assert f"{name} declares" in (message := refusal(read_idx, folder))
    assert f"{declared:,} bytes, and holds more" in message


@pytest.mark.parametrize("length", [0, 3, 4, 7, 15])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_file_shorter_than_its_header_is_refused(folder, length, zipped):
    put(folder, IMAGES, idx_bytes(make_arrays()[0])[:length], zipped)
    assert f"{IMAGES} is truncated or corrupt: it ends wi" in refusal(read_idx, folder)


def test_a_file_in_the_place_of_another_is_refused_as_what_it_is(folder):
    images, labels = ((folder / name).read_bytes() for name in (IMAGES, LABELS))
    (folder / IMAGES).write_bytes(labels)
    expected = "expected the magic number 0x0000080"
    assert f"{IMAGES}: {expected}3 (images), found 0x00000801 (labels)" in refusal(
        read_idx, folder
    )
    put(folder, IMAGES, b"<!DOCTYPE html><title>Sign in</title>", zipped=False)
    assert "found 0x3c21444f (not an IDX file)" in refusal(read_idx, folder)
    (folder / IMAGES).write_bytes(images)
    (folder / TEST_LABELS).write_bytes(images)
    assert f"{TEST_LABELS}: {expected}1 (labels), found 0x00000803 (images)" in refusal(
        read_idx, folder
    )


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize(("shape", "message"), [
    ((2**32 - 1, 28, 28), "declares 4,294,967,295 images; expected 1 to 500,000."),
    ((500_000, 28, 28), "that is 392,000,000 bytes, and holds only 1."),
    ((0, 28, 28), "declares 0 images; expected 1 to 500,000."),
    ((7, 32, 32), "expected images of 28×28, found 32×32."),
])
def test_a_header_that_declares_another_shape_is_refused(
    folder, shape, message, zipped
):
    put(folder, TEST_IMAGES, struct.pack(">4I", 0x803, *shape) + b"x", zipped)
    assert TEST_IMAGES in (said := refusal(read_idx, folder)) and message in said


@pytest.mark.parametrize(("shape", "message"), [
    ((6_400_000, 28, 28), "declares 6,400,000 images; expected 1 to 500,000."),
    ((1, 2**31, 2), "expected images of 28×28, found 2147483648×2."),
    ((3, 28, 28), "declares 3 images, that is 2,352 bytes, and holds more."),
])
def test_a_stream_of_gigabytes_is_refused_before_it_is_unpacked(folder, shape, message):
    """23 MB, and 5 GB unpacked."""
    (folder / IMAGES).write_bytes(bomb(struct.pack(">4I", 0x803, *shape), 5000))
    tracemalloc.start()
    assert message in refusal(read_idx, folder)
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()
    (folder / IMAGES).unlink()


def test_zeros_behind_a_gzip_are_refused_before_they_are_read(folder, monkeypatch):
    """There may be terabytes of them, in a file with a hole, and gzip looks at each."""
    monkeypatch.setattr(formats, "MAX_IMAGES", 100)
    os.truncate(folder / IMAGES, 1 << 20)
    with pytest.raises(ValueError, match="is too large, with 1,048,576 bytes"):
        read_idx(folder)


def test_images_and_labels_of_unequal_number_are_refused_with_both_names(folder):
    put(folder, LABELS, idx_bytes(numpy.zeros(19, "uint8")))
    message = refusal(read_idx, folder)
    assert f"{IMAGES} holds 20 images and {LABELS} 19 labels" in message


def test_a_label_out_of_range_is_refused_with_its_position(folder):
    labels = make_arrays()[1]
    labels[13] = 10
    put(folder, LABELS, idx_bytes(labels))
    message = refusal(read_idx, folder)
    assert f"{LABELS}: label 10 at position 13, expected 0 to 9." in message


@pytest.mark.skipif(
    SMALL not in os.environ,
    reason=f"set {SMALL} to a folder with real Fashion-MNIST files, "
    "all of them or a part, to test that they are read",
)
def test_real_images_are_read_and_become_minibatches():
    train_X, train_y, test_X, test_y = read_idx(os.environ[SMALL])
    for X, y in ((train_X, train_y), (test_X, test_y)):
        assert X.shape == (len(y), 1, 28, 28)
        assert set(y) == set(range(10))
        assert (X.min(), X.max()) == (0, 255)
    # Photographs of clothes on a black ground: the corners are empty.
    assert numpy.median(train_X[:, 0, 0, 0]) == 0
    assert train_X[:, 0, 8:20, 8:20].mean() > 60
    X, _ = next(iter(load_data(256, "fashion_mnist", os.environ[SMALL])[0]))
    assert X.shape == (256, 1, 28, 28)
    assert (X.asnumpy().min(), X.asnumpy().max()) == (0, 1)


# ---- CIFAR-10 ----


def pack(folder, content):
    put(folder, CIFAR_ARCHIVE, content)


@pytest.fixture
def expected(tmp_path):
    """What is to be read from the files that helpers write."""
    (tmp_path / "a").mkdir()
    return read_cifar(write_files(tmp_path / "a"))


def test_the_files_of_a_folder_are_read_in_order(tmp_path):
    files = make_files()
    X, y, test_X, test_y = read_cifar(write_files(tmp_path, files))
    assert (X.dtype, X.shape, y.shape) == ("uint8", (10, 3, 32, 32), (10,))
    assert (test_X.shape, test_y.shape) == ((4, 3, 32, 32), (4,))
    training = b"".join(files[name] for name in CIFAR_FILES[:-1])
    for i in range(10):  # a label, then 1,024 red, 1,024 green and 1,024 blue
        record = training[i * 3073 : (i + 1) * 3073]
        assert y[i] == record[0]
        assert X[i, 1, 2, 3] == record[1 + 1024 + 2 * 32 + 3]
        assert X[i].tobytes() == record[1:]


def test_the_archive_reads_as_its_files_do_where_it_lies(tmp_path, expected):
    write_archive(tmp_path)
    assert same(read_cifar(tmp_path), expected)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", CIFAR_ARCHIVE]


def test_the_unpacked_archives_folder_is_found(tmp_path, expected):
    (tmp_path / "a").rename(tmp_path / "cifar-10-batches-bin")
    assert same(read_cifar(tmp_path), expected)


def test_missing_files_are_named_also_where_a_pipe_is_in_their_place(tmp_path):
    files = make_files()
    del files["data_batch_3.bin"]
    write_archive(tmp_path, files)
    message = refusal(read_cifar, tmp_path, FileNotFoundError)
    assert "lacks data_batch_3.bin. Get the file again" in message
    del files["test_batch.bin"]
    os.mkfifo(tmp_path / "test_batch.bin")
    write_files(tmp_path, files)
    message = refusal(read_cifar, tmp_path, FileNotFoundError)
    assert "lacks data_batch_3.bin, test_batch.bin." in message


def test_the_pickled_version_is_not_read(tmp_path):
    (tmp_path / "data_batch_1").write_bytes(b"pickled")
    message = refusal(read_cifar, tmp_path, FileNotFoundError)
    assert "for Python is pickled, and not read); it holds data_batch_1." in message


@pytest.mark.parametrize("write", [write_files, write_archive])
@pytest.mark.parametrize("content, message", [
    (b"", "holds 0 bytes"),
    (bytes(3072), "holds 3,072 bytes; expected whole records of 3,073"),
    (bytes(3074), "holds 3,074 bytes"),
    (b"\x0a" + bytes(3072), "label 10 at position 0, expected 0 to 9"),
])
def test_a_corrupt_file_is_refused_by_name(tmp_path, write, content, message):
    write(tmp_path, {**make_files(), "data_batch_2.bin": content})
    said = refusal(read_cifar, tmp_path)
    assert message in said and "data_batch_2.bin" in said


@pytest.mark.parametrize("write", [write_files, write_archive])
def test_more_records_than_are_read_are_refused(tmp_path, monkeypatch, write):
    monkeypatch.setattr(formats, "MAX_RECORDS", 14)
    write(tmp_path)
    assert len(read_cifar(tmp_path)[0]) == 10
    monkeypatch.setattr(formats, "MAX_RECORDS", 13)
    message = refusal(read_cifar, tmp_path)
    assert "holds 14 records; at most 13 are read." in message


def test_a_file_of_gigabytes_is_refused_before_it_is_read(tmp_path, monkeypatch):
    write_files(tmp_path)
    with (tmp_path / "data_batch_5.bin").open("wb") as sparse:
        sparse.truncate(formats.RECORD * 2_000_000)
    monkeypatch.setattr(formats.np, "fromfile", None)
    message = refusal(read_cifar, tmp_path)
    assert "holds 2,000,013 records; at most 100,000 are read" in message


# ---- Archives by somebody with bad intentions ----


def test_an_archive_of_gigabytes_is_unpacked_up_to_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "MAX_BYTES", 1 << 20)
    (tmp_path / CIFAR_ARCHIVE).write_bytes(bomb(header("x", 2**32), 5000))
    tracemalloc.start()
    assert "holds more than 1,048,576 bytes." in refusal(read_cifar, tmp_path)
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()
    (tmp_path / CIFAR_ARCHIVE).unlink()


@pytest.mark.parametrize("kind", [b"0", b"x", b"L", b"?"])
@pytest.mark.parametrize("size", [5_000_000_000, -1, -512, -5120, -(10**20)])
def test_a_member_of_a_size_that_cannot_be_is_refused(tmp_path, size, kind):
    """`tarfile` of Python 3.11.7 reads the same header forever with some of them."""
    pack(tmp_path, header("first", 0) + header("x", size, kind) + bytes(10240))
    message = refusal(read_cifar, tmp_path)
    assert f"is truncated or corrupt: 'x' declares {size:,} bytes." in message


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path, kind):
    link = tarfile.TarInfo(CIFAR_FILES[0])
    link.type, link.linkname = kind, "/etc/passwd"
    pack(tmp_path, link.tobuf() + bytes(10240))
    message = refusal(read_cifar, tmp_path, FileNotFoundError)
    assert "lacks data_batch_1.bin, " in message


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_an_archive_that_was_packed_again_with_extended_headers_is_read(
    tmp_path, format, expected
):
    """PAX headers hold times, and are named after the file that they precede."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=format) as archive:
        archive.addfile(tarfile.TarInfo("a/" * 70 + "readme"))  # a long name
        for name, content in make_files().items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size, member.mtime = len(content), 1.5
            archive.addfile(member, io.BytesIO(content))
    pack(tmp_path, packed.getvalue())
    assert same(read_cifar(tmp_path), expected)


def test_an_archive_that_is_not_whole_is_refused(tmp_path):
    """Cut off, with another checksum, within another archive, or no archive."""
    path = write_archive(tmp_path)
    whole = path.read_bytes()
    spoilt = [whole[:n] for n in range(len(whole) // 40, len(whole), len(whole) // 40)]
    spoilt += [whole[:-6] + bytes([whole[-6] ^ 1]) + whole[-5:]]
    for content in (*spoilt, gzip.compress(whole), b"<!DOCTYPE html>"):
        path.write_bytes(content)
        assert "is truncated or corrupt: " in refusal(read_cifar, tmp_path)
