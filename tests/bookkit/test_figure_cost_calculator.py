"""The cost calculator computes in the page what `cost_model.step` computes here."""

import json
from math import exp, log, log10
from pathlib import Path
from random import Random

import pytest
from figure_checks import (
    assert_framed,
    assert_same_as_python,
    browse,
    seen_in_python,
    soup,
)

from bookkit import figures
from bookkit.figures import cost_calculator_svg as twin
from bookkit.figures.cost_calculator import CONTROLS, DEVICES, NUMBERS, data, figure
from bookkit.figures.cost_calculator_state import OWN, SCALING, SENT
from d2l_ext.scale import exchange, step
from d2l_ext.scale.link import Link, network
from d2l_ext.scale.sizes import LENET, LSTM, VGG11, Model

GPU, LINK = step.Device(flops=5e12, overhead=1e-3), network(10, latency=20e-6)
DATA, NAME = data(GPU.flops), "cost-calculator"
RESULTS = ("seconds", "compute", "moved", "efficiency", "speed_up", "per_second")
#: What the figure shows at first.
FIRST = {
    "parameters": VGG11.parameters, "arrays": 22, "example": 206.016, "overhead": 1,
    "batch": 1024, "devices": 16, "bandwidth": 10, "latency": 20, "servers": 4,
    "packing": 1, "model": "VGG-11", "scaling": SCALING[0], "way": "ring",
    "sent": SENT[0], "overlap": "yes", "compression": "no",
}  # fmt: skip


def settings(n):
    """`n` choices, spread over all that can be chosen, evenly in logarithms."""
    random, found = Random(9), []
    for _ in range(n):
        choice = {"model": OWN, "scaling": random.choice(SCALING),
                  "way": random.choice(exchange.WAYS), "sent": random.choice(SENT),
                  "overlap": random.choice(("yes", "no")),
                  "compression": random.choice(("yes", "no"))}  # fmt: skip
        for number in NUMBERS:
            low, high = log(number.least or number.low), log(number.high)
            value = exp(random.uniform(low, high))
            choice[number.role] = round(value) if number.whole else value
        found.append(choice)
    return found


GRID = settings(240)


def from_the_model(choice, devices, way):
    """What `cost_model` says of a choice: the `RESULTS`, in their order."""
    model = Model("", choice["parameters"], choice["arrays"], choice["example"] * 1e-6)
    device = step.Device(1.0, choice["overhead"] * 1e-3)
    link = network(choice["bandwidth"], choice["latency"] * 1e-6)
    plan = step.Plan(
        way, choice["servers"],
        compressed=way == "servers" and choice["compression"] == "yes",
        packing=choice["packing"] * 1e-9, overlap=choice["overlap"] == "yes",
        flat=choice["sent"] == SENT[0],
    )  # fmt: skip
    weak = choice["scaling"] == SCALING[0]
    batch = choice["batch"] * (devices if weak else 1)
    seconds = step.seconds(model, batch, devices, device, link, plan)
    efficiency = (step.weak if weak else step.strong)(
        model, choice["batch"], devices, device, link, plan
    )
    moved = step.communication(model, devices, link, plan) if devices > 1 else 0
    compute = device.seconds(model, batch / devices)
    return [seconds, compute, moved, efficiency, devices * efficiency, batch / seconds]


def close(found, expected):
    return found == pytest.approx(expected, rel=1e-9, abs=0)


# Without a browser.


def test_the_settings_reach_everywhere():
    for role in ("scaling", "way", "sent", "overlap", "compression"):
        assert len({choice[role] for choice in GRID}) in (2, 4)
    for number in NUMBERS:
        values = sorted(choice[number.role] for choice in GRID)
        assert number.low <= values[0] and values[-1] <= number.high
    parts = [from_the_model(c, c["devices"], c["way"]) for c in GRID]
    bound = [moved > compute for _, compute, moved, *_ in parts]
    assert min(sum(bound), len(bound) - sum(bound)) > 40  # by exchange, by computing


