"""What must hold for every interactive figure, without scripts and in a browser."""

import re
from functools import cache
from math import ceil

import pytest
from figure_checks import (
    COST,
    MACHINES,
    assert_in_its_box,
    assert_shown,
    choosing,
    soup,
)
from html_check import OUTSIDE_CSS, is_outside, loaded

import d2l_ext  # noqa: F401  (before mxnet)
from bookkit.figures import (
    allreduce_ways,
    cost_calculator,
    data_parallel_step,
    device_mesh,
    fits,
    frame,
    one_setting,
    pipeline_schedule,
    ring_allreduce,
    ring_rounds,
    server_traffic,
    shard_memory,
)
from d2l_ext.scale.step import LSTM, MODELS, VGG11, Link, Model

_, GPU, LINK = MACHINES
JOB = {"mode": "dist_sync", "workers": 3, "servers": 2, "keys": 2, "slow": 3}
END = ceil(max(s[3] for run in one_setting.data()["spans"].values() for s in run))
#: kind: its module, what makes it, what it shows at first, other choices.
FIGURES = {
    "allreduce_ways": (
        allreduce_ways, (), {"devices": 6, "clock": 10},
        [{"devices": k, "clock": now} for k in (2, 3, 8, 13, 16)
         for now in (0, 1, k - 1, 2 * k - 2)],
    ),
    "cost_calculator": (
        cost_calculator, MACHINES, COST,
        [{**COST, **other, "model": "own numbers"} for other in (
            {"way": "naive", "latency": 0}, {"way": "servers", "compression": "yes"},
            {"scaling": "all devices", "devices": 4096}, {"parameters": 1e12},
            {"sent": "array by array, after it", "way": "tree"},
            {"sent": "in one array, after it", "way": "halving"},
            {"way": "hierarchy", "devices": 20},
            {"way": "mesh", "tensor": 4, "pipeline": 2, "devices": 48})],
    ),
    "data_parallel_step": (
        data_parallel_step, (), {"devices": 2, "batch": 256, "clock": 7},
        [{"devices": k, "batch": 100, "clock": now} for k in (1, 3, 4)
         for now in range(8)],
    ),
    "fits": (
        fits, (), fits.FIRST, [fits.chosen(**other) for other in (
            {}, {"model": "70 B"},
            {"model": "70 B", "devices": 512, "tensor": 8, "pipeline": 4, "chunks": 16,
             "recompute": "yes"},
            {"machine": "laptops, 1 Gbit/s", "model": "1 B", "zero": "none",
             "devices": 3},
            {"devices": 1, "numbers": "32 bits, SGD", "overlap": "no", "reserve": 0})],
    ),
    "one_setting": (
        one_setting, (), {"clock": END}, [{"clock": now} for now in (0, 1, END // 2)],
    ),
    "device_mesh": (
        device_mesh, (), {"mesh": "2 × 2 × 2", "device": 5, "clock": 0},
        [{"mesh": mesh, "device": i, "clock": now} for mesh in device_mesh.MESHES
         for i, now in ((0, 0), (7, 11), (3, 4))],
    ),
    "pipeline_schedule": (
        pipeline_schedule, (),
        {"schedule": "GPipe", "stages": 4, "chunks": 8, "clock": 22},
        [{"schedule": name, "stages": p, "chunks": m, "clock": m + 1}
         for name in pipeline_schedule.SCHEDULES for p in (1, 3, 8) for m in (1, 16)],
    ),
    "ring_allreduce": (
        ring_allreduce, (), {"devices": 4, "size": "840", "clock": 3},
        [{"devices": k, "size": size, "clock": now} for k in (2, 5, 8)
         for size in ring_allreduce.SIZES for now in (0, k - 1, 2 * k - 2)],
    ),
    "ring_rounds": (
        ring_rounds, (), {"order": "contiguous", "devices": 4, "clock": 4},
        [{"order": order, "devices": k, "clock": now} for order in ring_rounds.ORDERS
         for k in (2, 5, 8) for now in (0, 1, k)],
    ),
    "shard_memory": (
        shard_memory, (), {"network": "six layers of 128 × 128", "optimizer": "Adam",
                           "numbers": "mixed precision", "devices": 4, "clock": 3},
        [{"network": net, "optimizer": name, "numbers": "float32", "devices": k,
          "clock": now} for net, name, k in zip(
              shard_memory.NETWORKS, shard_memory.OPTIMIZERS, (1, 7, 64))
         for now in range(4)],
    ),
    "server_traffic": (
        server_traffic, (), {**JOB, "clock": 20},
        [{**JOB, "mode": mode, "workers": w, "servers": 4 - w, "clock": now}
         for mode in ("dist_sync", "dist_async") for w in (1, 2, 3)
         for now in (0, 13, 60)],
    ),
}
every = pytest.mark.parametrize("kind", FIGURES)
#: How wide the drawing is, how wide the page, and its smallest letters, in pixels.
PHONE = """{
  const svg = root.querySelector("svg"), scroll = root.querySelector(".scroll");
  const size = svg.clientWidth / svg.viewBox.baseVal.width;
  const letters = [...svg.querySelectorAll("text")].filter((t) => t.textContent);
  seen.push([scroll.scrollWidth, scroll.clientWidth, Math.min(99,
    ...letters.map((t) => size * t.getAttribute("font-size")))]);
}"""


@cache
def made(kind, name="fig"):
    module, arguments, *_ = FIGURES[kind]
    return module.figure(*arguments, name=name).data


@cache
def script(kind):
    if kind == "fits":
        return fits.FitsScript("fig")
    data = FIGURES[kind][0].data(*[GPU.flops] * (kind == "cost_calculator"))
    return frame.Script(kind, "fig", data)


@every
def test_without_scripts_the_figure_is_complete_and_loads_nothing(kind):
    first, html = FIGURES[kind][2], made(kind)
    page, view = soup(html), script(kind).view(first)
    assert page.svg.find("g", class_="drawing").decode_contents() == (
        soup(view["drawing"]).decode()
    )
    words = {p["data-role"]: p.string for p in page.find_all("p", {"data-role": True})}
    assert words == {"summary": view["summary"], "moment": view["moment"]}
    code = page.find("pre", class_="code")
    assert (code.decode_contents() if code else "") == soup(view["code"]).decode()
    assert page.find("p", {"data-role": "moment"})["aria-live"] == "polite"
    assert page.svg["aria-label"] == view["summary"] and page.svg["role"] == "img"
    assert page.find(class_="controls").has_attr("hidden")
    assert not list(loaded(page)) and not OUTSIDE_CSS.findall(html)
    words = set(re.findall(r"[\w/:.-]{6,}", html)) - {"http://www.w3.org/2000/svg"}
    assert not any(map(is_outside, words))  # that one is a name, and no address
    used = set(re.findall(r"url\(#([\w-]+)\)", html.split("<script")[0]))
    assert used <= {tag["id"] for tag in page.find_all(id=True)}


def controls(html):
    return soup(html).find(class_="controls").find_all(["input", "select", "button"])


def values(html):
    """The value of each control of a figure, by its role, as a text."""
    found = {}
    for control in controls(html):
        chosen = control.find("option", selected=True)
        found[control.get("data-role")] = chosen.string if chosen else (
            control.get("value"))
    return found


@every
def test_the_controls_have_names_and_show_the_first_choice(kind):
    module, _, first, _ = FIGURES[kind]
    for control in controls(made(kind)):
        named = control.find_parent("label") or control.get("aria-label")
        assert named or re.match(r"[A-Z]\w+", control.string)
        assert not control.get("tabindex")  # the keyboard reaches them in their order
    roles = values(made(kind))
    asked = [control.role for control in frame.flattened(module.CONTROLS)]
    assert [role for role in roles if role in first] == asked
    for role, value in first.items():
        shown = roles[role]
        assert shown == value if isinstance(value, str) else float(shown) == value
    assert {"back", "on"} <= set(roles) or "clock" not in first


@pytest.mark.parametrize("kind, choice", [
    ("allreduce_ways", {"devices": 3}),
    ("cost_calculator", {"batch": 8, "devices": 48, "way": "mesh", "servers": 2,
                         "per_host": 3, "tensor": 4, "pipeline": 6, "chunks": 5}),
    ("data_parallel_step", {"devices": 3, "batch": 100}),
    ("device_mesh", {"mesh": "1 × 1 × 8", "device": 2}),
    ("fits", {"model": "70 B", "tensor": 2}),
    ("pipeline_schedule", {"schedule": "1F1B", "stages": 3, "chunks": 5}),
    ("ring_allreduce", {"devices": 3, "size": 10}),
    ("ring_rounds", {"order": "zigzag", "devices": 3}),
    ("server_traffic", {"mode": "dist_async", "workers": 4, "servers": 1, "keys": 3,
                        "slow": 2, "clock": 9}),
    ("shard_memory", {"network": "LeNet", "optimizer": "SGD", "numbers": "float32",
                      "devices": 3}),
])
def test_a_figure_begins_with_the_choice_that_it_is_given(kind, choice):
    module, arguments, *_ = FIGURES[kind]
    shown = values(module.figure(*arguments, **choice).data)
    assert {role: shown[role] for role in choice} == {
        role: str(value) for role, value in choice.items()
    }


@every
def test_two_figures_share_no_id_and_each_is_the_same_in_every_run(kind):
    both = made(kind) + made(kind, "second")
    ids = [tag["id"] for tag in soup(both).find_all(id=True)]
    assert len(set(ids)) == len(ids) and {"fig", "second"} <= set(ids)
    assert {i.split("-")[0] for i in ids} == {"fig", "second"}
    assert made(kind) == made.__wrapped__(kind)


@every
def test_every_state_is_made_of_values_and_stays_in_its_box(kind):
    drawn = script(kind)
    for choice in FIGURES[kind][3]:
        view = drawn.view(choice)
        assert_in_its_box(view, choice)


def test_no_data_can_end_the_script_of_the_page():
    html = frame.page("ring_allreduce", "x", "</script>", (), {"devices": 2,
                      "size": "840"}, {**ring_allreduce.data(), "more": "</script>"})
    assert html.count("</script>") == 2  # of the data and of the script


def test_a_script_that_throws_says_which_figure_and_in_what(monkeypatch):
    with pytest.raises(RuntimeError, match=r"figure 'ring_allreduce' fails in view\(d\)"
                       ".*TypeError: cannot read property"):
        frame.Script("ring_allreduce", "x", {}).view({"devices": 2, "size": "840"})
    read = frame._read
    monkeypatch.setattr(frame, "_read", lambda file: read(file) + "function (")
    with pytest.raises(RuntimeError, match=r"'ring_allreduce' fails in shapes\.js"
                       ".*SyntaxError"):
        ring_allreduce.figure()


@pytest.mark.parametrize(
    "kind, arguments, message",
    [
        ("cost_calculator", (Model("mine", 10**6, 2, 1e9), GPU, LINK),
         "unknown model 'mine': LeNet"),
        ("cost_calculator", (VGG11, GPU, LINK, 1024, 5000),
         "devices from 1 to 4096, not 5000"),
        ("cost_calculator", (VGG11, GPU, LINK, 1024, 2.5),
         "devices from 1 to 4096 in whole numbers, not 2.5"),
        ("cost_calculator", (VGG11, GPU, Link(1.0, 1e-9)),
         "latency from 0 to 100000, not 1000000"),
        ("cost_calculator", (VGG11, GPU, Link(1e-6, 0)),
         "bandwidth from 0.01 to 10000, not inf"),
        ("data_parallel_step", (2, 6),
         "the figure shows batch from 4 to 256 in steps of 4, not 6"),
        ("pipeline_schedule", ("GPipe", 9, 8),
         "the figure shows stages from 1 to 8, not 9"),
        ("ring_allreduce", (1, 840), "devices from 2 to 8, not 1"),
        ("ring_allreduce", (4, 11), "unknown size '11': 840, 1000, 10"),
        ("server_traffic", ("dist_sync", 3, 2, 1.5), "keys from 1 to 3, not 1.5"),
        ("server_traffic", ("dist_sync", 3, 2, 2, 3, 61), "clock from 0 to 60, not 61"),
    ],
)
def test_what_a_figure_cannot_show_is_refused(kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        FIGURES[kind][0].figure(*arguments)


# In a browser.


@every
def test_in_a_browser_the_page_shows_what_the_script_makes_of_each_choice(
    kind, browse
):
    _, _, first, others = FIGURES[kind]
    choices = [first, *others, first] if kind != "cost_calculator" else others
    begin = 'set("clock", 0);' if "clock" in first else ""
    seen = browse(made(kind), f"{begin}note();" + choosing(choices))
    begun = {**first, "clock": 0} if "clock" in first else first
    assert_shown(seen, [begun, *choices], script(kind))
    assert not any(shown["hidden"] for shown in seen)
    assert not any(shown["kept"] for shown in seen)  # room that nothing fills


def test_a_clock_set_while_the_figure_plays_shows_that_moment_and_none_after_it(browse):
    begins_to_play = """
      const frames = [];
      window.requestAnimationFrame = (frame) => frames.push(frame);
      set("clock", 0); find("play").click(); frames[0](0); frames[1](30);
    """
    steps = begins_to_play + 'note(); set("clock", 0); note();'
    seen = browse(made("one_setting"), steps)
    between, begun = (moment["drawing"] for moment in seen)
    assert between != begun
    assert_shown(seen[1:], [{"clock": 0}], script("one_setting"))


@every
def test_in_a_browser_a_phone_shows_the_whole_drawing_in_letters_that_can_be_read(
    kind, browse
):
    choices = FIGURES[kind][3]
    steps = choosing(choices).replace("note()", PHONE)
    seen = browse(made(kind), steps, width=390)
    assert len(seen) == len(choices)
    for wide, inside, letters in seen:
        assert wide <= inside and letters >= 10


def test_in_a_browser_the_clock_steps_to_its_ends_and_stays_there(browse):
    seen = browse(
        made("pipeline_schedule"),
        """note(); set("clock", 22); note(); find("back").click(); note();
           find("on").click(); find("on").click(); note(); set("clock", 0); note();
           find("back").click(); note(); find("on").click(); note(); set("clock", 22);
           set("chunks", 4); note(); set("clock", 12); note(); set("stages", 1); note();
           set("stages", 8); note()""",
    )
    assert [shown["clock"] for shown in seen] == [
        *(f"{now}/22" for now in (0, 22, 21, 22, 0, 0, 1)),
        "14/14", "12/14", "8/8", "22/22",
    ]
    assert seen[6]["moment"].startswith("Slot 1 of 22: stage 0 forward 0, stage 1 wait")


#: The browser's frames, in the hands of the test: `pass(ms)` is one, so much later.
FRAMES = """
let next = null, time = 0;
window.requestAnimationFrame = (f) => { next = f; return 1; };
window.cancelAnimationFrame = () => { next = null; };
const pass = (ms) => { const f = next; next = null; time += ms; if (f) f(time); };
const press = (role) => find(role).click(), clock = () => Number(find("clock").value);
"""
#: Figures with a clock, and those that move between its steps, too.
CLOCKS = [kind for kind in FIGURES if "clock" in FIGURES[kind][2]]
SMOOTH = ["one_setting", "pipeline_schedule", "server_traffic"]


@pytest.mark.parametrize("kind", CLOCKS)
def test_in_a_browser_play_goes_to_the_end_in_five_to_eight_seconds(kind, browse):
    drawn, took, last, shown = browse(
        made(kind),
        FRAMES + """
        press("reset"); find("clock").value = 0; press("play"); pass(0);
        const drawings = new Set();
        while (next && time < 60000) {
          pass(50); drawings.add(root.querySelector(".drawing").innerHTML);
        }
        seen.push(drawings.size, time, find("clock").max - clock(),
                  find("play").textContent)""",
    )
    assert 5000 <= took <= 8050 and last == 0 and shown == "Play"
    assert drawn > 90 or kind not in SMOOTH  # it moves in nearly each frame


def test_in_a_browser_play_pauses_hastens_and_goes_on_and_reset_goes_back(browse):
    seen = browse(
        made("pipeline_schedule"),
        FRAMES + """
        press("play"); pass(0); pass(4000);
        seen.push([clock(), find("play").textContent]);
        press("speed"); pass(1000); seen.push(clock());
        press("play"); pass(9000); seen.push([clock(), find("play").textContent]);
        press("play"); pass(0); pass(1000); seen.push(clock());
        set("clock", 22); press("play"); pass(0); pass(100); seen.push(clock());
        set("stages", 2); set("schedule", "1F1B"); press("reset"); pass(9000);
        seen.push([clock(), find("stages").value, find("schedule").value])""",
    )
    assert seen == [[11, "Pause"], 16, [16, "Play"], 22, 0, [0, "4", "GPipe"]]


#: Sets the slider of a number, and notes what numbers and sliders say.
SLIDE = """
const slider = (role) => root.querySelector(`[data-of=${role}]`);
function slide(role, value) {
  slider(role).value = value;
  slider(role).dispatchEvent(new Event("input", {bubbles: true}));
}
"""


def test_in_a_browser_models_numbers_and_sliders_move_together(browse):
    steps = SLIDE + """
        set("bandwidth", -5); note(); set("bandwidth", ""); note();
        set("bandwidth", 10); set("model", "LeNet"); note();
        slide("devices", 5); slide("bandwidth", 2); note();
        set("model", "large LSTM"); note(); set("latency", 0); note();
        set("model", "LeNet");
        seen.push(slider("parameters").value, find("model").value);
        slide("example", 3); seen.push(find("model").value, find("example").value);
        set("latency", 1000); seen.push(slider("latency").value);
        slide("devices", 10); seen.push(find("devices").value);
        find("reset").click();
        seen.push(...["model", "devices"].map((role) => find(role).value),
          slider("devices").value)"""
    seen = browse(made("cost_calculator"), steps)
    models = cost_calculator.data(GPU.flops)["models"]
    assert list(models) == [*(model.name for model in MODELS), "large decoder"]
    lenet = {**COST, "model": "LeNet", **models["LeNet"]}
    moved = {**COST, "devices": 32, "bandwidth": 100}
    lstm = {**moved, "model": LSTM.name, **models[LSTM.name]}
    choices = [
        {**COST, "bandwidth": 0.01}, {**COST, "bandwidth": 0.01}, lenet,
        {**lenet, "devices": 32, "bandwidth": 100}, lstm, {**lstm, "latency": 0},
    ]
    assert_shown(seen[:6], choices, script("cost_calculator"))
    # Of sliders, logarithms in their steps.
    assert seen[6:12] == ["5.1", "LeNet", "own numbers", "1000", "3", "1024"]
    assert seen[12:] == [COST["model"], str(COST["devices"]), "4"]  # 2⁴ devices
