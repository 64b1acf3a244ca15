"""A new file in the folder of the allreduces is all that a new allreduce needs."""

import d2l_ext  # noqa: F401, I001
import pytest
from mxnet import np, npx

from d2l_ext.data_parallel import allreduce, costs, traffic
from d2l_ext.data_parallel.allreduce.algorithm import algorithms
from d2l_ext.devices import try_all_devices
from d2l_ext.scale import simulator, step
from trainkit import ways
from trainkit.flags import parser

npx.set_np()

FILE = """
from d2l_ext.data_parallel.allreduce.algorithm import Algorithm, Schedule
from d2l_ext.data_parallel.traffic import checked, rounds, send


@checked
def allreduce_doubling(data):
    for pairs in rounds(swaps(len(data))):
        arrived = [send(data[i], data[j].ctx) for i, j in pairs]
        for (_, j), x in zip(pairs, arrived):
            data[j] += x


def swaps(k):
    return [[(i, i ^ 2**b) for i in range(k)] for b in range(k.bit_length() - 1)]


def whole(k):
    return Schedule(1, [[(i, j, 0, 1) for i, j in row] for row in swaps(k)], [])


ALGORITHM = Algorithm("doubling", allreduce_doubling, whole)
"""


@pytest.fixture
def sixth(tmp_path, monkeypatch):
    (tmp_path / "doubling.py").write_text(FILE)
    monkeypatch.setattr(allreduce, "__path__", [*allreduce.__path__, str(tmp_path)])
    algorithms.cache_clear()
    yield algorithms()["doubling"]
    algorithms.cache_clear()


def test_a_file_in_the_folder_is_counted_timed_simulated_and_offered(sixth):
    devices = try_all_devices(4)
    data = [np.full(5, 10.0**i, ctx=d) for i, d in enumerate(devices)]
    with traffic.count(devices) as moved:
        sixth.reduce(data)
    assert [x.asnumpy().tolist() for x in data] == [[1111.0] * 5] * 4
    assert moved == costs.expected("doubling", 4, 20)
    assert moved == traffic.Traffic([40] * 4, [40] * 4, 2)

    link = step.Link(1.0, 0.25)  # an array of 20 bytes takes 6 s
    assert costs.seconds("doubling", 4, 20, link.alpha, link.beta) == 12
    ends = simulator.allreduce("doubling", [0, 0, 0, 3.0], 20, link)
    assert ends.tolist() == [15] * 4
    with pytest.raises(ValueError, match="choose from .*, doubling, "):
        costs.expected("pigeons", 4, 20)
    assert ways.allreduces()["doubling"] is sixth.reduce
    assert "doubling" in " ".join(parser().format_help().split())
