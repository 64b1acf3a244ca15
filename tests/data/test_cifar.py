"""CIFAR-10's binary files are read whole and right, or refused by name."""

import d2l_ext  # noqa: F401, I001
import gzip
import io
import os
import tarfile

import numpy
import pytest
from cifar_files import header, make_files, write_archive, write_files
from idx_files import bomb

from d2l_ext.data import cifar, download
from d2l_ext.data import sets as data
from d2l_ext.data.sets import CIFAR10


def pack(folder, content):
    (folder / cifar.ARCHIVE).write_bytes(gzip.compress(content))


def refusal(folder, error=ValueError):
    """The message with which `folder` is refused: one line, with what to do."""
    with pytest.raises(error) as caught:
        cifar.read_folder(folder)
    message = str(caught.value)
    assert "\n" not in message and str(folder) in message
    assert "Get the file again" in message
    return message


def same(these, those):
    return all(numpy.array_equal(a, b) for a, b in zip(these, those))


def test_the_files_of_a_folder_are_read_in_order(tmp_path):
    files = make_files()
    X, y, test_X, test_y = cifar.read_folder(write_files(tmp_path, files))
    assert (X.dtype, X.shape, y.shape) == ("uint8", (10, 3, 32, 32), (10,))
    assert (test_X.shape, test_y.shape) == ((4, 3, 32, 32), (4,))
    training = b"".join(files[name] for name in cifar.FILES[:-1])
    for i in range(10):  # a label, then 1,024 red, 1,024 green and 1,024 blue
        record = training[i * 3073 : (i + 1) * 3073]
        assert y[i] == record[0]
        assert X[i, 1, 2, 3] == record[1 + 1024 + 2 * 32 + 3]
        assert X[i].tobytes() == record[1:]


def test_the_archive_reads_as_its_files_do(tmp_path):
    (tmp_path / "a").mkdir()
    write_archive(tmp_path)
    expected = cifar.read_folder(write_files(tmp_path / "a"))
    assert same(cifar.read_folder(tmp_path), expected)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", cifar.ARCHIVE]


def test_the_unpacked_archives_folder_is_found(tmp_path):
    (tmp_path / cifar.FOLDER).mkdir()
    write_files(tmp_path / cifar.FOLDER)
    assert len(cifar.read_folder(tmp_path)[0]) == 10


def test_missing_files_are_named(tmp_path):
    files = make_files()
    del files["data_batch_3.bin"]
    write_archive(tmp_path, files)
    with pytest.raises(FileNotFoundError, match="lacks data_batch_3.bin"):
        cifar.read_folder(tmp_path)
    del files["test_batch.bin"]
    write_files(tmp_path, files)
    with pytest.raises(FileNotFoundError, match="data_batch_3.bin, test_batch.bin"):
        cifar.read_folder(tmp_path)


