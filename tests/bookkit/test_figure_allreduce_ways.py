"""The four panels show what the library's allreduces send, for all k."""

import pytest
from figure_checks import State, assert_in_its_box, labels, soup

import d2l_ext  # noqa: F401  (before mxnet)
from bookkit.figures import allreduce_ways, frame
from d2l_ext.data_parallel import costs, traffic
from d2l_ext.data_parallel.allreduce.algorithm import algorithms
from d2l_ext.devices import try_all_devices

SCRIPT = frame.Script("allreduce_ways", "ways", allreduce_ways.data())
RUNS = {panel: algorithms()[name].reduce
        for panel, name in allreduce_ways.PANELS.items()}
COUNTS = range(2, 17)


def made(k):
    return State(SCRIPT, {"devices": k})


class Log(traffic.Traffic):
    """Messages, a list for each round: (from, to, numbers in it, their first)."""

    def __init__(self, k):
        self.rounds = []
        super().__init__([0] * k, [0] * k)

    def __setattr__(self, name, value):
        if name == "steps" and value:
            self.rounds.append([])
        super().__setattr__(name, value)


@pytest.mark.parametrize("k", COUNTS)
@pytest.mark.parametrize("name", RUNS)
def test_messages_and_the_sums_in_them_are_those_of_the_running_code(
    name, k, monkeypatch
):
    from mxnet import np

    add, devices, size = traffic._add, try_all_devices(k), 16 * k
    log = Log(k)

    def noted(index, moved, x, device):
        add(index, moved, x, device)
        (first,) = set(x.reshape(-1).asnumpy().tolist()) or [None]
        log.rounds[-1].append((index[x.ctx], index[device], x.size, first))

    monkeypatch.setattr(traffic, "_add", noted)
    index = {device: i for i, device in enumerate(devices)}
    monkeypatch.setattr(traffic, "_open", [(index, log)])
    RUNS[name]([np.full(size, 2**i, dtype="int32", ctx=d)
                for i, d in enumerate(devices)])

    d = made(k)
    way, shown = d["ways"][name], []
    has = SCRIPT.ask(d.choice, f"range(steps(d) + 1).map((n) => held(d, '{name}', n))")
    for now, row in enumerate(way["rounds"]):
        shown.append([])
        for start, to, first, many in row:
            (sums,) = {has[now][start][first + c] for c in range(many)}
            shown[-1].append((start, to, many * size // way["of"], sums))
    assert list(map(sorted, shown)) == list(map(sorted, log.rounds))
    assert {bits for own in has[-1] for bits in own} == {2**k - 1}
    known = costs.expected("naive" if name == "star" else name, k, d["nbytes"])
    assert d.sent(name, len(shown)) == known.sent and len(shown) == known.steps
    rounds = f"{known.steps} round{'s' * (known.steps > 1)}"
    assert f"{name} {rounds}, {max(known.sent):,} bytes" in d.summary()


@pytest.mark.parametrize("k", [2, 6, 16])
def test_the_panels_say_rounds_and_bytes_and_draw_each_message(k):
    d, ways = made(k), made(k)["ways"]
    for now in {*range(7), k - 1, k, 2 * k - 2}:
        drawing = d.drawing(now)
        rows = [ways[name]["rounds"][now - 1 : now] for name in RUNS if now]
        sent = sum(len(row) for of_one in rows for row in of_one)
        assert len(soup(drawing).find_all("path")) == sent
        words = labels(drawing)
        for name in RUNS:
            rounds = len(ways[name]["rounds"])
            done = "done: " if now >= rounds else ""
            assert f"{done}round {min(now, rounds)} of {rounds}" in words
            most = [max(d.sent(name, n)) for n in (now, rounds)]
            assert "busiest: {:,.0f} of {:,.0f} B sent".format(*most) in words


def test_columns_are_filled_as_far_as_the_sums_have_come():
    d = made(4)
    full = [r for r in soup(d.drawing(6)).select(".swatch")]
    assert {int(r["width"]) for r in full} == {32}
    begun = [int(r["width"]) for r in soup(d.drawing(0)).select(".swatch")]
    assert set(begun) == {8} and len(begun) == 4 * (1 + 1 + 4 + 4)


def test_the_words_say_who_sends_what():
    for words in ("Round 7 of 10", "star 0 → 2", "tree was done after 6",
                  "ring 5 → 0 and 5 more", "halving was done after 6"):
        assert words in made(6).moment(7)


@pytest.mark.parametrize("k", [3, 16])
def test_on_a_phone_the_panels_stand_below_one_another(k):
    for now in (0, 1, k, 2 * k - 2):
        found = SCRIPT.ask({"devices": k}, f"view({{...d, narrow: true}}, {now})")
        assert found["box"].split()[2] == "350"
        assert_in_its_box(found, (k, now))
