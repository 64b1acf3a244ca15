"""From the calls of all ranks follows which rank is missing in which call."""

from d2l_ext.clinic.flight_recorder import Call, what_happened


def calls(*ranks):
    """Calls of a ring; a text per rank has a letter for each, b for a broadcast."""
    ops = {"a": "allreduce", "b": "broadcast", "c": "barrier"}
    return [Call(rank, "call", number, ops[letter], time=number)
            for rank, letters in enumerate(ranks)
            for number, letter in enumerate(letters, 1)]


def verdict(*ranks):
    found = what_happened(calls(*ranks), len(ranks))
    return found and (found.kind, found.ranks, found.number)


def test_equal_calls_give_no_verdict():
    assert verdict("aba", "aba", "aba") is None


def test_a_rank_with_fewer_calls_is_missing_in_the_next():
    assert verdict("aba", "ab", "aba") == ("missing", (1,), 3)


def test_of_different_calls_those_of_the_minority_are_named():
    assert verdict("aba", "aab", "aba") == ("different", (1,), 2)
    assert verdict("ab", "ac") == ("different", (0, 1), 2)
