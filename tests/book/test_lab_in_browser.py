"""Editors in the pages, in two browsers, from files and from a server on this machine.

`make html` runs this on the pages that it built: D2L_EXT_HTML names their folder.
"""

import os
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import page_checks
import pytest

PAGES = Path(os.environ.get("D2L_EXT_HTML", "nowhere")).resolve()
pytestmark = pytest.mark.skipif(
    not (PAGES / "lab/engine.js").is_file(),
    reason="no pages with Python beside them: make html, with npm")
PAGE, NAME = "chapters/data_parallel/allreduce.html", "#lab-allreduce-3"
RIGHT = """def broadcast(values, exchange):
    have = 1
    while have < len(values):
        pairs = [(i, i + have) for i in range(have) if i + have < len(values)]
        for (_, j), x in exchange({(i, j): values[i] for i, j in pairs}).items():
            values[j] = x
        have *= 2
"""
LOADED = "performance.getEntriesByType('resource').map((entry) => entry.name)"
SAID = """(() => { const box = document.querySelector("%s").parentElement;
  return ["printed", "said", "round"].map((w) => box.querySelector(`.lab-${w}`)
    ?.textContent ?? "").join(" | "); })()"""


AS_READERS_OPEN_IT = pytest.mark.parametrize(
    "from_files, width", [(True, page_checks.NARROW), (False, page_checks.WIDE)])


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *given):
        pass


@pytest.fixture(scope="module")
def loopback():
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=PAGES))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def opened(page, where=None, width=page_checks.WIDE):
    page.resize(width)
    page.open(f"{where or PAGES.as_uri()}/{PAGE}")
    page.evaluate("localStorage.clear()")
    page.open(f"{where or PAGES.as_uri()}/{PAGE}")
    open_editor(page, 3)


def open_editor(page, number):
    page.evaluate(f"""[...document.querySelectorAll(".cell")].find((cell) =>
        cell.textContent.includes('check("allreduce", {number}, None)'))
        .nextElementSibling.querySelector(".lab-open").click()""")


def write(page, code, name=NAME):
    """What the page says of `code`."""
    page.evaluate(f"document.querySelector('{name}').select()")
    page.type(code)
    run = f"document.querySelector('{name}').parentElement.querySelector('.lab-run')"
    page.evaluate(f"{run}.click()")
    page.until(f"!{run}.disabled", 90)
    return page.evaluate(SAID % name)


@AS_READERS_OPEN_IT
def test_what_a_reader_writes_is_judged_and_its_messages_shown(
    page, loopback, from_files, width
):
    opened(page, None if from_files else loopback, width)
    said = write(page, RIGHT)
    assert "Right. 8 devices: 3 rounds (3 are enough)" in said
    assert "8 devices, your round 1 of 3: 1 message of 1 number." in said
    inside, outside = ("file:", "data:", "blob:", loopback), "http://outside.invalid/"
    assert all(url.startswith(inside) for url in page.requests())
    page.evaluate(f"fetch('{outside}').catch(() => 0)")
    assert outside in page.requests()  # such a one would be seen
    page.evaluate(page_checks.SCRIPT)
    page.evaluate(page_checks.AXE + "; 0")
    assert page.evaluate("faults()") == []


STAR = """def broadcast(values, exchange):
    for j in reversed(range(1, len(values))):
        values[j] = exchange({(0, j): values[0]})[0, j]
"""


def test_the_figure_plays_the_messages_that_the_readers_code_sent(page):
    opened(page)
    assert "Not yet." in write(page, STAR)
    box = f"document.querySelector('{NAME}').parentElement"
    figure = f"{box}.querySelector('.lab-figure')"
    label = f"{figure}.querySelector('svg').getAttribute('aria-label')"
    page.until(f"{label}.endsWith(' 0 to 6')")  # it plays by itself
    press = (f"[...{figure}.querySelectorAll('button')]"
             ".find((b) => b.textContent === 'Next').click()")
    page.evaluate(press)  # and stops
    rounds = []
    for _ in range(7):
        rounds.append(page.evaluate(label))
        page.evaluate(press)
    assert sorted(said.split(". ")[-1] for said in rounds) == [
        f"0 to {j}" for j in range(1, 8)]
    assert page.evaluate(f"{figure}.querySelectorAll('.lab-arrow').length") == 1
    assert page.evaluate(f"{figure}.querySelectorAll('.lab-device').length") == 8


