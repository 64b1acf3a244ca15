"""Seconds from Run to the verdict in a page: at first, and again.

    tests/helpers/lab_times.py _build/html --count 5      after make html

Each first verdict is one of a new browser with a profile of its own.
"""

import argparse
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]
from firefox import Firefox, find_firefox

from browser import Browser, find_chromium

RUN = """(async () => {
  const run = document.querySelector(".lab-run"), begin = performance.now();
  const said = run.closest(".lab").querySelector(".lab-said");
  run.click();
  while (run.disabled) await new Promise((then) => setTimeout(then, 5));
  if (said.hidden) throw new Error("no verdict");
  return (performance.now() - begin) / 1000;
})()"""


def times(kind, program, address):
    """Seconds of the first verdict, and the median of five more."""
    with kind(program, deadline=90) as browser:
        page = browser.page()
        page.resize(1400)
        page.open(address)
        first = page.evaluate(RUN)
        return first, median(page.evaluate(RUN) for _ in range(5))


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
        cold, warm = zip(*(times(kind, program, address) for _ in range(given.count)))
        print(f"{Path(program).name:>12}: first {median(cold):.2f} s, at most "
              f"{max(cold):.2f} s; again {median(warm):.3f}, at most {max(warm):.3f} s")


if __name__ == "__main__":
    main()
