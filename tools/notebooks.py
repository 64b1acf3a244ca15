"""The chapters of a book: which there are, and how one of them is executed."""

import asyncio
import os
import re
import signal
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import (
    CellExecutionError,
    CellTimeoutError,
    DeadKernelError,
)
from sphinx_external_toc.parsing import FileItem, parse_toc_yaml

#: Seconds after which a cell is given up.
TIMEOUT = 600
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class ChapterError(Exception):
    """A cell of a chapter failed; the message shows which, and how."""


def chapters(root):
    """Return the paths, relative to `root`, of the notebooks in `_toc.yml`, in order.

    Raises `FileNotFoundError` for an entry that is no file.
    """
    site = parse_toc_yaml(Path(root) / "_toc.yml")

    def visit(name):
        yield Path(_existing(root, str(name)))
        for subtree in site[name].subtrees:
            for item in subtree.items:
                if isinstance(item, FileItem):
                    yield from visit(item)

    return [path for path in visit(site.root.docname) if path.suffix == ".ipynb"]


def _existing(root, name):
    for suffix in ("", ".ipynb", ".md", ".rst"):
        if (Path(root) / (name + suffix)).is_file():
            return name + suffix
    raise FileNotFoundError(f"_toc.yml names {name}, but there is no such chapter")


def code_cells(nb):
    """Return the code cells of `nb`."""
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def prepare_environment(environ=os.environ):
    """Change `environ`, which kernels inherit, so that outputs hold results only."""
    # A reader's setting may turn warnings on that are no part of the book.
    environ.pop("PYTHONWARNINGS", None)
    # Else the debugger in each kernel prints that it cannot see frozen modules.
    environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"


def execute(path, folder, log, on_cell=None, timeout=TIMEOUT):
    """Execute the notebook `path` with working folder `folder`; return the notebook.

    The kernel is the Python that runs this: none is registered, and none that a
    reader registered is used. What C code prints goes to the file `log`.
    `on_cell(number, count)` is called before each code cell.
    Cells tagged `raises-exception` may fail; another that does raises `ChapterError`.
    Control-C ends the kernel and raises `KeyboardInterrupt`.
    """
    nb = nbformat.read(path, as_version=4)
    code = [i for i, cell in enumerate(nb.cells) if cell.cell_type == "code"]
    current, interrupted = [], []

    def begin(notebook):
        # nbclient's own way to stop looks like a kernel that died.
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(
                number, lambda: (interrupted.append(True), task.cancel())
            )

    def started(cell, cell_index):
        if interrupted:  # as a cell ended: asyncio may lose a cancellation then
            raise asyncio.CancelledError
        if cell.cell_type == "code":
            current[:] = [cell_index]
            if on_cell:
                on_cell(code.index(cell_index) + 1, len(code))

    specs = KernelSpecManager(kernel_dirs=[])  # leaves the running Python only
    client = NotebookClient(
        nb,
        km=AsyncKernelManager(kernel_name="python3", kernel_spec_manager=specs),
        timeout=timeout,
        record_timing=False,
        store_widget_state=False,
        resources={"metadata": {"path": str(folder)}},
        # MXNet's log lines belong into the log, not into a cell's output.
        extra_arguments=["--IPKernelApp.capture_fd_output=False"],
        on_notebook_start=begin,
        on_cell_start=started,
    )
    try:
        with open(log, "w") as stream:
            # cleanup_kc: nbclient leaves a kernel running whose manager it was given.
            client.execute(cleanup_kc=True, stdout=stream, stderr=stream)
        if interrupted:
            raise KeyboardInterrupt
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except CellExecutionError as error:
        raise ChapterError(_describe(nb, current, _short(error))) from None
    except CellTimeoutError:
        reason = f"It ran for more than {timeout} seconds."
        raise ChapterError(_describe(nb, current, reason)) from None
    except DeadKernelError:
        if interrupted:
            raise KeyboardInterrupt from None
        tail = "\n".join(Path(log).read_text(errors="replace").splitlines()[-15:])
        reason = f"The kernel died. Its last words:\n{tail}"
        raise ChapterError(_describe(nb, current, reason)) from None
    return nb


def _short(error):
    """The error in a line or two, and the line of the cell that raised it."""
    marked = [
        line
        for line in _COLOURS.sub("", error.traceback).splitlines()
        if line.lstrip().startswith("-") and ">" in line[:12]
    ]
    where = f"{marked[0].strip()}\n" if marked else ""
    return f"{where}{error.ename}: {_COLOURS.sub('', error.evalue)}"


def _describe(nb, current, reason):
    if not current:  # the kernel did not get as far as the first cell
        return reason
    number = sum(cell.cell_type == "code" for cell in nb.cells[: current[0] + 1])
    source = "\n".join("    " + ln for ln in nb.cells[current[0]].source.splitlines())
    return f"code cell {number}:\n\n{source}\n\n{reason}"
