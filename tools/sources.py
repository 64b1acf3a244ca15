"""The book's source files, a copy of them to work in, and the pages made of one."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import yaml

from bookkit.lab import engine
from d2l_ext.runtime import cores

#: Where the pages and the PDF land, below the book's root.
PAGES, PDF = Path("_build/html"), Path("_build/many_devices.pdf")
#: Where pages say that there is a PDF, if there is one.
PLACE = "<!-- the PDF -->"
#: Not walked when the checkout is no git repository.
_OUTSIDE = {"_build", "__pycache__", "node_modules"}


class RenderError(Exception):
    """The pages could not be rendered; the message holds Sphinx's output."""


def source_files(root):
    """Return the files of the book below `root`, relative to it.

    These are the files that git tracks or would track; without a repository, all
    but hidden ones and build results.
    """
    listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed is not None:
        names = {Path(name) for name in listed.split("\0") if name}
        return sorted(name for name in names if (root / name).is_file())
    found = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [s for s in subfolders if s not in _OUTSIDE and s[0] != "."]
        found += [Path(folder, name).relative_to(root) for name in names]
    return sorted(found)


def copy_sources(root, target):
    """Make `target` a copy of the book below `root`, and of nothing else."""
    shutil.rmtree(target, ignore_errors=True)
    for name in source_files(root):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, target / name)


def state(root):
    """Return the changed files of the checkout: `{file: digest of its content}`.

    Only files that differ from the last commit are listed; `None` without git.
    """
    status = _git(root, "status", "--porcelain=v1", "-z", "--no-renames")
    if status is None:
        return None
    changed = {}
    for entry in filter(None, status.split("\0")):
        file = Path(root, entry[3:])
        content = file.read_bytes() if file.is_file() else b""
        changed[entry[3:]] = entry[:2] + hashlib.sha256(content).hexdigest()
    return changed


def differences(before, after):
    """Return the files whose `state` is not the same, sorted."""
    if before is None or after is None:
        return []
    return sorted(
        name
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    )


def _git(root, *arguments):
    command = ["git", "-C", str(root), "-c", f"safe.directory={root}"]
    try:
        result = subprocess.run(
            [*command, *arguments], check=False, capture_output=True, text=True
        )
    except FileNotFoundError:
        return None
    return result.stdout if result.returncode == 0 else None


def render(root, work, strict):
    """Render the book in the folder `work`; put the pages into `root / PAGES`.

    Arguments and errors as in `build`. Returns the path of the first page.
    """
    return publish(root, build(work, "html", strict))


def publish(root, pages):
    """Replace `root / PAGES` with a copy of the folder `pages`.

    The pages are complete at any moment, even if this is interrupted. Returns the
    path of the first page.
    """
    shown = root / PAGES
    new, old = (shown.with_name(f"{shown.name}.{word}") for word in ("new", "old"))
    for folder in (new, old):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(pages, new)
    engine.lay(new)
    # Control-C waits for the two names.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        if shown.exists():
            shown.rename(old)
        new.rename(shown)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    shutil.rmtree(old, ignore_errors=True)
    link_pdf(root)
    return shown / "index.html"


def link_pdf(root):
    """Put the PDF beside the pages, and a link to it into each, if both are there."""
    pdf, shown = root / PDF, root / PAGES
    if not (pdf.is_file() and shown.is_dir()):
        return
    shutil.copyfile(pdf, shown / pdf.name)
    size = f"{pdf.stat().st_size / 1e6:.0f} MB"
    for page in shown.rglob("*.html"):
        text = page.read_text("utf-8")
        if PLACE in text:
            up = "../" * (len(page.relative_to(shown).parts) - 1)
            link = f'<a href="{up}{pdf.name}">The book as a PDF</a>, {size}'
            page.write_text(text.replace(PLACE, f'<p class="pdf">{link}</p>'), "utf-8")


def build(work, builder, strict, **variables):
    """Build the book in `work` with Jupyter Book; return the folder of the result.

    `builder`: `html`, or `singlehtml` for one page. Nothing is executed. With
    `strict`, a warning raises `RenderError`; without, it is printed. `variables`: more
    of the environment, such as `BOOK_REFERENCE_LATER` of `_sphinx/ext/api_pages.py`.
    """
    config = work / "_config.yml"
    settings = yaml.safe_load(config.read_text())
    settings.setdefault("execute", {})["execute_notebooks"] = "off"
    config.write_text(yaml.safe_dump(settings, allow_unicode=True, sort_keys=False))

    if builder == "singlehtml":  # what `help` prints is not for paper
        contents = yaml.safe_load((work / "_toc.yml").read_text())
        for entry in (e for part in contents["parts"] for e in part["chapters"]):
            entry.pop("sections", None)
        (work / "_toc.yml").write_text(yaml.safe_dump(contents, sort_keys=False))

    options = ["--warningiserror", "--keep-going"] if strict else []
    # One process for each core; Jupyter Book's command has no flag for it.
    program = (
        "from functools import partial; from jupyter_book import sphinx\n"
        f"sphinx.build_sphinx = partial(sphinx.build_sphinx, jobs={cores()})\n"
        "from jupyter_book.cli.main import main; main()"
    )
    command = ["build", "--quiet", "--builder", builder, *options, "."]
    # Relative paths in the settings start where jupyter-book runs.
    result = subprocess.run(
        [sys.executable, "-c", program, *command],
        check=False,
        cwd=work,
        env={**os.environ, "NO_COLOR": "1", **variables},
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
