"""The cost calculator computes in its script what `d2l_ext.scale.step` does here."""

import dataclasses
from functools import cache
from math import exp, floor, gcd, log
from random import Random

import pytest
from figure_checks import COST, MACHINES, State, labels, soup

from bookkit.figures import frame
from bookkit.figures.cost_calculator import (
    DEVICES,
    NUMBERS,
    OWN,
    SCALING,
    SENT,
    WAYS,
    data,
    figure,
)
from d2l_ext.data_parallel.allreduce.algorithm import Algorithm
from d2l_ext.meshes import decoder
from d2l_ext.scale import step
from d2l_ext.scale.step import VGG11, Model, network
from d2l_ext.tensor_parallel.transformer import Decoder

_, GPU, LINK = MACHINES
SCRIPT = frame.Script("cost_calculator", "cost", data(GPU.flops))
RESULTS = ("seconds", "compute", "moved", "efficiency", "speed_up", "per_second")


def settings(n):
    """`n` choices, spread over all that can be chosen, evenly in logarithms."""
    random, found = Random(9), []
    for _ in range(n):
        choice = {"model": OWN, "scaling": random.choice(SCALING),
                  "way": random.choice(WAYS), "sent": random.choice(SENT),
                  "compression": random.choice(("yes", "no"))}
        for number in NUMBERS:
            low, high = log(number.least or number.low), log(number.high)
            value = exp(random.uniform(low, high))
            choice[number.role] = round(value) if number.whole else value
        found.append(choice)
    return found


GRID = settings(240)


@pytest.fixture(autouse=True, scope="module")
def each_schedule_is_walked_once():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Algorithm, "rounds", cache(Algorithm.rounds))
        yield


def from_the_model(choice, devices, way):
    """What `d2l_ext.scale` says of a choice: the `RESULTS`, in their order."""
    model = Model("", choice["parameters"], choice["arrays"], choice["example"] * 1e-6)
    device = step.Device(1.0, choice["overhead"] * 1e-3)
    link = network(choice["bandwidth"], choice["latency"] * 1e-6)
    plan = step.StepPlan(
        way, choice["servers"],
        compressed=way == "servers" and choice["compression"] == "yes",
        packing=choice["packing"] * 1e-9, overlap=choice["sent"] == SENT[0],
        flat=choice["sent"] == SENT[2],
    )
    weak = choice["scaling"] == SCALING[0]
    batch = choice["batch"] * (devices if weak else 1)
    inner = network(choice["inside"], choice["nearby"] * 1e-6)
    host = choice["per_host"]
    host = devices if devices <= host else gcd(host, devices)
    compute = device.seconds(model, batch / devices)
    if way == "mesh":
        sizes, sent, rounds = on_mesh(choice, devices, batch)
        over = {"tensor": sizes["tensor"], "data": devices // sizes["pipeline"],
                "pipeline": devices}
        links = {a: link if host % span else inner for a, span in over.items()}
        seconds = step.mesh_seconds(compute, sizes, choice["chunks"], sent, rounds,
                                    links)
        one = device.seconds(model, choice["batch"])
        efficiency = one / seconds / (1 if weak else devices)
        return [seconds, compute, seconds - compute, efficiency, devices * efficiency,
                batch / seconds]
    if way == "hierarchy":
        plan = dataclasses.replace(plan, way=way, per_host=host, inner=inner)
    seconds = step.seconds(model, batch, devices, device, link, plan)
    efficiency = (step.weak if weak else step.strong)(
        model, choice["batch"], devices, device, link, plan
    )
    moved = step.communication(model, devices, link, plan) if devices > 1 else 0
    return [seconds, compute, moved, efficiency, devices * efficiency, batch / seconds]