def test_code_that_harms_is_met_with_a_clear_word_and_the_page_lives(page):
    opened(page)
    loop = "def broadcast(values, exchange):\n    while True: pass"
    assert "It has not ended after " in write(page, loop)
    assert "SyntaxError" in write(page, "what is this?")
    assert "NameError" in write(page, "nothing")
    assert "Right." in write(page, RIGHT)
    room = "x = []\nwhile True: x.append(bytes(10**8))"
    said = write(page, room)
    words = "MemoryError", "not ended after", "ended Python itself"  # as the browser is
    assert any(word in said for word in words), said
    assert "It ended Python itself" in write(page, "import os\nos._exit(3)")
    assert "Right." in write(page, RIGHT)


def test_two_editors_take_turns_at_the_pages_python(page):
    """The second one's time begins when the first has ended; each gets its own word."""
    opened(page)
    open_editor(page, 4)
    other = NAME.replace("3", "4")
    loop = "def broadcast(values, exchange):\n    while True: pass"
    for name, code in (NAME, loop), (other, "nothing"):
        page.evaluate(f"document.querySelector('{name}').select()")
        page.type(code)
    run = "document.querySelector('%s').parentElement.querySelector('.lab-run')"
    buttons = [run % name for name in (NAME, other)]
    page.evaluate("; ".join(f"{button}.click()" for button in buttons))
    page.until(" && ".join(f"!{button}.disabled" for button in buttons), 90)
    assert "It has not ended after " in page.evaluate(SAID % NAME)
    assert "NameError" in page.evaluate(SAID % other)


def test_what_was_written_is_there_again_and_reset_takes_it_away(page):
    opened(page)
    page.evaluate(f"document.querySelector('{NAME}').select()")
    page.type("# mine")
    page.open(f"{PAGES.as_uri()}/{PAGE}")
    assert page.evaluate(f"document.querySelector('{NAME}').value") == "# mine"
    page.evaluate(f"""[...document.querySelector('{NAME}').parentElement
        .querySelectorAll("button")].find((b) => b.textContent === "Reset").click()""")
    value = page.evaluate(f"document.querySelector('{NAME}').value")
    assert value == "def broadcast(values, exchange):\n    ...\n"


def test_a_page_asks_for_no_engine_before_a_click(page):
    page.open(f"{PAGES.as_uri()}/intro.html")
    assert page.evaluate("[...document.scripts].some((s) => s.src.includes('lab.js'))")
    urls = page.evaluate(LOADED)
    assert not page.evaluate("LAB.parts || LAB.files")
    assert not [url for url in urls if "/lab/" in url]
    scripts = [PAGES / "_static" / name for name in ("lab.js", "lab.css")]
    assert sum(path.stat().st_size for path in scripts) < 20_000


@AS_READERS_OPEN_IT
def test_a_cell_of_a_chapter_runs_in_its_page_as_the_reader_changes_it(
    page, loopback, from_files, width
):
    name, path = "#lab-buckets-cell1", "chapters/pipeline/buckets.html"
    page.resize(width)
    page.open(f"{PAGES.as_uri() if from_files else loopback}/{path}")
    page.evaluate("localStorage.clear()")
    page.open(f"{PAGES.as_uri() if from_files else loopback}/{path}")
    output = "document.querySelector('.tag_lab .cell_output pre')"
    shown = page.evaluate(f"{output}.textContent")  # hidden until the reader guesses
    page.evaluate("document.querySelector('.tag_lab + .lab .lab-open').click()")
    begun = page.evaluate(f"document.querySelector('{name}').value")
    printed, said, _ = write(page, begun, name).split(" | ")
    assert printed.split() == shown.split() != [] and said == ""
    assert write(page, "x = 6\nx * 7", name) == "42\n |  | "
    assert write(page, "x = 6", name) == " | It ran, and printed nothing. | "
    page.evaluate(f"""document.querySelector('{name}').parentElement
        .querySelector(".lab-run + button").click()""")
    assert page.evaluate(f"document.querySelector('{name}').value") == begun


def test_the_first_page_has_a_task_that_works_and_can_be_done_better(page):
    page.open(f"{PAGES.as_uri()}/intro.html")
    name = "#lab-allreduce-4"
    run = f"document.querySelector('{name}').parentElement.querySelector('.lab-run')"
    page.evaluate(f"{run}.click()")
    page.until(f"!{run}.disabled", 90)
    said = page.evaluate(SAID % name)
    assert "2 devices, arrays of 1: 2 rounds (1 is enough)" in said
    assert "8 devices, your round 1 of 14" in said
