"""The chapters of a book: their list, executing one, outputs of earlier runs."""

import asyncio
import atexit
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from importlib import metadata
from itertools import groupby
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

from d2l_ext.runtime import cores
from packages import SOURCES

#: Seconds after which a cell is given up.
TIMEOUT = 600
#: A change of these variables may change what a chapter shows.
PREFIXES = ("D2L_EXT_", "MXNET_", "OMP_")
#: They say how often a finding is measured, where it is written, and whether one that
#: fails is an error: no part of what a chapter shows.
OF_THE_RUN = ("D2L_EXT_FINDINGS", "D2L_EXT_RECORDING", "D2L_EXT_TRIES")
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
#: Metadata that editors write for themselves.
VOLATILE = ("execution", "ExecuteTime", "collapsed", "scrolled", "vscode")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class ChapterError(Exception):
    """A cell of a chapter failed; the message shows which, and how.

    `cell`: the number of the code cell, or `None` if the kernel did not get as far.
    `first_line`: of the error. `source`: the code of the cell.
    """

    def __init__(self, message, first_line="", cell=None, source=""):
        super().__init__(message)
        self.first_line, self.cell, self.source = first_line, cell, source


def chapters(root):
    """Return the paths, relative to `root`, of the notebooks in `_toc.yml`, in order.

    Raises `FileNotFoundError` for an entry that is not a file.
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
    """Change `environ`, which kernels inherit, so that outputs contain only results."""
    # A reader's setting may turn warnings on that are no part of the book.
    environ.pop("PYTHONWARNINGS", None)
    # Else the debugger in each kernel prints that it cannot see frozen modules.
    environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"


def execute(path, folder, log, on_cell=None, timeout=TIMEOUT, variables=None):
    """Execute the notebook `path` with working folder `folder`; return the notebook.

    The kernel is the Python that runs this: none is registered, and none that a
    reader registered is used. What C code prints goes to the file `log`.
    `on_cell(number, count)` is called before each code cell. `variables`: what the
    kernel's environment has besides or instead of this one; `None` takes one away.
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
        if cell.cell_type == "code" and cell_index >= 0:
            current[:] = [cell_index]
            if on_cell:
                on_cell(code.index(cell_index) + 1, len(code))

    specs = KernelSpecManager(kernel_dirs=[])  # leaves the running Python only
    client = NotebookClient(
        nb,
        km=AsyncKernelManager(kernel_name="python3", kernel_spec_manager=specs),
        timeout=timeout,
        startup_timeout=TIMEOUT,  # nbclient gives a kernel a minute to start
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
            client.execute(
                cleanup_kc=True, stdout=stream, stderr=stream, env=_with(variables)
            )
        if interrupted:
            raise KeyboardInterrupt
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except CellExecutionError as error:
        said = f"{error.ename}: {_COLOURS.sub('', error.evalue)}"
        raise _failure(nb, current, said, _marked_line(error)) from None
    except CellTimeoutError:
        said = f"It ran for more than {timeout} seconds."
        raise _failure(nb, current, said) from None
    except DeadKernelError:
        if interrupted:
            raise KeyboardInterrupt from None
        raise _failure(nb, current, f"The kernel died.{_last_words(log)}") from None
    except RuntimeError as error:  # of jupyter_client: it died before it answered
        if current:
            raise
        atexit.unregister(client._cleanup_kernel)  # nbclient forgets to
        said = f"The kernel did not start: {error}.{_last_words(log)}"
        raise _failure(nb, current, said) from None
    return nb


def _last_words(log):
    """Return the last lines that a kernel printed, from its file `log`."""
    tail = "\n".join(Path(log).read_text(errors="replace").splitlines()[-15:])
    return f" Its last words:\n{tail}"


def _with(variables):
    """Return this environment, changed by `variables`."""
    changed = {**os.environ, **(variables or {})}
    return {name: value for name, value in changed.items() if value is not None}


def _marked_line(error):
    """Return the cell's line that raised the error, with an arrow; "" for none."""
    for line in _COLOURS.sub("", error.traceback).splitlines():
        if line.lstrip().startswith("-") and ">" in line[:12]:
            return f"{line.strip()}\n"
    return ""


def _failure(nb, current, said, where=""):
    """Return the current cell's error; `current`: its index in a list, or empty."""
    first_line = said.partition("\n")[0]
    if not current:
        return ChapterError(said, first_line)
    number = sum(cell.cell_type == "code" for cell in nb.cells[: current[0] + 1])
    source = nb.cells[current[0]].source
    shown = "\n".join("    " + line for line in source.splitlines())
    message = f"code cell {number}:\n\n{shown}\n\n{where}{said}"
    return ChapterError(message, first_line, number, source)


def normalise(nb):
    """Remove from `nb`, in place, the parts that do not depend on its content."""
    nb.metadata.kernelspec = nbformat.from_dict(KERNEL)
    nb.metadata.language_info = nbformat.from_dict({"name": "python"})
    nb.metadata.pop("widgets", None)
    count = 0
    for cell in nb.cells:
        for name in VOLATILE:
            cell.metadata.pop(name, None)
        if cell.cell_type != "code":
            continue
        if cell.execution_count is not None:
            count += 1
            cell.execution_count = count
        cell.outputs = _joined(cell.outputs)
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = cell.execution_count
    return nb


def _joined(outputs):
    """Join neighbouring pieces of one stream, which is cut at random places."""
    joined = []
    for _, pieces in groupby(outputs, key=lambda out: out.get("name", id(out))):
        first, *others = pieces  # only a stream has a name
        for piece in others:
            first.text += piece.text
        joined.append(first)
    return joined


def surroundings(root):
    """Return a digest of what all chapters depend on.

    That is the code of `SOURCES`, their figures and stored results, the installed
    packages, the environment variables that MXNet and the library read, and the
    devices.
    """
    root = Path(root)
    sources = sorted(path for p in SOURCES for path in root.glob(f"{p}/**/*")
                     if path.suffix in (".py", ".js", ".css", ".json"))
    tools = sorted(Path(__file__).parent.glob("*.py"))
    facts = {
        "sources": {str(p.relative_to(root)): p.read_text() for p in sources},
        "tools": {p.name: p.read_text() for p in tools},
        "python": sys.version,
        "packages": sorted(
            f"{d.metadata['Name']}=={d.version}" for d in metadata.distributions()
        ),
        "environment": {
            k: v for k, v in sorted(os.environ.items())
            if k.startswith(PREFIXES) and k not in OF_THE_RUN
        },
        "devices": [platform.machine(), cores(), _gpus()],
    }
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _gpus():
    if not shutil.which("nvidia-smi"):
        return ""
    query = ["nvidia-smi", "-L"]
    return subprocess.run(query, check=False, capture_output=True, text=True).stdout


class Cache:
    """Stored outputs in `folder`, for the given `surroundings`."""

    def __init__(self, folder, surroundings):
        self.folder = Path(folder)
        self.surroundings = surroundings

    def _file(self, path, nb):
        # Text around the cells is no part of the key: it is not executed.
        cells = [(c.source, c.metadata.get("tags", [])) for c in code_cells(nb)]
        key = json.dumps([self.surroundings, str(path), cells]).encode()
        return self.folder / f"{path.stem}-{hashlib.sha256(key).hexdigest()[:32]}.json"

    def recall(self, path, nb):
        """Put stored outputs into `nb`, chapter `path`; say whether there are any.

        Its metadata `made_here`, how long that took and what it found, come with them.
        """
        try:
            stored = json.loads(self._file(path, nb).read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return False
        nb.metadata["made_here"] = stored["made_here"]
        for cell, (count, outputs) in zip(code_cells(nb), stored["outputs"]):
            cell.execution_count = count
            cell.outputs = [nbformat.from_dict(output) for output in outputs]
        return True

    def keep(self, path, nb):
        """Store the outputs of the executed `nb`, chapter `path`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        target = self._file(path, nb)
        stored = {
            "made_here": nb.metadata.get("made_here"),
            "outputs": [(c.execution_count, c.outputs) for c in code_cells(nb)],
        }
        # Renamed into place, so that an interrupted write leaves nothing behind.
        target.with_suffix(".new").write_text(json.dumps(stored))
        target.with_suffix(".new").replace(target)