def test_the_pickled_version_is_not_read(tmp_path):
    (tmp_path / "data_batch_1").write_bytes(b"pickled")
    with pytest.raises(FileNotFoundError, match="get the binary version"):
        cifar.read_folder(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        cifar.read_folder(tmp_path / "nowhere")


@pytest.mark.parametrize("content, message", [
    (b"", "holds 0 bytes"),
    (bytes(3072), "holds 3,072 bytes; expected whole records of 3,073"),
    (bytes(3074), "holds 3,074 bytes"),
    (b"\x0a" + bytes(3072), "label 10 at position 0, expected 0 to 9"),
])  # fmt: skip
def test_a_corrupt_file_is_refused_by_name(tmp_path, content, message):
    write_files(tmp_path, {**make_files(), "data_batch_2.bin": content})
    with pytest.raises(ValueError, match=message) as error:
        cifar.read_folder(tmp_path)
    assert "data_batch_2.bin" in str(error.value)


@pytest.mark.parametrize("write", [write_files, write_archive])
def test_more_records_than_are_read_are_refused_by_their_sizes(
    tmp_path, monkeypatch, write
):
    monkeypatch.setattr(cifar, "MAX_RECORDS", 14)
    write(tmp_path)
    assert len(cifar.read_folder(tmp_path)[0]) == 10
    monkeypatch.setattr(cifar, "MAX_RECORDS", 13)
    message = refusal(tmp_path)
    assert "test_batch.bin hold 14 records; at most 13 are read" in message


def test_a_file_of_gigabytes_is_refused_before_it_is_read(tmp_path, monkeypatch):
    write_files(tmp_path)
    with (tmp_path / "data_batch_5.bin").open("wb") as sparse:
        sparse.truncate(cifar.RECORD * 2_000_000)
    monkeypatch.setattr(cifar, "read_at_most", None)
    assert "hold 2,000,013 records; at most 100,000 are read" in refusal(tmp_path)


def test_a_named_pipe_in_the_place_of_a_file_is_missing_rather_than_waited_for(
    tmp_path,
):
    write_files(tmp_path)
    (tmp_path / "data_batch_5.bin").unlink()
    os.mkfifo(tmp_path / "data_batch_5.bin")
    assert "lacks data_batch_5.bin." in refusal(tmp_path, FileNotFoundError)


# ---- Archives by somebody with bad intentions ----


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K", b"0", b"S", b"?"])
def test_a_member_of_gigabytes_is_refused_before_it_is_unpacked(tmp_path, kind):
    """An extended header of tar's, too: 23 MB, and 5 GB unpacked."""
    head = header("first", 0) + header("x", 5_000_000_000, kind)
    (tmp_path / cifar.ARCHIVE).write_bytes(bomb(head, 5000))
    message = refusal(tmp_path)
    assert "'x' declares 5,000,000,000 bytes; expected 0 at least, and 324,0" in message
    (tmp_path / cifar.ARCHIVE).unlink()


@pytest.mark.parametrize("size", [-1, -512, -5120, -(10**20)])
def test_a_member_of_negative_size_is_refused(tmp_path, size):
    """With it, `tarfile` of Python 3.11.7 reads the same header for ever."""
    pack(tmp_path, header("first", 0) + header("x", size) + bytes(10240))
    assert f"'x' declares {size:,} bytes; expected 0 at least" in refusal(tmp_path)


def test_zeros_without_end_behind_the_archive_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(cifar, "MAX_BYTES", 1 << 20)
    (tmp_path / cifar.ARCHIVE).write_bytes(bomb(bytes(512), 5000))
    assert "holds more than 1,048,576 bytes" in refusal(tmp_path)
    (tmp_path / cifar.ARCHIVE).unlink()


def test_members_without_end_are_refused(tmp_path):
    pack(tmp_path, header("x", 0) * 1000)
    assert "holds 1,000 members or more" in refusal(tmp_path)


def test_an_archive_in_another_is_no_archive(tmp_path):
    path = write_archive(tmp_path)
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert "is damaged" in refusal(tmp_path)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path, kind):
    link = tarfile.TarInfo(cifar.FILES[0])
    link.type, link.linkname = kind, "/etc/passwd"
    pack(tmp_path, link.tobuf() + bytes(10240))
    assert "lacks data_batch_1.bin, " in refusal(tmp_path, FileNotFoundError)


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_an_archive_that_was_packed_again_with_extended_headers_is_read(
    tmp_path, format
):
    """PAX headers hold times, and are named after the file that they precede."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=format) as archive:
        archive.addfile(tarfile.TarInfo("a/" * 70 + "readme"))  # a long name
        for name, content in make_files().items():
            member = tarfile.TarInfo(f"{cifar.FOLDER}/{name}")
            member.size, member.mtime = len(content), 1.5
            archive.addfile(member, io.BytesIO(content))
    pack(tmp_path, packed.getvalue())
    (tmp_path / "a").mkdir()
    expected = cifar.read_folder(write_files(tmp_path / "a"))
    assert same(cifar.read_folder(tmp_path), expected)


def test_an_archive_cut_off_anywhere_is_refused(tmp_path):
    path = write_archive(tmp_path)
    whole = path.read_bytes()
    for length in range(0, len(whole), len(whole) // 40):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="is damaged"):
            cifar.read_folder(tmp_path)


def test_an_archive_with_another_checksum_is_refused(tmp_path):
    path = write_archive(tmp_path)
    content = bytearray(path.read_bytes())
    content[-6] ^= 1  # of gzip's checksum, behind all that tar reads
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged"):
        cifar.read_folder(tmp_path)


def test_the_data_set_has_the_promised_form(tmp_path, monkeypatch):
    monkeypatch.delenv(data.DATA_DIR, raising=False)
    loaded = data.load_arrays("cifar10", write_files(tmp_path))
    raw = cifar.read_folder(tmp_path)
    assert (loaded.train_X.dtype, loaded.train_X.shape) == ("float32", (10, 3, 32, 32))
    assert numpy.allclose(loaded.test_X * 255, raw[2])
    assert (loaded.test_y.dtype, len(loaded.classes)) == ("int32", 10)


def test_only_the_official_archive_is_accepted_in_the_default_folder(
    tmp_path, monkeypatch
):
    def fetch(files, mirrors, folder):
        assert [tuple(f) for f in files] == [
            (cifar.ARCHIVE, CIFAR10.sizes[0], CIFAR10.sha256[0])
        ]
        assert mirrors == ("https://www.cs.toronto.edu/~kriz/",)
        write_archive(folder)

    monkeypatch.delenv(data.DATA_DIR, raising=False)
    monkeypatch.setattr(data, "_default_folder", lambda name: tmp_path)
    monkeypatch.setattr(download, "fetch", fetch)
    assert len(data.load_arrays("cifar10").train_y) == 10


def test_the_data_card_tells_the_same_checksum():
    card = (data._default_folder("cifar10").parent / "README.md").read_text("utf-8")
    assert cifar.ARCHIVE in card and CIFAR10.sha256[0] in card
    assert f"{CIFAR10.sizes[0]:,}" in card