def test_the_state_is_what_the_cost_model_says():
    for choice in GRID:
        d = twin.state(DATA, choice)
        own = from_the_model(choice, choice["devices"], choice["way"])
        assert close([d[name] for name in RESULTS], own)
        for way, line in zip(exchange.WAYS, d["curves"]):
            assert close(line, [from_the_model(choice, k, way)[3] for k in DEVICES])
        assert 0 <= d["waiting"] < 1 and d["hidden"] <= d["moved"]
        assert close(d["compute"] + d["moved"] - d["hidden"], d["seconds"])


def test_the_first_choice_is_the_chapters_and_gives_its_numbers():
    d = twin.state(DATA, FIRST)
    plan = step.Plan("ring", overlap=True, flat=True)
    expected = step.weak(VGG11, 1024, 16, GPU, LINK, plan)
    assert d["efficiency"] == pytest.approx(expected, rel=1e-5)  # µs with six digits
    assert twin.decimal(d["efficiency"]) == "0.883"  # as in the chapter's table
    html = figure(VGG11, GPU, LINK).data
    assert_framed(html, FIRST, CONTROLS + NUMBERS, twin, DATA, NAME)
    for tag in soup(html).find_all("input", {"data-role": True}):
        assert float(tag["value"]) == FIRST[tag["data-role"]]
        slider = soup(html).find("input", {"data-of": tag["data-role"]})
        at = int(slider["data-base"]) ** float(slider["value"])
        assert at == pytest.approx(float(tag["value"]), rel=2e-3)
        assert float(slider["min"]) <= float(slider["value"]) <= float(slider["max"])


def test_every_number_has_its_unit_and_its_limits():
    units = {n.role: n.unit for n in NUMBERS}
    assert {role for role, unit in units.items() if not unit} == {
        "parameters", "arrays", "devices", "servers",
    }  # fmt: skip
    for choice in ({"bandwidth": -5}, {"devices": 1e9}, {"batch": 3.7}):
        d = twin.state(DATA, {**FIRST, **choice})
        (role,) = choice
        assert d[role] == {"bandwidth": 0.01, "devices": 4096, "batch": 3}[role]


@pytest.mark.parametrize(
    "x, shown",
    [(0, "0"), (0.001234, "0.00123"), (0.9999, "1.000"), (1, "1.00"), (12.345, "12.3"),
     (123.4, "123"), (1234.5, "1,235"), (28144010, "28,144,010")],
)  # fmt: skip
def test_numbers_have_three_digits(x, shown):
    assert twin.digits(x) == shown


def test_times_have_the_unit_that_suits_them():
    shown = [twin.time(seconds) for seconds in (2.5, 0.25, 2.5e-5)]
    assert shown == ["2.50 s", "250 ms", "25.0 µs"]
    assert twin.percent(0.125) == "13%" and twin.decimal(0.0004) == "0.000"


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((Model("mine", 10**6, 2, 1e9), GPU, LINK), "unknown model 'mine': LeNet"),
        ((VGG11, GPU, LINK, 1024, 5000), "devices from 1 to 4096, not 5000"),
        ((VGG11, GPU, LINK, 1024, 8, "star"), "unknown way 'star': naive, tree"),
        ((VGG11, GPU, Link(1.0, 1e-9)), "latency from 0 to 100000, not 1000000"),
    ],
)
def test_what_the_figure_cannot_show_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        figure(*arguments)


# In a browser.

