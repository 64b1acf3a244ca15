"""Renders the book as HTML.

    tools/render.py     from the stored outputs; a warning is an error
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from sources import copy_sources

#: Where the pages land, below the book's root.
PAGES = Path("_build/html")


class RenderError(Exception):
    """The pages could not be rendered; the message holds what Sphinx said."""


def render(root, work, strict):
    """Render the book in the folder `work`; move the pages to `root / PAGES`.

    Arguments and errors as in `build`. Returns the path of the first page.
    """
    pages = build(work, "html", strict)
    shutil.rmtree(root / PAGES, ignore_errors=True)
    shutil.move(pages, root / PAGES)
    return root / PAGES / "index.html"


def build(work, builder, strict):
    """Have Jupyter Book build what lies in `work`; return the folder of the result.

    `builder`: `html`, or `singlehtml` for one page. Nothing is executed. With
    `strict`, a warning raises `RenderError`; without, it is printed.
    """
    config = work / "_config.yml"
    settings = yaml.safe_load(config.read_text())
    settings.setdefault("execute", {})["execute_notebooks"] = "off"
    config.write_text(yaml.safe_dump(settings, allow_unicode=True, sort_keys=False))

    options = ["--warningiserror", "--keep-going"] if strict else []
    program = "from jupyter_book.cli.main import main; main()"
    command = ["build", "--quiet", "--builder", builder, *options, "."]
    # Relative paths in the settings start where jupyter-book runs.
    result = subprocess.run(
        [sys.executable, "-c", program, *command],
        check=False,
        cwd=work,
        env={**os.environ, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = result.stdout.replace(f"{work}/", "")
    if result.returncode:
        raise RenderError(_warnings(said) or said)
    if _warnings(said):
        print(_warnings(said), file=sys.stderr)
    return work / "_build" / builder


def _warnings(said):
    marks = ("WARNING", "ERROR", "CRITICAL", "Extension error", "Exception")
    return "\n".join(ln for ln in said.splitlines() if any(m in ln for m in marks))


def main():
    """Render the stored outputs; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    root = parser.parse_args().root.resolve()
    work = root / "_build" / "stored"
    copy_sources(root, work)
    try:
        page = render(root, work, strict=True)
    except RenderError as error:
        print(f"{error}\nThe book was not rendered.", file=sys.stderr)
        return 1
    print(f"Rendered the stored outputs: {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
