"""Editors in the pages, in a browser, from files and from a server on this machine.

`make html` runs this on the pages that it built: D2L_EXT_HTML names their folder.
"""

import os
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import page_checks
import pytest

from browser import Browser, find_chromium

PAGES = Path(os.environ.get("D2L_EXT_HTML", "nowhere")).resolve()
PROGRAM = find_chromium()
pytestmark = pytest.mark.skipif(
    not (PROGRAM and (PAGES / "lab/engine.js").is_file()),
    reason="no pages with Python beside them: make html, with npm and Chromium")
PAGE, NAME = "chapters/data_parallel/allreduce.html", "#lab-allreduce-3"
RIGHT = """def broadcast(values, exchange):
    have = 1
    while have < len(values):
        pairs = [(i, i + have) for i in range(have) if i + have < len(values)]
        for (_, j), x in exchange({(i, j): values[i] for i, j in pairs}).items():
            values[j] = x
        have *= 2
"""
SAID = """(() => { const box = document.querySelector("%s").parentElement;
  return ["printed", "said", "round"].map((w) => box.querySelector(`.lab-${w}`)
    ?.textContent ?? "").join(" | "); })()"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *given):
        pass


@pytest.fixture(scope="module")
def loopback():
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=PAGES))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def page():
    with Browser(PROGRAM, deadline=90) as browser:
        yield browser.page()


def opened(page, where=None, width=page_checks.WIDE):
    page.resize(width)
    page.open(f"{where or PAGES.as_uri()}/{PAGE}")
    page.evaluate("localStorage.clear()")
    page.open(f"{where or PAGES.as_uri()}/{PAGE}")
    page.evaluate("""[...document.querySelectorAll(".cell")].find((cell) =>
        cell.textContent.includes('check("allreduce", 3, None)')).nextElementSibling
        .querySelector(".lab-open").click()""")


def write(page, code, name=NAME):
    """What the page says of `code`."""
    page.evaluate(f"document.querySelector('{name}').select()")
    page.type(code)
    run = f"document.querySelector('{name}').parentElement.querySelector('.lab-run')"
    page.evaluate(f"{run}.click()")
    page.until(f"!{run}.disabled", 90)
    return page.evaluate(SAID % name)


@pytest.mark.parametrize("width", [page_checks.WIDE, page_checks.NARROW])
@pytest.mark.parametrize("from_files", [True, False])
def test_what_a_reader_writes_is_judged_and_its_messages_shown(
    page, loopback, from_files, width
):
    opened(page, None if from_files else loopback, width)
    said = write(page, RIGHT)
    assert "Right. 8 devices: 3 rounds (3 are enough)" in said
    assert "8 devices, your round 1 of 3: 1 message of 1 number." in said
    urls = [e["request"]["url"] for e in page._said("Network.requestWillBeSent")]
    inside = ("file:", "data:", "blob:", loopback)
    assert urls and all(url.startswith(inside) for url in urls)
    page.evaluate(page_checks.SCRIPT)
    page.evaluate(page_checks.AXE + "; 0")
    faults = page.evaluate("faults()")
    assert not page_checks.unlisted(PAGE, faults, page_checks.LISTED)


def test_code_that_harms_is_met_with_a_clear_word_and_the_page_lives(page):
    opened(page)
    loop = "def broadcast(values, exchange):\n    while True: pass"
    assert "It has not ended after " in write(page, loop)
    assert "SyntaxError" in write(page, "what is this?")
    assert "NameError" in write(page, "nothing")
    assert "Right." in write(page, RIGHT)
    room = "x = []\nwhile True: x.append(bytes(10**8))"
    assert any(word in write(page, room) for word in ("MemoryError", "not ended after"))
    assert "It ended Python itself" in write(page, "import os\nos._exit(3)")
    assert "Right." in write(page, RIGHT)


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
    urls = [e["request"]["url"] for e in page._said("Network.requestWillBeSent")]
    assert any(url.endswith("lab.js") or "lab.js?" in url for url in urls)
    assert not [url for url in urls if "/lab/" in url]
    scripts = [PAGES / "_static" / name for name in ("lab.js", "lab.css")]
    assert sum(path.stat().st_size for path in scripts) < 20_000


def test_the_first_page_begins_with_a_task_that_works_and_can_be_done_better(page):
    page.open(f"{PAGES.as_uri()}/intro.html")
    name = "#lab-allreduce-4"
    run = f"document.querySelector('{name}').parentElement.querySelector('.lab-run')"
    page.evaluate(f"{run}.click()")
    page.until(f"!{run}.disabled", 90)
    said = page.evaluate(SAID % name)
    assert "2 devices, arrays of 1: 2 rounds (1 is enough)" in said
    assert "8 devices, your round 1 of 14" in said
