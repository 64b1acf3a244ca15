"""*Does it fit, and how fast?* computes in its script what the library does here."""

import re
from math import ceil, exp, gcd, log
from random import Random

import pytest
from figure_checks import READER, assert_in_its_box, assert_shown, labels, soup

from bookkit.figures import fits, frame
from bookkit.figures.cost_calculator import OWN
from d2l_ext.memory import STAGES, bytes_held, bytes_sent
from d2l_ext.memory.shards import states
from d2l_ext.scale import step
from d2l_ext.tensor_parallel.transformer import Decoder

SCRIPT = fits.FitsScript("fig")


def settings(n):
    """`n` choices, spread over all that can be chosen, evenly in logarithms."""
    random, found = Random(39), []
    for _ in range(n):
        choice = {"model": OWN, "machine": OWN}
        for control in frame.flattened(fits.CONTROLS):
            if isinstance(control, frame.Select):
                choice.setdefault(control.role, random.choice(control.options))
                continue
            low, high = log(control.low or 1e-2), log(control.high)
            value = exp(random.uniform(low, high))
            choice[control.role] = round(value) if control.whole else value
        # So that axes of a mesh are longer than 1 in most of them.
        choice["devices"] = 2 ** random.randrange(14)
        choice["tensor"], choice["pipeline"] = (2 ** random.randrange(5) for _ in "tp")
        found.append(choice)
    return found


GRID = settings(300)


