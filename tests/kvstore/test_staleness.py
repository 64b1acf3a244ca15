"""Tickets, and what they say about how old weights are."""

import d2l_ext  # noqa: F401, I001
import mxnet as mx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mxnet import npx

from d2l_ext.kvstore.staleness import Tickets, staleness

npx.set_np()


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60))
def test_others_updates_are_all_that_lie_between_two_of_mine(turns):
    """Of each turn, the tickets that were drawn since this worker's last one."""
    tickets, behind, since = [[] for _ in range(4)], [[] for _ in range(4)], {}
    for number, who in enumerate(turns, 1):
        tickets[who].append(number)
        if who in since:
            behind[who].append(since[who])
        since = {worker: n + (worker != who) for worker, n in since.items()}
        since[who] = 0
    assert staleness(tickets) == behind


@pytest.mark.parametrize("tickets", [[[1, 2], [2, 3]], [[1, 2], [4]], [[0, 1]]])
def test_a_ticket_that_is_missing_or_drawn_twice_is_an_error(tickets):
    with pytest.raises(ValueError, match="each once; . was drawn [02] times"):
        staleness(tickets)


@pytest.mark.parametrize("lr, rescale", [(0.1, 1.0), (0.3, 1 / 96), (2.0, 1 / 7)])
def test_the_optimizer_adds_one_to_the_counter_whatever_its_rates(lr, rescale):
    kv = mx.kv.create("local")
    optimizer = mx.optimizer.SGD(learning_rate=lr, rescale_grad=rescale)
    tickets = Tickets(kv, optimizer, key=3)
    kv.set_optimizer(optimizer)
    tickets.start()
    assert [tickets.take() for _ in range(200)] == list(range(1, 201))


def test_the_counter_leaves_the_rates_of_the_parameters_alone():
    kv = mx.kv.create("local")
    optimizer = mx.optimizer.SGD(learning_rate=0.5)
    optimizer.set_lr_mult({0: 0.25})
    Tickets(kv, optimizer, key=1)
    kv.set_optimizer(optimizer)
    weights = mx.np.zeros(2)
    kv.init(0, weights)
    kv.push(0, mx.np.ones(2))
    kv.pull(0, out=weights)
    assert weights.asnumpy().tolist() == [-0.125, -0.125]


@pytest.mark.parametrize(
    "optimizer, what",
    [
        (mx.optimizer.SGD(momentum=0.9), "momentum 0.9"),
        (mx.optimizer.Adam(), "Adam"),
        (mx.optimizer.SGD(wd=1e-4), "weight decay 0.0001"),
        (mx.optimizer.SGD(clip_gradient=0.5), "clip_gradient 0.5"),
        (mx.optimizer.SGD(lr_scheduler=mx.lr_scheduler.FactorScheduler(2)), "Factor"),
        (mx.optimizer.SGD(learning_rate=0.0), "learning rate 0.0"),
    ],
)
def test_an_optimizer_that_cannot_count_is_refused(optimizer, what):
    with pytest.raises(ValueError, match=what):
        Tickets(None, optimizer, key=0)
