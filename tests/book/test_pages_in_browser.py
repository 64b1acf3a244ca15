"""Every page in a browser, from its file: what is asked for, seen, heard and moved.

`make html` runs this on the pages that it built: D2L_EXT_HTML names their folder.
"""

import os
import re
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import page_checks
import pytest
from matplotlib.ft2font import LOAD_NO_SCALE, FT2Font

FOLDER = os.environ.get("D2L_EXT_HTML", "")
PAGES = Path(FOLDER).resolve()
NAMES = sorted(
    path.relative_to(PAGES).as_posix()
    for path in (PAGES.glob("**/*.html") if FOLDER else ())
    if "_static" not in path.parts and path.name != "index.html"
)
DRAWINGS = sorted((Path(__file__).parents[2] / "chapters" / "img").glob("*.svg"))
pytestmark = page_checks.needs_chromium
NEWER = sys.version_info >= (3, 11)  # requirements.txt: which theme for which Python
built = pytest.mark.skipif(
    not (NAMES and NEWER),
    reason="no pages to open: `make html` builds them and runs this test on them"
    if NEWER
    else "pages with the theme of Python 3.11 are tested, and published",
)


@pytest.fixture(scope="module")
def page():
    with page_checks.new_page() as page:
        yield page


def shown(page, name):
    page.prefer("light")
    page.resize(page_checks.WIDE)
    page.open(f"{PAGES.as_uri()}/{name}")
    return page


@built
@pytest.mark.parametrize("name", NAMES)
def test_page(page, name):
    found = page_checks.visit(page, (PAGES / name).as_uri(), name)
    problems = [f"{what}: {text}" for what, texts in found.items() for text in texts]
    assert not problems, "\n".join(problems)


@built
def test_the_first_address_leads_to_the_first_page(page):
    shown(page, "index.html")
    page.until("document.querySelector('article') && location.pathname")
    assert page.evaluate("location.pathname").endswith("/intro.html")


@built
def test_search_finds_a_word_from_a_file(page):
    shown(page, "chapters/devices/devices.html")
    # A click before the page's script listens to it opens nothing.
    page.until("document.activeElement?.name === 'q' ||"
               " document.querySelector('button.search-button__button')?.click()")
    page.type("allreduce")
    page.press("Enter")
    page.until("document.querySelectorAll('#search-results li a').length > 2")
    links = page.evaluate(
        "[...document.querySelectorAll('#search-results li a')].map((a) => a.href)"
    )
    assert any("chapters/data_parallel/allreduce.html" in link for link in links)
    assert page.complaints() == []


#: What readers look for, and the chapters that teach it.
TAUGHT = {
    "ring": ["allreduce", "process_ring", "ring_attention"],
    "bubble": ["micro_batches", "shorter_bubbles"], "staleness": ["out_of_step"],
    "tensor parallel": ["layerwise", "transformer"], "FSDP": ["sharded"],
    "ZeRO": ["sharded"], "allreduce": ["allreduce"], "1F1B": ["micro_batches",
    "shorter_bubbles"], "loss scaling": ["half_precision"],
    "recomputation": ["where_memory_goes"], "activations": ["where_memory_goes"],
    "checkpoint": ["recovery", "sharded_checkpoints"], "compression": ["compression"],
    "attention": ["transformer", "ring_attention"], "experts": ["experts"],
    "speed-up": ["no_speed_up"], "roofline": ["what_limits_a_step"],
    "timeline": ["devices", "overlap"], "accumulation": ["half_precision"],
    "overlap": ["overlap"], "PyTorch": ["rosetta"], "straggler": ["out_of_step",
    "simulating"], "cost model": ["fitting"], "packet loss": ["bad_networks"],
    # As newcomers ask.
    "why is my second GPU not faster": ["no_speed_up"], "speedup": ["no_speed_up"],
    "OOM": ["where_memory_goes", "sharded"], "bf16": ["half_precision"],
    "out of memory": ["where_memory_goes", "sharded"], "MoE": ["experts"],
    "multi gpu": ["data_parallel_scratch", "no_speed_up"],
    "gradient checkpointing": ["where_memory_goes"], "remat": ["where_memory_goes"],
    "activation checkpointing": ["where_memory_goes"], "bfloat16": ["half_precision"],
    "DDP": ["data_parallel_scratch", "overlap", "concise"], "nccl": ["allreduce"],
    "gradient accumulation": ["half_precision"], "deepspeed": ["sharded"],
    "mixed precision": ["half_precision"], "megatron": ["layerwise", "transformer"],
    "all reduce": ["allreduce"], "long sequence": ["ring_attention"],
    "DiLoCo": ["seldom"], "local SGD": ["seldom"], "torchrun": ["launching",
    "process_ring"], "slurm": ["launching"], "parameter server": ["in_step",
    "kvstore_by_hand", "roles_keys_shards"], "learning rate warmup": ["large_batches"],
    "3D parallelism": ["mesh"], "microbatch": ["micro_batches"],
    "how many GPUs do I need": ["scale"], "worker dies": ["recovery"],
    "GPU utilization low": ["what_limits_a_step", "no_speed_up"],
    "resume on other number of GPUs": ["sharded_checkpoints"],
    "NVLink": ["two_links"], "colab": ["gpu_box", "faq"],
    "all-reduce vs parameter server": ["process_ring"],
    "how to use multiple gpus in mxnet": ["concise", "data_parallel_scratch"],
    "loss differs between gpus": ["wrong_numbers", "parted_replicas"],
    "training hangs": ["which_rank", "recovery"], "run on google colab": ["gpu_box",
    "faq"], "exercises with solutions for a lecture": ["course"],
    "how do I split my model across GPUs": ["three_ways"],
    "how to shard a model that does not fit in memory": ["sharded"],
}


