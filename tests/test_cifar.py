"""CIFAR-10's binary files are read whole and right, or refused by name."""

import d2l_ext  # noqa: F401, I001
import gzip
import io
import tarfile

import numpy
import pytest

from d2l_ext import cifar, data, download
from d2l_ext.catalogue import CIFAR10


def make_files(sizes=(3, 2, 2, 2, 1, 4), seed=0):
    """The six files by name, with so many images each."""
    rng = numpy.random.RandomState(seed)
    files = {}
    for name, n in zip(cifar.FILES, sizes):
        records = rng.randint(0, 256, (n, cifar.RECORD))
        records[:, 0] = rng.randint(0, 10, n)
        files[name] = records.astype("uint8").tobytes()
    return files


def write_files(folder, files=None):
    for name, content in (files or make_files()).items():
        (folder / name).write_bytes(content)
    return folder


def write_archive(folder, files=None, prefix=f"{cifar.FOLDER}/"):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in (files or make_files()).items():
            member = tarfile.TarInfo(prefix + name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    path = folder / cifar.ARCHIVE
    path.write_bytes(gzip.compress(packed.getvalue()))
    return path


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


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "holds 0 bytes"),
        (bytes(3072), "holds 3,072 bytes; expected records of 3,073"),
        (bytes(3074), "holds 3,074 bytes"),
        (b"\x0a" + bytes(3072), "label 10 at position 0, expected 0 to 9"),
    ],
)
def test_a_corrupt_file_is_refused_by_name(tmp_path, content, message):
    write_files(tmp_path, {**make_files(), "data_batch_2.bin": content})
    with pytest.raises(ValueError, match=message) as error:
        cifar.read_folder(tmp_path)
    assert "data_batch_2.bin" in str(error.value)


def test_a_file_that_never_ends_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(cifar, "MAX_BYTES", 2 * cifar.RECORD)
    write_archive(tmp_path)
    with pytest.raises(ValueError, match="data_batch_1.bin holds more bytes"):
        cifar.read_folder(tmp_path)


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
