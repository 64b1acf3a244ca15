"""The figure of the ring shows what `allreduce_ring` does, round by round."""

import pytest
from figure_checks import State, labels, soup

import d2l_ext  # noqa: F401  (before mxnet)
from bookkit.figures import frame
from bookkit.figures.ring_allreduce import SIZES, data
from d2l_ext import palette
from d2l_ext.data_parallel import costs, traffic
from d2l_ext.data_parallel.allreduce import ring_of_chunks
from d2l_ext.devices import try_all_devices

SCRIPT = frame.Script("ring_allreduce", "ring", data())
COUNTS = range(2, 9)


def made(k, size="840"):
    return State(SCRIPT, {"devices": k, "size": size})


def all_held(d):
    """After every round, on every device, of every chunk: whose numbers are in it."""
    every = """range(steps(d) + 1).map((now) => range(d.k).map((i) =>
        range(d.k).map((c) => held(d, i, c, now))))"""
    return SCRIPT.ask(d.choice, every)


def run(k, size, monkeypatch):
    """Run the library's ring, device i holding 2^i, and look on after every round.

    Returns the arrays' sum as they arrive, (round, device) -> number, the numbers that
    each device's array holds after every round, and the bytes sent by then.
    """
    from mxnet import np

    devices = try_all_devices(k)
    arrays = [np.full(size, 2**i, dtype="int32", ctx=d) for i, d in enumerate(devices)]
    arriving, stored, moved_by, looked = {}, [], [], ring_of_chunks.rounds
    pass_on = ring_of_chunks.pass_on

    def rounds(schedule):
        for row in looked(schedule):
            stored.append([x.asnumpy().tolist() for x in arrays])
            moved_by.append(list(moved.sent))
            yield row

    def noted(messages, chunks):
        for i, message in enumerate(messages):
            arriving[len(stored) - 1, i] = int(message[0])
        return pass_on(messages, chunks)

    monkeypatch.setattr(ring_of_chunks, "rounds", rounds)
    monkeypatch.setattr(ring_of_chunks, "pass_on", noted)
    with traffic.count(devices) as moved:
        ring_of_chunks.allreduce_ring(arrays)
    stored.append([x.asnumpy().tolist() for x in arrays])
    moved_by.append(list(moved.sent))
    return arriving, stored, moved_by


def members(number):
    """13 -> {0, 2, 3}: whose powers of two are in a sum."""
    return {bit for bit in range(8) if number >> bit & 1}


@pytest.mark.parametrize("size", [840, 10])
@pytest.mark.parametrize("k", COUNTS)
def test_every_chunk_of_the_figure_holds_what_the_librarys_does(k, size, monkeypatch):
    d, edges = made(k, str(size)), traffic.cuts(size, k)
    ring, held = d["ring"], all_held(d)
    arriving, stored, moved_by = run(k, size, monkeypatch)
    assert len(stored) - 1 == d.steps() == 2 * (k - 1)
    for now, arrays in enumerate(stored):
        assert [d.sent(i, now) for i in range(k)] == moved_by[now]
        for i, array in enumerate(arrays):
            for c in range(k):
                partial = 0 < now < k and ring[now - 1][i] == c
                # The last partial sum is written by the allgather's first act.
                found = array[edges[c]]
                if partial and (now, i) in arriving:
                    found = arriving[now, i]
                assert set(held[now][i][c]) == members(found), (now, i, c)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("k", COUNTS)
def test_the_bytes_are_those_of_the_closed_form(k, size):
    d, nbytes = made(k, size), int(size) * 4
    expected = costs.expected("ring", k, nbytes)
    assert d["sent"] == expected.sent == [d.sent(i, d.steps()) for i in range(k)]
    assert sum(d["chunks"]) == nbytes and len(d["chunks"]) == k
    assert sum(d["sent"]) == 2 * (k - 1) * nbytes  # on average, 2(k - 1)/k of an array
    assert d["naive"] == costs.expected("naive", k, nbytes).sent
    assert f"= {2 * (k - 1)}/{k} · N = " in d.summary()
    own = {f"{n:,}" for n in expected.sent}
    said = own.pop() if len(own) == 1 else ", ".join(f"{n:,}" for n in expected.sent)
    assert f" {said}" in d.summary() and f"{max(d['naive']):,}" in d.summary()


def test_the_moment_says_who_adds_what_and_what_is_held():
    d = made(3)
    assert d.moment(0) == "Round 0 of 4: every device holds its own numbers only."
    assert d.moment(1) == (
        "Round 1 of 4, reduce-scatter: device 0 adds chunk 2 from device 2, device 1 "
        "adds chunk 0 from device 0, device 2 adds chunk 1 from device 1. What has "
        "arrived is the sum of 2 devices."
    )
    assert d.moment(2).endswith(
        "Each device holds one chunk of the sum: "
        "device 0 chunk 1, device 1 chunk 2, device 2 chunk 0."
    )
    assert "allgather: device 0 copies chunk 0 from device 2" in d.moment(3)
    assert d.moment(3).endswith("Each device holds 2 of 3 chunks of the sum.")
    assert d.moment(4).endswith("Every device holds the whole sum.")


@pytest.mark.parametrize("k", COUNTS)
def test_every_round_has_a_message_to_each_device_and_a_stripe_for_each_share(k):
    d = made(k)
    for now, held in enumerate(all_held(d)):
        drawn = soup(d.drawing(now))
        assert len(drawn.find_all("path", class_="arrow")) == (k if now else 0)
        stripes = [rect["fill"] for rect in drawn.select(".chunk rect.swatch")]
        every = (j for row in held for members in row for j in sorted(members))
        assert stripes == [palette.colour(j) for j in every]
        right = max(int(r["x"]) + int(r["width"]) for r in drawn.find_all("rect"))
        assert right <= 580  # the words at the right need the rest of 700


@pytest.mark.parametrize("k, size", [(4, "840"), (8, "10")])
def test_the_labels_say_the_chunks_the_sums_and_the_bytes(k, size):
    d, edges = made(k, size), traffic.cuts(int(size), k)
    now, total = k - 1, costs.expected("ring", k, int(size) * 4).sent
    heads = [words for c in range(k)
             for words in (f"chunk {c}", f"{4 * (edges[c + 1] - edges[c])} B")]
    rows = []
    for i in range(k):
        members = [len(d.held(i, c, now)) for c in range(k)]
        rows += [f"device {i}", *("sum" if n == k else f"{n}/{k}" for n in members)]
        rows += [f"{d.sent(i, now):,}", f"of {total[i]:,}"]
    assert labels(d.drawing(now)) == [*heads, "bytes sent", *rows]