def mesh(choice):
    t = gcd(choice["tensor"], choice["devices"])
    p = gcd(choice["pipeline"], choice["devices"] // t)
    return p, choice["devices"] // (p * t), t


def held(choice):
    """Bytes on the fullest device, by the library's `bytes_held`, without a reserve."""
    p, d, t = mesh(choice)
    itemsize, kept = fits.NUMBERS[choice["numbers"]]
    own = ceil(choice["parameters"] / (p * t))
    fixed = max(bytes_held([own], d, choice["zero"], itemsize, kept))
    text = choice["micro"] * choice["tokens"] * choice["width"] * itemsize
    layer = (5 + 12 / t) * text  # Korthikanti et al. (2022): 10 + 24/t bytes in 16 bits
    layers = ceil(choice["layers"] / p) * min(choice["chunks"], p)
    again = choice["recompute"] == "yes"
    return fixed + (layers * text + layer if again else layers * layer)


def seconds(choice):
    """Seconds of a step and its tokens, by `mesh_seconds` and `bytes_sent`."""
    p, d, t = mesh(choice)
    m, k = choice["chunks"], choice["devices"]
    itemsize, _ = fits.NUMBERS[choice["numbers"]]
    batch = choice["micro"] * m * d * choice["tokens"]
    width, layers = choice["width"], choice["layers"]
    flops = 6 * choice["parameters"] + 12 * layers * width * choice["tokens"]
    again = 4 / 3 if choice["recompute"] == "yes" else 1
    device = step.Device(choice["peak"] * 1e12 * choice["reach"] / 100)
    model = step.Model("", choice["parameters"], layers, flops * again)
    computing = device.seconds(model, batch / k)
    n, sums = itemsize * batch / d * width, 4 * layers / p
    # bytes_sent of a number that k divides, in its share of the parameters.
    once = [bytes_sent([d], d, stage, 1)[0] / d for stage in STAGES]
    times = [once[0], once[1], once[2] * (m + 1) / 2, once[3] * m]
    share = times[STAGES.index(choice["zero"])]
    sent = {"pipeline": 2 * n * (p > 1), "tensor": sums * 2 * (t - 1) / t * n,
            "data": share * itemsize * choice["parameters"] / (p * t)}
    rounds = {"pipeline": 2 * m * (p > 1), "data": d * share,
              "tensor": m * sums * 2 * (t - 1)}
    inner = step.network(choice["inside"], choice["nearby"] * 1e-6)
    link = step.network(choice["bandwidth"], choice["latency"] * 1e-6)
    host = k if k <= choice["per_host"] else gcd(choice["per_host"], k)
    links = {axis: link if host % span else inner
             for axis, span in (("tensor", t), ("data", d * t), ("pipeline", k))}
    sizes = {"pipeline": p, "data": d, "tensor": t}
    whole = step.mesh_seconds(computing, sizes, m, sent, rounds, links)
    data = links["data"].seconds(sent["data"], rounds["data"])
    behind = (1 - 1 / layers) * min(data, step.BACKWARD * computing)
    return whole - (behind if choice["overlap"] == "yes" else 0), batch, flops


def close(found, expected):
    return found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def results(d):
    return [d[name] for name in ("bytes", "room", "seconds", "per_second", "mfu")]


def expected(choice):
    nbytes = held(choice) + 1e9 * choice["reserve"]
    long, batch, flops = seconds(choice)
    peak = 1e12 * choice["peak"] * choice["devices"]
    return [nbytes, 1e9 * choice["memory"] - nbytes, long, batch / long,
            flops * batch / long / peak]


def test_300_random_settings_give_the_librarys_numbers():
    split = 0
    for choice in GRID:
        d = SCRIPT.ask(choice, "d")
        assert close(results(d), expected(choice)), choice
        assert close(sum(x for _, x in d["memory_of"]), d["bytes"])
        assert close(sum(x for _, x in d["time_of"]), d["seconds"])
        assert all(x >= -1e-9 * d["seconds"] for _, x in d["time_of"])
        split += min(mesh(choice)) > 1
    assert split > 50 and {c["zero"] for c in GRID} == {*STAGES}


def test_the_bytes_of_a_parameter_are_those_of_the_librarys_optimizers():
    for name, optimizer, half in (("16 bits, Adam", "adam", True),
                                  ("32 bits, Adam", "adam", False),
                                  ("32 bits, SGD", "sgd", False)):
        of = states(1, optimizer, half)
        kept = of["master copy"] + of["optimizer"]
        assert fits.NUMBERS[name] == (of["weights"], kept)


@pytest.mark.parametrize("name", ["1 B", "7 B", "70 B"])
def test_the_published_parameters_are_those_of_the_books_decoder(name):
    """But for MPT's positions, which are learned, and its shifts."""
    of = fits.MODELS[name]
    net = Decoder(50_368, of["width"], of["width"] // 64, of["layers"], tied=True)
    own = sum(a * b for a, *rest in net.shapes().values() for b in [*rest, 1][:1])
    learned = 2048 * of["width"]
    assert own + learned == pytest.approx(of["parameters"], rel=1e-3)


def test_published_mfu_follows_from_published_tokens_by_the_tools_operations():
    for choice, per_second, mfu in fits.MEASURED:
        flops = SCRIPT.ask(fits.chosen(**choice), "perToken(d)")
        assert 100 * flops * per_second / 989e12 == pytest.approx(mfu, abs=0.05)


def test_what_was_trained_fits_and_is_as_fast_within_a_third():
    for choice, per_second, _ in fits.MEASURED:
        d = SCRIPT.ask(fits.chosen(**choice), "d")
        assert d["room"] > 0
        assert 2 / 3 < d["per_second"] / d["devices"] / per_second < 4 / 3


def test_the_example_of_zero_is_repeated_to_the_published_digit():
    for stage, published in fits.ZERO.items():
        assert round(fits.states_in_paper(SCRIPT, stage), 1) == published


def test_the_answer_comes_first_and_says_by_how_much_and_what_limits():
    page = soup(fits.figure(name="fig").data)
    first = page.find(class_="d2l-figure").find(["p", "div", "svg"])
    assert first["data-role"] == "moment"
    assert re.fullmatch(
        r"It fits: \S+ GB of 80\.0 GB, \S+ GB to spare, on the fullest device\. "
        r"[\d,]+ tokens/s, [\d.]+% MFU\. What limits: computing, \d+% of a step of "
        r"\d+ ms\.", first.string)
    assert "; 1 device: data 1 × " in SCRIPT.view(fits.chosen(devices=1))["summary"]
    none = SCRIPT.view(fits.chosen(model="70 B"))["moment"]
    assert re.match(r"It does not fit: \d+ GB, \d+ GB too much, .* if it did", none)
    slow = SCRIPT.view(fits.chosen(devices=64, bandwidth=1))["moment"]
    assert "What limits: gradients and weights, 100% of a step" in slow


def test_the_answers_share_of_the_peak_is_rounded_and_not_cut_off():
    assert 100 * SCRIPT.ask(fits.FIRST, "d")["mfu"] == pytest.approx(54.863, abs=1e-3)
    assert "tokens/s, 54.9% MFU." in SCRIPT.view(fits.FIRST)["moment"]


def test_a_number_without_its_models_or_machines_name_makes_it_ones_own():
    said = SCRIPT.view(fits.chosen(parameters=1e9))["summary"]
    assert said.startswith(f"{OWN}, 1.00 billion parameters; ")
    for other, names in (({"parameters": 1e9}, (OWN, fits.FIRST["machine"])),
                         ({"latency": 50}, ("7 B", OWN)),
                         ({"devices": 64, "reach": 40}, ("7 B", fits.FIRST["machine"])),
                         ({"model": "1 B"}, ("1 B", fits.FIRST["machine"]))):
        choice = fits.chosen(**other)
        assert (choice["model"], choice["machine"]) == names


def test_every_drawing_stays_in_its_box_and_has_words_for_each_part():
    for choice in GRID[:60]:
        view = SCRIPT.view(choice)
        assert_in_its_box(view, choice)
        d = SCRIPT.ask(choice, "d")
        shown = " ".join(labels(view["drawing"]))
        assert all(name in shown for name, _ in d["memory_of"] + d["time_of"])


def test_what_cannot_be_shown_is_refused():
    for other, message in (({"device": 64}, "unknown role 'device': .*devices"),
                           ({"model": "8 B"}, "unknown model '8 B': 1 B, 7 B"),
                           ({"devices": 0}, "devices from 1 to 16384, not 0"),
                           ({"devices": 2.5}, "16384 in whole numbers, not 2.5")):
        with pytest.raises(ValueError, match=message):
            fits.figure(**other)


# In a browser.


def test_in_a_browser_a_model_brings_its_numbers_and_a_number_makes_it_ones_own(browse):
    seen = browse(
        fits.figure(name="fig").data,
        """set("model", "70 B"); note(); set("machine", "laptops, 1 Gbit/s"); note();
           set("width", 1024); seen.push(find("model").value, find("machine").value);
           set("memory", 24); seen.push(find("machine").value);
           find("reset").click(); note();""")
    large = fits.chosen(model="70 B")
    laptop = fits.chosen(model="70 B", machine="laptops, 1 Gbit/s")
    assert_shown(seen[:2], [large, laptop], SCRIPT)
    assert seen[2:5] == [OWN, "laptops, 1 Gbit/s", OWN]  # whose numbers they are
    assert_shown(seen[5:], [fits.FIRST], SCRIPT)


def test_in_a_browser_the_buttons_are_there_and_say_what_they_did(page, tmp_path):
    """What leaves the page is caught: there is no clipboard in a test."""
    file = tmp_path / "fits.html"
    file.write_text('<!doctype html><meta charset="utf-8"><article class="bd-article">'
                    + fits.figure(name="fig").data, encoding="utf-8")
    page.open(file.as_uri() + "#fig:model=own%20numbers&width=1024&devices=64")
    found = page.evaluate(f"""(async () => {{{READER}
      const given = [find("width").value, find("devices").value];
      const saved = [], copies = [];
      HTMLAnchorElement.prototype.click = function () {{
        saved.push(this.download, this.href.slice(0, 22), this.href.length); }};
      Object.defineProperty(navigator, "clipboard", {{value: {{
        writeText: async (words) => copies.push(words),
        write: async () => {{ throw new Error("none"); }} }}}});
      const [link, picture] = [...root.querySelectorAll("button")].slice(-2);
      const names = [link.textContent, picture.textContent];
      set("devices", 128); link.click();
      await new Promise((done) => setTimeout(done, 50));
      picture.click();
      for (let n = 0; n < 100 && !saved.length; n += 1) {{
        await new Promise((done) => setTimeout(done, 50)); }}
      return [given, names, copies[0], saved];
    }})()""")
    given, names, address, saved = found
    assert given == ["1024", "64"]
    assert names == ["Copy link", "Copy picture"]
    assert "#fig:" in address and "devices=128" in address and "width=1024" in address
    assert saved[:2] == ["does-it-fit.png", "data:image/png;base64,"]
    assert saved[2] > 10_000  # a picture, and no empty canvas
