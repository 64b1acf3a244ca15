"""Puts Python beside the pages: Pyodide, from the lock of a package registry.

    python -m bookkit.lab.engine              fetch it, if npm is here

`pack.js` has the book's own files; it is always there. `engine.js` has Pyodide's core,
as npm's lock in `tools/engine` names it; without it, an editor says how to get it.
Both are plain scripts, because a page that is read as a file may load nothing else.
"""

import base64
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from . import pack

ROOT = pack.ROOT
#: Where npm puts it, below the book's root; and where it lies beside the pages.
BROUGHT, BESIDE = Path("tools/engine/node_modules/pyodide"), "lab"
#: Parts of the engine: the loader, CPython in two files, and its library.
PARTS = {"loader": "pyodide.mjs", "asm": "pyodide.asm.mjs", "wasm": "pyodide.asm.wasm",
         "stdlib": "python_stdlib.zip"}
WITHOUT = ("The editors in the pages have no Python: `make engine` brings it, with npm "
           "and a network.")


def bring(root=ROOT):
    """Fetch the engine unless it is there; return whether it is."""
    there = Path(root) / BROUGHT / PARTS["wasm"]
    if not there.is_file() and shutil.which("npm"):
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(["npm", "ci", "--silent", "--ignore-scripts", "--no-audit",
                            "--fetch-retries=0", "--fetch-timeout=20000"],
                           cwd=Path(root) / "tools/engine", check=False, timeout=120)
    return there.is_file()


def lay(pages, root=ROOT):
    """Put the scripts into `lab` below `pages`; return whether the engine is there."""
    beside = Path(pages) / BESIDE
    beside.mkdir(exist_ok=True)
    worker = Path(__file__).with_name("worker.js").read_text("utf-8")
    own = {"files": pack.zipped(root), "worker": worker}
    (beside / "pack.js").write_text(f"LAB.files = {json.dumps(own)};\n", "utf-8")
    brought = Path(root) / BROUGHT
    if not (brought / PARTS["wasm"]).is_file():
        return False
    kept = Path(root) / "_build" / "engine.js"
    made_of = [Path(root, "tools/engine", name).stat().st_mtime
               for name in ("package-lock.json", "compile.mjs")]
    if not kept.is_file() or kept.stat().st_mtime < max(made_of):
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(script(brought), "utf-8")
    shutil.copyfile(kept, beside / "engine.js")
    return True


def script(brought):
    """Return the engine as a script: its parts, compressed, in base64."""
    parts = {name: (brought / file).read_bytes() for name, file in PARTS.items()}
    parts["stdlib"] = compiled(brought / PARTS["stdlib"])
    parts = {name: base64.b64encode(gzip.compress(part, 9, mtime=0)).decode("ascii")
             for name, part in parts.items()}
    lock = json.loads((brought / "pyodide-lock.json").read_text("utf-8"))
    lock = json.dumps({"info": lock["info"], "packages": {}})
    said = json.loads((brought / "package.json").read_text("utf-8"))
    notice = (f"/* Pyodide {said['version']}, {said['license']}; its source: "
              "https://github.com/pyodide/pyodide. CPython's library: PSF-2.0. */\n")
    return f"{notice}LAB.engine = {json.dumps({**parts, 'lock': lock})};\n"


def compiled(library):
    """Return the library as bytecode, which Node and Pyodide make; the library if they
    cannot.

    A page's Python would otherwise compile its imports at each start, which takes two
    thirds of the time from the first Run to its verdict.
    """
    program = library.parents[2] / "compile.mjs"
    cannot = OSError, subprocess.SubprocessError
    with tempfile.TemporaryDirectory() as folder, suppress(*cannot):
        made = Path(folder) / "compiled.zip"
        subprocess.run(["node", program, library, made], check=True, timeout=120)
        return made.read_bytes()
    return library.read_bytes()


if __name__ == "__main__":
    print(WITHOUT if not bring() else "The editors in the pages have Python.")
    sys.exit(0)
