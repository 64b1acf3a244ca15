"""A chapter shows the library's code: folded, as it is in its file, no docstrings."""

import pytest

from bookkit.show import show, show_from, without_docstrings
from d2l_ext.data_parallel.minibatch import shard_sizes, split_batch

CLASS = '''
    @decorated
    class A:
        """A docstring.

        Of two paragraphs.
        """

        def b(self):
            """Another."""
            # a comment
            return """no docstring"""

        def c(self):
            """All there is."""
'''
BARE = '''
@decorated
class A:
    def b(self):
        # a comment
        return """no docstring"""

    def c(self):
        """All there is."""
'''


def test_a_function_of_the_library_is_shown_folded():
    text = show(split_batch, shard_sizes).data
    head, source = text.split("```python\n")
    assert (
        "<code>split_batch</code>, <code>shard_sizes</code> in <code>d2l_ext/" in head
    )
    assert head.startswith("<details>") and source.startswith("def split_batch(")
    assert "\n\ndef shard_sizes(" in source and '"""' not in source


def test_docstrings_are_left_out_and_nothing_else():
    assert without_docstrings(CLASS).strip() == BARE.strip()


def test_a_function_is_shown_from_a_file_that_cannot_be_imported():
    text = show_from("benchmarks.scale.rosetta.torch_steps", "ddp").data
    assert "<code>benchmarks/scale/rosetta/torch_steps.py</code>" in text
    assert "```python\ndef ddp(problem, rank):" in text
    with pytest.raises(ValueError, match="has no function or class dpd"):
        show_from("benchmarks.scale.rosetta.torch_steps", "dpd")


def test_a_function_shown_from_a_file_keeps_its_decorators(monkeypatch, tmp_path):
    (tmp_path / "decorated.py").write_text("@cache\ndef f(x):\n    return x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "```python\n@cache\ndef f(x):\n    return x\n```" in show_from(
        "decorated", "f").data
