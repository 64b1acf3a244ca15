"""Seconds from Run to the verdict in a page: at first, again, and for hostile code.

    tests/helpers/lab_times.py _build/html --count 5      after make html

Each first verdict is one of a new browser with a profile of its own.
"""

import argparse
import json
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]
from firefox import Firefox, find_firefox

from browser import Browser, find_chromium

#: The desk has an answer to each, and the page goes on.
HOSTILE = (
    "while True: pass", "x = [0] * 10**15", "x = []\nwhile True: x += [0] * 10**6",
    "1 / 0", "import os\nos._exit(1)", "what is it")
RUN = """(async () => {
  const run = document.querySelector(".lab-run"), begin = performance.now();
  const said = run.closest(".lab").querySelector(".lab-said");
  run.click();
  while (run.disabled) await new Promise((then) => setTimeout(then, 5));
  if (said.hidden && !said.closest(".lab").querySelector(".lab-printed").textContent)
    throw new Error("no answer");
  return (performance.now() - begin) / 1000;
})()"""


def type_it(code):
    """JavaScript that puts `code` into the first editor."""
    return f"document.querySelector('.lab textarea').value = {json.dumps(code)}"


def times(kind, program, address):
    """Seconds: the first verdict, the median of five, the longest of `HOSTILE`."""
    with kind(program, deadline=90) as browser:
        page = browser.page()
        page.resize(1400)
        page.open(address)
        first = page.evaluate(RUN)
        again = median(page.evaluate(RUN) for _ in range(5))
        hostile = []
        for code in HOSTILE:
            page.evaluate(type_it(code))
            hostile.append(page.evaluate(RUN))
            page.evaluate(type_it("answer = 1"))
            page.evaluate(RUN)
        return first, again, max(hostile)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("pages", type=Path)
    parser.add_argument("--count", type=int, default=5)
    given = parser.parse_args()
    address = (given.pages.resolve() / "intro.html").as_uri()
    for kind, program in ((Browser, find_chromium()), (Firefox, find_firefox())):
        if not program:
            print(f"no {kind.__name__} here")
            continue
        first, again, hostile = zip(
            *(times(kind, program, address) for _ in range(given.count)))
        print(f"{Path(program).name:>12}: first {median(first):.2f} s, at most "
              f"{max(first):.2f} s; again {median(again):.3f}, at most "
              f"{max(again):.3f} s; hostile code at most {max(hostile):.2f} s")


if __name__ == "__main__":
    main()
