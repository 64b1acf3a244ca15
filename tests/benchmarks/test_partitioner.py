"""Thirty layouts in the book's compiler and, as recorded, in JAX."""

import d2l_ext  # noqa: F401, I001

import pytest

from benchmarks.meshes.partitioner import compare
from benchmarks.meshes.partitioner.cases import CASES
from bookkit import stored

ROWS = stored.read("jax_layouts").data["rows"]


@pytest.mark.parametrize("name", CASES)
def test_the_compiler_inserts_what_was_recorded(name):
    assert compare.ours(*CASES[name]) == ROWS[name]["book"]


def test_jax_inserts_the_same_but_for_two_products():
    assert ROWS.keys() == CASES.keys()
    assert [name for name, row in ROWS.items() if not compare.agree(row)] == [
        "product, summed and cut", "product, one factor cut"]


def test_a_reduce_scatter_agrees_with_an_allreduce_and_several_with_one_joined():
    row = {"book": {"reduce-scatter": 2, "allgather": 1}, "arrays": 2,
           "jax": {"allreduce": 1, "allgather": 1}}
    assert compare.agree(row)
    assert not compare.agree({**row, "arrays": 1})
    assert not compare.agree({**row, "jax": {"allreduce": 1, "all-to-all": 1}})
