"""From the calls of all ranks follows which rank is missing from which call."""

import time

import pytest

from d2l_ext.clinic.verdict import Call, Life, what_happened

OPS = {"a": "allreduce", "b": "broadcast", "c": "barrier"}


def calls(*ranks, lines=True):
    """Calls of a ring: a text for each rank, with a letter for each of its calls."""
    return [Call(rank, number, OPS[letter], where=f"train.py:{ord(letter)}" * lines,
                 time=number + rank / 10)
            for rank, letters in enumerate(ranks)
            for number, letter in enumerate(letters, 1)]


@pytest.mark.parametrize("ranks, found", [
    (("abca", "abca", "abca"), None),
    (("", ""), None),
    (("ab", "abc"), ("missing", (0,), 3, "barrier")),
    (("", "a", "a"), ("missing", (0,), 1, "allreduce")),
    (("abc", "ab", "abc", "a"), ("missing", (3,), 2, "broadcast")),  # the first call
    (("ab", "a", "ab", "a"), ("missing", (1, 3), 2, "broadcast")),  # all of them
    (("aba", "aca", "aba"), ("different", (1,), 2, "broadcast")),  # the minority
    # Of two the one that left its pattern; without one, or a majority, all.
    (("abcab", "abcac"), ("different", (1,), 5, "broadcast")),
    (("abcac", "abcab"), ("different", (0,), 5, "broadcast")),
    (("ab", "ac"), ("different", (0, 1), 2, "broadcast")),
    # Before ranks that have yet to arrive.
    (("ab", "ac", "a", "a"), ("different", (0, 1), 2, "broadcast")),
])
def test_who_is_missing_or_differs_is_named_with_the_first_such_call(ranks, found):
    verdict = what_happened(calls(*ranks), len(ranks))
    assert (verdict and (verdict.kind, verdict.ranks, verdict.call.number,
                         verdict.call.op)) == found


@pytest.mark.parametrize("change", [{"nbytes": 8}, {"shape": "(2, 3) float32"},
                                    {"op": "broadcast 1"}])
def test_operation_bytes_and_shape_must_be_equal(change):
    same = {"op": "broadcast 0", "nbytes": 4, "shape": "(3, 2) float32"}
    made = [Call(rank, 1, **{**same, **change} if rank == 2 else same)
            for rank in range(3)]
    assert what_happened(made, 3).ranks == (2,)


def test_the_place_of_a_call_may_differ():
    made = [Call(rank, 1, "broadcast 0", where=f"train.py:{rank}") for rank in (0, 1)]
    assert what_happened(made, 2) is None


def test_a_call_left_out_among_equal_ones_is_found_by_its_line():
    """Every call is an allreduce; rank 1 leaves out the second, of another line."""
    found = what_happened(
        [Call(rank, number, "allreduce", where=f"train.py:{line}", time=number)
         for rank, lines in enumerate(([1, 2, 3, 4], [1, 3, 4]))
         for number, line in enumerate(lines, 1)], 2)
    assert (found.ranks, found.call.number) == ((1,), 4)
    assert "rank 1 made call 3 last, allreduce at train.py:4\n" in found.text
    assert "left out call 2, allreduce at train.py:2" in found.text


def pushes(rank, *keys):
    """A push of a store for each of `keys`."""
    counts = {}
    for at, key in enumerate(keys):
        counts[key] = counts.get(key, 0) + 1
        yield Call(rank, counts[key], "push", meeting=f"push {key}", time=at)


def test_on_a_store_each_key_counts_its_own_calls():
    assert what_happened([*pushes(0, 0, 1), *pushes(1, 1, 0)], 2) is None
    found = what_happened([*pushes(0, 0, 1, 0, 1), *pushes(1, 0, 1, 0)], 2)
    assert (found.ranks, found.call.name) == ((1,), "push 1 number 2")


def test_of_two_workers_that_wait_for_each_other_the_one_off_its_pattern_is_named():
    found = what_happened([*pushes(0, 0, 1, 2, 0, 1), *pushes(1, 0, 1, 2, 0, 2)], 2)
    assert (found.ranks, found.call.name) == ((1,), "push 1 number 2")
    found = what_happened([*pushes(0, 0, 1, 2, 0, 2), *pushes(1, 0, 1, 2, 0, 1)], 2)
    assert (found.ranks, found.call.name) == ((0,), "push 1 number 2")
    assert what_happened([*pushes(0, 0), *pushes(1, 1)], 2).ranks == (0, 1)


def test_before_the_oldest_kept_call_of_a_rank_nothing_is_known():
    """Rank 1 has made many calls since, and kept those from 3 on."""
    made = [call for call in calls("aabb", "aabb")
            if (call.rank, call.number) not in ((1, 1), (1, 2))]
    lives = {0: Life(5, "x.py:1"), 1: Life(5, "x.py:1", oldest=3)}
    assert what_happened(made, 2).ranks == (1,)
    assert what_happened(made, 2, lives) is None


def test_a_rank_without_a_sign_of_life_in_a_call_is_named():
    now = time.time()
    lives = {0: Life(now, "train.py:3"), 1: Life(now - 9, "train.py:2")}
    found = what_happened(calls("ab", "ab"), 2, lives)
    assert (found.kind, found.ranks) == ("silent", (1,))
    assert "silent for 9 s; it stood at train.py:2" in found.text


def test_a_rank_that_has_ended_is_not_silent():
    """Its record is old, and a call of it may have failed."""
    now = time.time()
    made = [Call(rank, 1, "allreduce", state="failed", time=now) for rank in (0, 1)]
    lives = {0: Life(now - 5, "its end"), 1: Life(now, "train.py:9")}
    assert what_happened(made, 2, lives) is None


def test_a_worker_in_two_pushes_is_named_once():
    """A push returns at once."""
    made = [Call(rank, 1, "push", meeting=key) for key, ranks in
            (("push 0", (0, 2)), ("push 1", (1, 2))) for rank in ranks]
    assert what_happened(made, 3).ranks == (0, 1, 2)


def test_each_silent_rank_is_told_with_its_line():
    now = time.time()
    lives = {rank: Life(now - 9 * (rank > 0), f"train.py:{rank}") for rank in range(3)}
    found = what_happened(calls("ab", "ab", "ab"), 3, lives)
    assert found.ranks == (1, 2)
    first, *lines = found.text.splitlines()
    assert first.endswith("ranks 1 and 2 are silent")
    assert lines == [f"rank {i} has been silent for 9 s; it stood at train.py:{i}"
                     for i in (1, 2)]