@built
@pytest.mark.parametrize("words, taught", TAUGHT.items())
def test_search_puts_the_chapter_that_teaches_it_first_or_second(page, words, taught):
    shown(page, f"search.html?q={words.replace(' ', '+')}")
    page.until("/finished|did not/.test(document.querySelector('.search-summary,"
               "#search-results p')?.textContent)")
    first = page.evaluate(
        "[...document.querySelectorAll('#search-results li')].slice(0, 2).map((e) => "
        "[e.querySelector('a').pathname, e.querySelector('p.context')?.textContent])"
    )
    names = [Path(path).stem for path, _ in first]
    assert set(names) & set(taught), names
    assert all(excerpt for _, excerpt in first)


@built
def test_what_opens_a_list_of_pages_has_a_name(page):
    shown(page, "reference/api.html")
    toggles = "[...document.querySelectorAll('summary:has(.toctree-toggle)')]"
    names = page.evaluate(f"{toggles}.map((e) => e.ariaLabel)")
    assert set(names) == {"Pages of: The library, name by name"}


STYLE = """(e) => { const s = getComputedStyle(e); return [s.outlineStyle, s.boxShadow,
    s.outlineWidth, s.borderColor, s.backgroundColor, s.textDecorationLine].join(); }"""


@built
@pytest.mark.parametrize("width, stops", [(1400, 60), (390, 25)])
def test_focus_is_visible_and_in_the_window_at_every_stop(page, width, stops):
    shown(page, "chapters/pipeline/micro_batches.html").resize(width)
    page.evaluate(f"""(() => {{
        const style = {STYLE}, all = document.querySelectorAll("*");
        const before = new Map([...all].map((e) => [e, style(e)]));
        document.documentElement.style.scrollBehavior = "auto";
        window.stop_ = () => {{
            const e = document.activeElement, box = e.getBoundingClientRect();
            return {{
                what: e.outerHTML.slice(0, 150).replace(/\\s+/g, " "),
                isMarked: style(e) !== before.get(e),
                isSeen: box.bottom > 0 && box.top < innerHeight && box.width > 0
                    && box.right > 0 && box.left < innerWidth,
            }};
        }};
    }})()""")
    page.evaluate(
        'document.head.insertAdjacentHTML("beforeend",'
        '"<style>*, ::before, ::after { transition: none !important; }</style>")'
    )
    for number in range(stops):
        page.press("Tab")
        stop = page.evaluate("stop_()")
        assert stop["isMarked"] and stop["isSeen"], stop
        if number == 0:
            assert "#main-content" in stop["what"], "the skip link is not the first"


@built
def test_the_skip_link_leads_past_the_menu(page):
    shown(page, "chapters/devices/devices.html")
    page.press("Tab")
    page.press("Enter")
    assert page.evaluate("location.hash") == "#main-content"
    page.press("Tab")
    inside = "document.querySelector('main').contains(document.activeElement)"
    assert page.evaluate(inside)