#: Calls the script's own functions, away from any page, for numbers with all digits.
RAW = """
(function () {{ {script}
const data = {data}, names = {names};
seen.push({grid}.map((choice) => {{
  const d = state(data, choice);
  return [names.map((name) => d[name]), d.curves];
}}));
const d = state(data, {first});
seen.push(Array.from({{ length: 4096 }}, (_, k) => communication(d, "tree", k + 1)));
}})();
"""
#: Sets the slider of a number.
SLIDE = """
function slide(role, value) {
  const slider = root.querySelector(`[data-of=${role}]`);
  slider.value = value;
  slider.dispatchEvent(new Event("input", {bubbles: true}));
}
function written(role) { seen.push(find(role).value); }
function slid(role) { seen.push(root.querySelector(`[data-of=${role}]`).value); }
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """All that the tests below want to know, from one start of the browser."""
    folder = Path(figures.__file__).parent
    files = folder / "frame.js", folder / "cost_calculator.js"
    script = "".join(file.read_text("utf-8") for file in files)
    raw = RAW.format(script=script, data=json.dumps(DATA), names=json.dumps(RESULTS),
                     grid=json.dumps(GRID), first=json.dumps(FIRST))  # fmt: skip
    few = "".join(
        "".join(f"set({json.dumps(role)}, {json.dumps(choice[role])});"
                for role in [*choice][1:] + ["model"]) + "note(true);"
        for choice in GRID[::24]
    )  # fmt: skip
    steps = f"""note(true); set("bandwidth", -5); note(true); set("bandwidth", "");
        note(true); set("bandwidth", 10); set("model", "LeNet"); note(true);
        slide("devices", 5); slide("bandwidth", 2); note(true); written("model");
        slide("example", 3); written("model"); written("example");
        slid("parameters"); set("latency", 1000); slid("latency"); set("latency", 20);
        set("model", "large LSTM"); note(true); set("latency", 0); note(true); {few}"""
    return browse(figure(VGG11, GPU, LINK).data, raw + SLIDE + steps,
                  tmp_path_factory.mktemp("browser"))  # fmt: skip


def test_in_a_browser_all_numbers_equal_the_cost_models(seen):
    assert len(seen[0]) == len(GRID) >= 200
    for (numbers, curves), choice in zip(seen[0], GRID):
        own = from_the_model(choice, choice["devices"], choice["way"])
        assert close(numbers, own), choice
        for way, line in zip(exchange.WAYS, curves):
            expected = [from_the_model(choice, k, way)[3] for k in DEVICES]
            assert close(line, expected), (way, choice)


def test_in_a_browser_a_tree_has_the_right_rounds_for_every_number_of_devices(seen):
    expected = [exchange.seconds("tree", k, VGG11.nbytes, LINK) for k in range(1, 4097)]
    assert close(seen[1], expected)


def test_in_a_browser_models_numbers_and_sliders_move_together(seen):
    noted, written = seen[2:7] + seen[12:14], seen[7:12]
    parameters, latency = "5.1", "3"  # logarithms, in steps of the sliders
    assert written == ["LeNet", OWN, "1000", parameters, latency]
    assert log10(LENET.parameters) == pytest.approx(float(parameters), abs=0.05)
    lenet = {"model": "LeNet", **DATA["models"]["LeNet"]}
    assert lenet["example"] == pytest.approx(1e6 * LENET.flops / 5e12, rel=1e-5)
    assert (lenet["parameters"], lenet["arrays"]) == (LENET.parameters, LENET.arrays)
    moved = {"devices": 32, "bandwidth": 100}
    lstm = {"model": LSTM.name, **DATA["models"][LSTM.name]}
    choices = [
        FIRST, {**FIRST, "bandwidth": -5}, {**FIRST, "bandwidth": 0.01},
        {**FIRST, **lenet}, {**FIRST, **lenet, **moved}, {**FIRST, **moved, **lstm},
        {**FIRST, **moved, **lstm, "latency": 0},
    ]  # fmt: skip
    assert_same_as_python(noted, choices, twin, DATA, NAME)


def test_in_a_browser_the_figure_shows_the_same_as_python(seen):
    assert_same_as_python(seen[14:], GRID[::24], twin, DATA, NAME)
    assert "speed-up" in twin.moment(seen_in_python(FIRST, twin, DATA, NAME)[0], 0)
