"""Text for a character model: load it, encode its characters, cut it into batches."""

import os
from pathlib import Path

import numpy

from ..checks import whole_number

#: Names a text file to use instead of the default.
VARIABLE = "D2L_EXT_TEXT"
MAX_BYTES = 100_000_000  # of a file; tinyshakespeare has 1.1 million


def load_text(path=None):
    """Return a text as one string.

    `path`: a file in UTF-8, such as tinyshakespeare; by default the one that the
    environment variable `D2L_EXT_TEXT` names; if neither is given, Python's language
    reference, which every installation carries: the topics of `pydoc_data.topics`,
    joined in the order of their names. The text differs a little between versions.

    Raises `FileNotFoundError` when there is no such file, and `ValueError` for one
    that is empty, not UTF-8, or larger than `MAX_BYTES`. Developed in the chapter
    *The LSTM as a pipeline*.
    """
    path = path or os.environ.get(VARIABLE)
    if not path:
        from pydoc_data.topics import topics

        return "\n".join(topics[name] for name in sorted(topics))
    if not Path(path).is_file():
        raise FileNotFoundError(
            f"there is no text file {str(path)!r}: give another path, or unset "
            f"{VARIABLE} to read Python's language reference"
        )
    size = Path(path).stat().st_size
    if size > MAX_BYTES:
        raise ValueError(
            f"{str(path)!r} has {size:,} bytes; at most {MAX_BYTES:,} are read: give "
            "a part of it"
        )
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{str(path)!r} is not text in UTF-8: {error}; "
                         "convert it") from None
    if not text.strip():
        raise ValueError(f"{str(path)!r} is empty: there is nothing to learn from it")
    return text


class Vocab:
    """The characters of a text, sorted and numbered from 0.

    `characters`: a list, in which a character's index is its number. `len(vocab)`:
    the number of characters.
    Raises `ValueError` for an empty text.
    """

    def __init__(self, text):
        self.characters = sorted(set(text))
        if not self.characters:
            raise ValueError("the text is empty: a vocabulary needs a character")
        self._ids = {character: i for i, character in enumerate(self.characters)}

    def __len__(self):
        return len(self.characters)

    def encode(self, text):
        """Return the numbers of the characters of `text`: int32, (len(text),).

        Raises `KeyError` for a character that the vocabulary lacks.
        """
        return numpy.array([self._ids[c] for c in text], dtype="int32")

    def decode(self, ids):
        """Return the text whose characters have the numbers `ids`."""
        return "".join(self.characters[int(i)] for i in ids)


def batches(ids, batch_size, num_steps):
    """Yield minibatches (X, y) of a text, time first: (num_steps, batch_size) each.

    `ids`: numbers of the text's characters, in order. The text is cut into
    `batch_size` strands, which are read in parallel: column n of a batch continues
    where column n of the last one ended. y is X, one character later. A remainder that
    does not fill a batch is dropped. Both are float32, which MXNet's symbols expect.

    Raises `ValueError` for a `batch_size` or `num_steps` below 1, and for a text that
    is too short for one batch.
    """
    whole_number("batch_size", batch_size)
    whole_number("num_steps", num_steps)
    strand = (len(ids) - 1) // batch_size  # the last character is only a label
    if strand < num_steps:
        raise ValueError(
            f"a text of {len(ids)} characters is too short for sequences of "
            f"{num_steps} in a batch of {batch_size}: it needs at least "
            f"{batch_size * num_steps + 1}. Use a smaller batch_size or num_steps, or "
            "a longer text."
        )
    ids = numpy.asarray(ids[: strand * batch_size + 1], dtype="float32")
    X, y = (part.reshape(batch_size, -1).T for part in (ids[:-1], ids[1:]))  # by time
    starts = range(0, strand - num_steps + 1, num_steps)
    return ((X[t : t + num_steps], y[t : t + num_steps]) for t in starts)
