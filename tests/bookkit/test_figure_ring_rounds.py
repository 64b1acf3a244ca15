"""The figure of ring attention shows what the library's devices have and compute."""

import numpy
import pytest
from figure_checks import State, labels, soup

import d2l_ext  # noqa: F401  (before mxnet)
from bookkit.figures import frame
from bookkit.figures.ring_rounds import ORDERS, data
from d2l_ext.devices import try_all_devices
from d2l_ext.tensor_parallel import ring_attention as ring

SCRIPT = frame.Script("ring_rounds", "rounds", data())
every = pytest.mark.parametrize(
    "order, k", [(order, k) for order in ORDERS for k in range(2, 9)]
)


def made(order, k):
    return State(SCRIPT, {"order": order, "devices": k})


@every
def test_keys_and_pairs_are_those_of_the_librarys_ring(order, k, monkeypatch):
    """Looked on, while it computes."""
    d, chunks, devices = made(order, k), ORDERS[order](k), try_all_devices(k)
    x = ring.split(numpy.ones((1, 2 * k, 1), "float32"), chunks, devices)
    at, met = [[list(own) for own in x]], []
    pass_on, attend = ring.pass_on, ring.attend

    def noted(messages, free):
        arriving = pass_on(messages, free)
        at.append([list(own) for own in arriving])
        return arriving

    def counted(state, q, k, v, diagonal=False):
        met.append(devices.index(q.ctx))
        return attend(state, q, k, v, diagonal)

    monkeypatch.setattr(ring, "pass_on", noted)
    monkeypatch.setattr(ring, "attend", counted)
    ring.forward(x, x, x, causal=True)
    assert at == d["at"]
    assert [met.count(i) for i in range(k)] == numpy.sum(d["pairs"], axis=0).tolist()


@every
def test_the_time_and_the_scores_of_the_drawing_are_the_pairs(order, k):
    d = made(order, k)
    pairs, most = d["pairs"], [max(row) for row in d["pairs"]]
    for now in range(k + 1):
        drawn = soup(d.drawing(now))
        scores = drawn.select("g.score")
        found = [g["class"].count("now") for g in scores]
        assert sum(found) == (sum(pairs[now - 1]) if now else 0)
        assert len(scores) == d["chunks"] * (d["chunks"] + 1) // 2
        bars = {
            (int(r["y"]) // 30, int(r["x"]) - 172): int(r["width"]) + 1
            for r in drawn.select("g.work:not(.score) > rect")
        }
        quarter = d["size"] * d.unit()
        assert bars == {
            (i, sum(most[:r]) * quarter): row[i] * quarter
            for r, row in enumerate(pairs) for i in range(k) if row[i]
        }


def test_both_orders_have_one_scale_of_time():
    for k in range(2, 9):
        length = {order: sum(made(order, k)["most"]) * made(order, k)["size"]
                  for order in ORDERS}
        assert made("zigzag", k).unit() == made("contiguous", k).unit()
        assert length["contiguous"] / length["zigzag"] == 4 * k / (2 * k + 1)


def test_the_words_say_who_waits_and_for_how_long():
    assert made("contiguous", 4).summary() == (
        "The contiguous order, k = 4 devices, 4 chunks, causal: round by round the "
        "busiest device computes 1, 1, 1, 1 pairs of chunks: 4. Of the devices' time, "
        "37.5% is waiting."
    )
    assert made("zigzag", 4).summary().endswith(
        "computes 3, 2, 2, 2 pairs of chunks, each a quarter of one in contiguous "
        "order: as long as 2.25 of these. Of the devices' time, 0.0% is waiting."
    )
    assert made("contiguous", 2).moment(2) == (
        "Round 2 of 2: device 0 has the keys of 1: waits; device 1 has the keys of 0: "
        "1 pair."
    )
    assert made("zigzag", 2).moment(0).endswith("own keys and values.")


def test_the_rows_say_the_queries_and_the_keys():
    words = labels(made("zigzag", 3).drawing(2))
    rows = [words[i : i + 2] for i, w in enumerate(words) if " and " in w][::2]
    assert rows == [["0 and 5", "2 and 3"], ["1 and 4", "0 and 5"],
                    ["2 and 3", "1 and 4"]]
