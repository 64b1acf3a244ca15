"""Text becomes numbered characters and time-first minibatches, or a clear error."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2l_ext.data import text


@pytest.fixture(autouse=True)
def no_text_of_the_reader(monkeypatch):
    monkeypatch.delenv(text.VARIABLE, raising=False)


def test_the_default_is_the_same_long_text_every_time():
    reference = text.load_text()
    assert reference == text.load_text()
    assert len(reference) > 100_000
    assert "expression" in reference


def test_the_environment_names_a_file_and_the_argument_goes_first(
    tmp_path, monkeypatch
):
    for name in "aß":
        (tmp_path / name).write_text(name, encoding="utf-8")
    monkeypatch.setenv(text.VARIABLE, str(tmp_path / "a"))
    assert text.load_text() == "a"
    assert text.load_text(tmp_path / "ß") == "ß"


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no text file .*gone.txt.*another"):
        text.load_text(tmp_path / "gone.txt")


@pytest.mark.parametrize("content", ["", " \n\n"])
def test_an_empty_file_is_refused_by_name(tmp_path, content):
    file = tmp_path / "empty.txt"
    file.write_text(content)
    with pytest.raises(ValueError, match="empty.txt' is empty"):
        text.load_text(file)


def test_what_is_no_text_is_refused_by_name(tmp_path):
    file = tmp_path / "image.png"
    file.write_bytes(b"\x89PNG\xff")
    with pytest.raises(ValueError, match="image.png' is not text in UTF-8"):
        text.load_text(file)


def test_a_text_of_gigabytes_is_refused_before_it_is_read(tmp_path, monkeypatch):
    file = tmp_path / "large.txt"
    with file.open("wb") as sparse:
        sparse.truncate(5_000_000_000)
    monkeypatch.setattr(text.Path, "read_text", None)
    with pytest.raises(ValueError, match="large.txt' has 5,000,000,000 bytes; at most"):
        text.load_text(file)


def test_characters_are_sorted_and_numbered():
    vocab = text.Vocab("banana")
    assert vocab.characters == ["a", "b", "n"] and len(vocab) == 3
    assert vocab.encode("nab").tolist() == [2, 0, 1]
    assert vocab.decode([2, 0, 1]) == "nab"


def test_an_empty_text_has_no_vocabulary():
    with pytest.raises(ValueError, match="text is empty"):
        text.Vocab("")


def test_a_batch_is_read_by_eye():
    # Strands 0 1 2 3 4 and 5 6 7 8 9, and the 10 is only a label.
    (X, y), (X2, y2) = text.batches(range(11), batch_size=2, num_steps=2)
    assert X.tolist() == [[0, 5], [1, 6]]
    assert y.tolist() == [[1, 6], [2, 7]]
    assert X2.tolist() == [[2, 7], [3, 8]]
    assert y2.tolist() == [[3, 8], [4, 9]]
    assert X.dtype == numpy.float32


@given(st.integers(2, 200), st.integers(1, 7), st.integers(1, 9))
def test_columns_go_on_in_the_next_batch_and_labels_are_one_ahead(length, n, steps):
    ids = numpy.arange(length)
    if (length - 1) // n < steps:
        needed = f"too short .* at least {n * steps + 1}. Use"
        with pytest.raises(ValueError, match=needed):
            text.batches(ids, n, steps)
        return
    found = list(text.batches(ids, n, steps))
    X, y = (numpy.concatenate(side) for side in zip(*found))
    assert (y == X + 1).all()
    assert (numpy.diff(X, axis=0) == 1).all()
    assert len(found) == (length - 1) // n // steps


@pytest.mark.parametrize("batch_size, num_steps", [(0, 5), (5, 0)])
def test_an_empty_batch_is_refused(batch_size, num_steps):
    with pytest.raises(ValueError, match="must be a whole number of at least 1, not 0"):
        text.batches(range(20), batch_size, num_steps)