@built
def test_the_menu_of_a_phone_opens_and_closes_by_keyboard(page):
    shown(page, "chapters/devices/devices.html").resize(page_checks.NARROW)
    page.until("document.querySelector('.primary-toggle').checkVisibility()")
    page.evaluate("document.querySelector('.primary-toggle').focus()")
    page.press("Enter")
    page.until("document.querySelector('#pst-primary-sidebar-modal').open")
    is_inside = (
        "document.querySelector('dialog[open]').contains(document.activeElement)"
    )
    assert page.evaluate(is_inside)
    page.press("Escape")
    page.until("!document.querySelector('#pst-primary-sidebar-modal').open")


class Site(SimpleHTTPRequestHandler):
    """The book below /book/, with its own page for addresses that do not exist."""

    def translate_path(self, path):
        return super().translate_path(path.replace("/book", "", 1))

    def send_error(self, code, *words):
        body = (PAGES / "404.html").read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *words):
        pass


@pytest.fixture(scope="module")
def loopback():
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Site, directory=PAGES)) as site:
        Thread(target=site.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{site.server_port}/book/"
        site.shutdown()


@built
@pytest.mark.parametrize("address", ["no_such_page.html", "a/b/c/no_such_page.html"])
def test_a_wrong_address_at_any_depth_leads_back_into_the_book(page, loopback, address):
    page.open(loopback + address)
    page.until(f"document.links[0].href === '{loopback}intro.html'")
    assert page.evaluate("document.forms[0].action") == f"{loopback}search.html"
    assert page.evaluate("document.forms[0].q.value") == "no such page"


@built
def test_words_are_as_wide_as_the_font_says_on_every_machine(page):
    regular = FT2Font(str(page_checks.TTF / "DejaVuSans.ttf"))
    words = "4,096 servers"
    said = sum(regular.load_char(ord(c), LOAD_NO_SCALE).horiAdvance for c in words)
    measured = f"""(() => {{
        const probe = document.createElement("span");
        probe.textContent = "{words}";
        probe.style = "position: absolute; font-size: 100px";
        document.querySelector(".d2l-figure").append(probe);
        return probe.getBoundingClientRect().width;
    }})()"""
    expected = 100 * said / regular.units_per_EM
    assert shown(page, "intro.html").evaluate(measured) == pytest.approx(expected, 1e-4)


@built
def test_every_drawing_stands_on_a_page():
    pages = "".join((PAGES / name).read_text("utf-8") for name in NAMES)
    used = set(re.findall(r'_images/([\w.]+)\.svg"', pages))
    drawn = {path.stem for path in DRAWINGS}
    assert used >= drawn
    assert {name.split(".")[0] for name in used} == {n.split(".")[0] for n in drawn}


@built
def test_pointing_at_a_term_shows_what_it_means(page):
    shown(page, "chapters/devices/devices.html")
    link = "document.querySelector('a.glossary-term')"
    assert page.evaluate(f"{link}.focus(), document.querySelector('.term-card').hidden"
                         ) is False
    said = page.evaluate("document.querySelector('.term-card').textContent")
    assert said.endswith(".") and len(said) > 20
    page.press("Escape")
    assert page.evaluate("document.querySelector('.term-card').hidden")


@built
@pytest.mark.parametrize("name", ["chapters/scale/rosetta.html", "intro.html"])
def test_on_a_phone_each_cell_of_a_table_says_what_it_is(page, name):
    shown(page, name).resize(390)
    unnamed = page.evaluate("""[...document.querySelectorAll(
        "main table.table:not(.claims-ledger, .results-table) tbody td")]
        .filter((cell) => cell.cellIndex > 0 && cell.textContent.trim())
        .filter((cell) => getComputedStyle(cell, "::before").content === "none")
        .map((cell) => cell.textContent.trim())""")
    assert unnamed == []


@built
def test_an_unanswered_exercise_and_a_closed_fold_are_not_printed(page):
    shown(page, "chapters/data_parallel/allreduce.html")
    page._call("Emulation.setEmulatedMedia", media="print")
    seen = page.evaluate("""[...document.querySelectorAll(".unanswered, main "
        + "details:not([open]), .d2l-figure .controls")].filter((e) => e.offsetHeight)
        .length""")
    cut = page.evaluate("""[...document.querySelectorAll("main pre")].filter((e) =>
        getComputedStyle(e).breakInside !== "auto").length""")
    page._call("Emulation.setEmulatedMedia", media="")
    assert (seen, cut) == (0, 0)
