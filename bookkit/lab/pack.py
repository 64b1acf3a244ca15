"""The sources that a page's Python needs, and which tasks run there.

A chapter's tasks run in a page if what their file imports, and what that imports, is
in the book or in Python's own library, needs no thread and no process, and no MXNet.
"""

import ast
import base64
import inspect
import io
import zipfile
from functools import cache
from pathlib import Path

from . import cells

ROOT = Path(__file__).parents[2]
#: What a page's Python does not have, or has without a use.
MISSING = {"mxnet", "d2l", "scipy", "IPython", "matplotlib", "threading", "queue",
           "subprocess", "multiprocessing", "concurrent", "socket", "ctypes"}
#: Packages of the book that are not for a cell that runs in a page.
NOT_FOR_CELLS = {"bookkit", "benchmarks", "netbox", "pslaunch", "trainkit", "peers"}
#: Packages of the book that a page may need.
OURS = ("exercisekit", "d2l_ext")
#: Files of this folder that do their work in the page.
HERE = ("arrays", "indexing", "scalars", "chance", "promises", "desk")
#: Folders whose files are looked for when a judge runs.
WHOLE = ("d2l_ext/data_parallel/allreduce",)
#: Not needed for what a judge does, or replaced by what a page can do.
EMPTY = {"d2l_ext/__init__.py": '"""In a page no engine is to be prepared."""',
         "bookkit/__init__.py": "", "bookkit/lab/__init__.py": "",
         "d2l_ext/devices/__init__.py": ""}


def files(root=ROOT):
    """Return {path: source} of all that the tasks of `chapters` need, and the desk."""
    wanted = {f"bookkit/lab/{name}.py" for name in HERE}
    wanted |= {"exercisekit/answers.py", "exercisekit/counts.py"}
    for path in chapters(root).values():
        wanted |= needed(path, root)
    for code in (code for codes in cells_of(root).values() for code in codes):
        wanted |= needed_by(code, root)
    for folder in WHOLE:
        for file in Path(root, folder).glob("*.py"):
            wanted |= needed(f"{folder}/{file.name}", root)
    for path in list(wanted):
        wanted |= {f"{p}/__init__.py" for p in map(str, Path(path).parents) if p != "."}
    found = {path: (Path(root) / path).read_text("utf-8") for path in sorted(wanted)}
    kept = {**found, **{k: v for k, v in EMPTY.items() if k in found}}
    kept["exercisekit/__init__.py"] = "from .answers import check, questions\n"
    return kept


def cells_of(root=ROOT):
    """Return {chapter: its editors' initial texts}, for chapters with editors."""
    found = {path.stem: cells.editors(path)
             for path in sorted(Path(root, "chapters").glob("*/*.ipynb"))}
    return {chapter: codes for chapter, codes in found.items() if codes}


def chapters(root=ROOT):
    """Return {chapter: its file}, of those whose tasks run in a page."""
    found = {}
    folder = Path(root) / "exercisekit"
    for file in sorted([*folder.glob("*/*.py"), *folder.glob("*/*/__init__.py")]):
        name = str(file.relative_to(root))
        path = file.parent if file.name == "__init__.py" else file
        if path.parent != folder and needed(name, root):
            found[path.stem] = name
    return found


def needed(path, root=ROOT):
    """Return `path` and all files it imports at its top; none if a page lacks one."""
    found, waiting = set(), [path]
    while waiting:
        found.add(file := waiting.pop())
        for name in imports(file, root):
            if name.split(".")[0] in MISSING:
                return set()
            at = _file(name, root)
            if at and at not in found:
                waiting.append(at)
    return found


@cache  # many files import the same
def imports(file, root=ROOT):
    """Return the full names of the modules that a book's file imports at its top."""
    module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    package = module if file.endswith("__init__.py") else module.rpartition(".")[0]
    return [*imported((Path(root) / file).read_text("utf-8"), package)]


def imported(code, package=""):
    """Yield full names of the modules that `code`, of `package`, imports at its top."""
    for node in ast.parse(code).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level]
            base = ".".join([*(above if node.level else []),
                             *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def needed_by(code, root=ROOT):
    """Return the book's files `code` imports; None if a page lacks an import."""
    found = set()
    for name in imported(code):
        at = _file(name, root)
        if name.split(".")[0] in MISSING | NOT_FOR_CELLS or at and not needed(at, root):
            return None
        found |= needed(at, root) if at else set()
    return found


def _file(name, root):
    if name.split(".")[0] not in OURS or name in OURS:
        return None
    path = name.replace(".", "/")
    at = (f"{path}.py", f"{path}/__init__.py")
    return next((p for p in at if (Path(root) / p).is_file()), None)


def stub(question):
    """Return the initial text of the editor: the head of the requested function."""
    if not hasattr(question, "judge"):
        return f"# {question.asked}\nanswer = None\n"
    right = question.right
    if inspect.isclass(right):
        return f"class {right.__name__}:\n    ...\n"
    return f"def {right.__name__}{inspect.signature(right)}:\n    ...\n"


@cache
def zipped(root=ROOT):
    """Return the files as a zip archive, in base64; for each `root` made once."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path, text in files(root).items():
            file.writestr(zipfile.ZipInfo(path), text, zipfile.ZIP_DEFLATED)
    return base64.b64encode(archive.getvalue()).decode("ascii")