def on_mesh(choice, devices, batch):
    """Lengths of a mesh by axis, and of a stage in the middle bytes and messages."""
    t = gcd(choice["tensor"], devices)
    p = gcd(choice["pipeline"], devices // t)
    d, m = devices // (p * t), choice["chunks"]
    n = 4 * batch / d * choice["border"]
    sums = choice["sums"] / p
    sent = {"pipeline": 2 * n * (p > 1), "tensor": sums * 2 * (t - 1) / t * n,
            "data": 2 * (d - 1) / d * 4 * choice["parameters"] / (p * t)}
    rounds = {"pipeline": 2 * m * (p > 1), "data": 2 * (d - 1),
              "tensor": m * sums * 2 * (t - 1)}
    return {"pipeline": p, "data": d, "tensor": t}, sent, rounds


@pytest.mark.parametrize("t, d, m", [(1, 2, 4), (2, 1, 2), (4, 2, 1), (2, 4, 4)])
def test_the_meshs_bytes_are_those_of_a_decoders_stage_in_the_middle(t, d, m):
    net, p = Decoder(vocab=64, width=32, heads=8, layers=8, tied=False), 4
    sizes, tokens = {"pipeline": p, "data": d, "tensor": t}, 8 * 16
    choice = {"tensor": t, "pipeline": p, "chunks": m, "border": net.width,
              "sums": 4 * net.layers, "parameters": 0}
    found, sent, rounds = on_mesh(choice, p * d * t, tokens)
    known = decoder.expected(net, sizes, (8, 16), m)
    assert found == sizes
    middle = d * t  # the first device of the second stage
    assert sent["pipeline"] == known["pipeline"][middle]
    assert sent["tensor"] == known["tensor"][middle]
    most = decoder.sequential_messages(net, sizes, m)
    assert rounds["pipeline"] == most["pipeline"] and rounds["data"] == most["data"]
    ends = m * 3 * (t - 1)  # of the last stage: one sum more, and the loss
    assert rounds["tensor"] + ends == most["tensor"]


def close(found, expected):
    return found == pytest.approx(expected, rel=1e-9, abs=0)


def test_the_state_is_what_the_cost_model_says():
    for choice in GRID:
        d = SCRIPT.ask(choice, "d")
        own = from_the_model(choice, choice["devices"], choice["way"])
        assert close([d[name] for name in RESULTS], own)
        for way, line in zip(WAYS, d["curves"]):
            assert close(line, [from_the_model(choice, k, way)[3] for k in DEVICES])
        assert 0 <= d["waiting"] < 1 and d["hidden"] <= max(0, d["moved"])
        assert close(d["compute"] + d["moved"] - d["hidden"], d["seconds"])


@pytest.mark.parametrize("way", ["tree", "halving"])
def test_the_rounds_are_right_for_any_number_of_devices(way):
    edges = {2**n + i for n in range(8, 12) for i in (-1, 0, 1)}
    counts = sorted({*range(1, 257), *edges, 4095, 4096})
    every = f"{counts}.map((k) => communication(d, '{way}', k))"
    expected = [step.exchange_seconds(way, k, VGG11.nbytes, LINK, arrays=22)
                for k in counts]
    assert close(SCRIPT.ask(COST, every), expected)


def test_the_first_choice_is_the_chapters_and_gives_its_numbers():
    plan = step.StepPlan("ring", overlap=True)
    expected = step.weak(VGG11, 1024, 16, GPU, LINK, plan)
    found = State(SCRIPT, COST)["efficiency"]
    assert found == pytest.approx(expected, rel=1e-5)  # µs with six digits
    assert "0.816" in labels(SCRIPT.view(COST)["drawing"])  # as in the chapter's table
    page = soup(figure(*MACHINES).data)
    said = page.find("p", {"data-role": "moment"}).string
    for words in ("260 ms: computing 212 ms, exchange 182 ms", "134 ms behind",
                  "18% of the step is waiting", "Efficiency 0.816, speed-up 13.1",
                  "naive 2.79 s, tree 802 ms"):
        assert words in said
    for tag in page.find_all("input", {"data-role": True}):
        slider = page.find("input", {"data-of": tag["data-role"]})
        at = int(slider["data-base"]) ** float(slider["value"])
        assert at == pytest.approx(float(tag["value"]), rel=2e-3)
        assert float(slider["min"]) <= float(slider["value"]) <= float(slider["max"])


def test_the_summary_and_the_labels_say_the_choice_and_the_curve():
    choice = {**COST, "way": "servers", "devices": 64}
    d, plan = State(SCRIPT, choice), step.StepPlan("servers", 4, overlap=True)
    curve = [step.weak(VGG11, 1024, k, GPU, LINK, plan) for k in DEVICES]
    assert d.summary() == (
        "VGG-11, 28,144,010 parameters or 113 MB of gradients, 1,024 examples for each "
        "device, 10.0 Gbit/s, 20.0 µs. Exchange: 4 servers. Efficiency on 1, 16, 256, "
        f"4,096 devices: {', '.join(f'{e:.3f}' for e in curve[::4])}."
    )
    seconds, waiting, efficiency, speed_up, per_second = SCRIPT.ask(
        choice, "[time(d.seconds), percent(d.waiting), decimal(d.efficiency), "
        "digits(d.speed_up), digits(d.per_second)]",
    )
    assert [words for words in labels(d.drawing(0)) if words] == [
        "computing", "exchange", seconds, seconds, "step", waiting,
        "waiting for the exchange", efficiency, "efficiency", speed_up, "speed-up",
        per_second, "examples per second", "1", "0.5", "0", "efficiency",
        *(f"{k:,}" for k in DEVICES[::2]), "devices",
        "naive", "tree", "ring", "halving", "4 servers", "hierarchy", "mesh",
        efficiency,
    ]


def test_the_lanes_and_the_curves_are_as_long_and_as_high_as_the_numbers():
    for choice in [COST, *GRID[:40]]:
        d, drawing = SCRIPT.ask(choice, "d"), soup(SCRIPT.view(choice)["drawing"])
        bars = [(int(bar.rect["x"]) - 90, int(bar.rect["width"]))
                for bar in drawing.find_all("g", class_="work")]
        ends = [(begin / d["seconds"], (begin + long) / d["seconds"]) for begin, long in
                ((0, d["compute"]), (d["compute"] - d["hidden"], d["moved"]))]
        expected = [[floor(560 * x + 0.5) for x in bar] for bar in ends]
        assert bars == [(x, end - x) for x, end in expected if end > x]
        curves = [path["d"][1:].split("L") for path in drawing.find_all("path")
                  if "L" in path["d"]]
        for points, efficiencies in zip(curves, d["curves"]):
            xs, ys = zip(*(map(int, point.split()) for point in points))
            assert list(xs) == [90 + 40 * n for n in range(len(DEVICES))]
            heights = [290 - 150 * e for e in efficiencies]
            assert list(ys) == pytest.approx(heights, abs=0.51)
        assert len(curves) == len(WAYS)


@pytest.mark.parametrize("role, value, shown", [
    ("bandwidth", -5, 0.01), ("devices", 1e9, 4096), ("batch", 3.7, 3),
])
def test_a_number_is_brought_within_its_limits(role, value, shown):
    assert State(SCRIPT, {**COST, role: value})[role] == shown


@pytest.mark.parametrize(
    "call, shown",
    [("digits(0)", "0"), ("digits(0.001234)", "0.00123"), ("digits(0.9999)", "1.000"),
     ("digits(1)", "1.00"), ("digits(12.345)", "12.3"), ("digits(123.4)", "123"),
     ("digits(1234.5)", "1,235"), ("digits(28144010)", "28,144,010"),
     ("time(2.5)", "2.50 s"), ("time(0.25)", "250 ms"), ("time(2.5e-5)", "25.0 µs"),
     ("percent(0.125)", "13%"), ("decimal(0.0004)", "0.000")],
)
def test_numbers_have_three_digits_and_times_the_unit_that_suits_them(call, shown):
    assert SCRIPT.ask(COST, call) == shown


def test_the_words_of_a_mesh_and_of_hosts_say_what_fits_the_devices():
    """Counts that do not divide the devices give way to their common divisors."""
    mesh = {**COST, "way": "mesh", "devices": 48, "tensor": 4, "pipeline": 9}
    assert "mesh, data 4 × tensor 4 × pipeline 3, 8 micro-batches, hosts of 8" in (
        SCRIPT.view(mesh)["summary"]
    )
    assert " with the bubble, of which 0 µs " in SCRIPT.view(mesh)["moment"]
    hosts = {**COST, "way": "hierarchy", "devices": 20}
    assert "hierarchy, hosts of 4 with 3,600 Gbit/s inside" in (
        SCRIPT.view(hosts)["summary"]
    )
