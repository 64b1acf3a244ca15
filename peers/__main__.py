"""`make peers`: run the techniques in MXNet, PyTorch and JAX, compare, and store.

    python -m peers                          all
    python -m peers data_parallel/ring …     some
    python -m peers --float64 …              the same in float64; stores nothing
    python -m peers --stale                  name the programs with old results

On each device, a peer's arrays must equal the chapter's to 1e-5 of an array's largest
value, to 1e-10 if both are float64, and each kind of collective must carry the same
number of bytes, unless the program's docstring says why not. A result that differs is
not stored.
"""

import argparse
import contextlib
import io
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from unittest import mock

import numpy

import peers
from pslaunch.temporary import Folder

#: The environment of `make peers`, unless this variable names an interpreter.
PEER_PYTHON = "D2L_EXT_PEER_PYTHON"
DEFAULT = peers.ROOT.parent / ".venv-bench" / "bin" / "python"
PACKAGE = {"torch": "torch", "jax": "jax"}
DEADLINE, SMALLEST = 300, 1e-12
BAR, FINE_BAR = 1e-5, 1e-10


class Different(Exception):
    """A peer's results differ from the chapter's; the message says by how much."""


def python():
    """Return the interpreter that should have PyTorch and JAX."""
    return os.path.abspath(os.environ.get(PEER_PYTHON) or DEFAULT)


def ours(name, root=peers.ROOT, fine=False):
    """Run the chapter's program here: its arrays, what it sent, what it printed.

    `fine`: numbers without a type are float64, as in `theirs`.
    """
    said = io.StringIO()
    with contextlib.redirect_stdout(said), _float64() if fine else nullcontext():
        made = runpy.run_path(str(peers.program(name, "mxnet", root)))
    arrays = [a.asnumpy() if hasattr(a, "asnumpy") else numpy.asarray(a)
              for a in made["result"]]
    return {"arrays": arrays, "sent": made["sent"], "output": said.getvalue()}


@contextlib.contextmanager
def _float64():
    """Make float64 the default type of MXNet's arrays in this context."""
    from mxnet import np

    makers = {name: getattr(np, name) for name in ("array", "zeros", "ones", "arange")}
    with contextlib.ExitStack() as stack:
        for name, make in makers.items():
            def made(*args, make=make, dtype=None, **options):
                return make(*args, dtype=dtype or "float64", **options)

            stack.enter_context(mock.patch.object(np, name, made))
        yield


def theirs(name, framework, root=peers.ROOT, fine=False):
    """Run a peer's program: as `ours`, but arrays by device, `sent` [calls, bytes]."""
    program = peers.program(name, framework, root)
    harness = Path(__file__).with_name(f"harness_{framework}.py")
    with Folder("d2l_ext-peers-") as folder:
        target = Path(folder) / "result.npz"
        words = [world(program)] if framework == "torch" else []
        said = _run([python(), str(harness), *words, str(program), str(target)], folder,
                    fine)
        sent = json.loads(Path(f"{target}.json").read_text("utf-8"))
        devices = {}
        with numpy.load(target) as found:
            for key in found:
                devices.setdefault(int(key.split(".")[0]), []).append(found[key])
    return {"devices": devices, "sent": sent, "output": said}


def world(program):
    """Return a PyTorch program's number of processes, from its docstring: a string."""
    words = program.read_text("utf-8").split("--nproc-per-node", 1)
    return words[1].split()[0] if len(words) == 2 else "1"


def _run(command, folder, fine):
    # Settings meant for MXNet's threads are not the peer's.
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("OMP_", "MXNET_", "PYTHON"))}
    env |= {"TMPDIR": folder, "JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": "1"}
    env |= {"JAX_ENABLE_X64": "1", "PEERS_FLOAT64": "1"} if fine else {}
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
                          start_new_session=True) as ran:
        try:
            out, err = ran.communicate(timeout=DEADLINE)
        except BaseException:
            os.killpg(ran.pid, signal.SIGKILL)  # with the processes of its ring
            raise
    if ran.returncode:
        raise Different("failed:\n" + "\n".join(err.splitlines()[-12:]))
    return out


def difference(ours, theirs):
    """Return the largest difference relative to its array's maximum, and the bound."""
    shapes = [a.shape for a in ours], [a.shape for a in theirs]
    if shapes[0] != shapes[1]:
        raise Different(f"arrays of {shapes[1]}, not of {shapes[0]}")
    kinds = {a.dtype for a in (*ours, *theirs)}
    apart = [float(abs(a.astype("float64") - b).max() / max(abs(a).max(), SMALLEST))
             for a, b in zip(ours, theirs)]
    if not all(numpy.isfinite(apart)):
        raise Different("arrays with numbers that are not finite")
    return max(apart), FINE_BAR if kinds == {numpy.dtype("float64")} else BAR


def furthest(reference, found):
    """Return `difference` of the device whose arrays differ most, and that device."""
    return max((*difference(reference["arrays"], arrays), device)
               for device, arrays in found["devices"].items())


def compare(reference, found, excused):
    """Raise `Different` if a peer's arrays or bytes differ; return the difference."""
    apart, bar, device = furthest(reference, found)
    if not apart <= bar:
        raise Different(f"arrays of device {device} differ by {apart:.1e}, "
                        f"more than {bar:.0e}")
    sent = {kind: amount for kind, (_, amount) in found["sent"].items() if amount}
    kept = {kind: amount for kind, amount in reference["sent"].items() if amount}
    wrong = {kind for kind in sent.keys() | kept.keys()
             if sent.get(kind) != kept.get(kind)}
    if wrong != excused.keys() - {"float64"}:
        raise Different(f"sent {sent}, the chapter {kept}; explained: {set(excused)}")
    return apart


def checked(name, framework, reference, root=peers.ROOT):
    """Run a peer and compare it; return the result to store. Raises `Different`."""
    begin = time.monotonic()
    found = theirs(name, framework, root)
    apart = compare(reference, found, peers.differs(name, framework, root))
    return {
        "digest": peers.digest(name, framework, root),
        "against": peers.digest(name, "mxnet", root),
        "version": version(framework), "date": today(), "difference": apart,
        "sent": found["sent"], "output": found["output"],
        "seconds": round(time.monotonic() - begin, 1),
    }


def of_chapter(name, reference, root=peers.ROOT):
    """Return the result to store of the chapter's own program."""
    import mxnet

    own = peers.digest(name, "mxnet", root)
    return {"digest": own, "against": own, "version": mxnet.__version__,
            "date": today(), "sent": reference["sent"], "output": reference["output"],
            "sums": sums(reference["arrays"])}


def sums(arrays):
    """Return the shape of each array, and three sums by which to recognize it."""
    found = []
    for a in arrays:
        flat = numpy.asarray(a, "float64").reshape(-1)
        waves = numpy.cos(numpy.arange(flat.size))
        found.append([list(a.shape), *(float(f"{s:.7g}") for s in
                      (flat.sum(), (flat**2).sum() ** 0.5, flat @ waves))])
    return found


def today():
    """Return the date, in UTC."""
    return datetime.now(timezone.utc).date().isoformat()


@cache
def version(framework):
    """Return the version of a framework in the peers' environment."""
    look = f"from importlib.metadata import version as v; print(v('{framework}'))"
    ran = subprocess.run([python(), "-I", "-c", look], capture_output=True, text=True,
                         check=True)
    return ran.stdout.strip().partition("+")[0]


def technique(name, root=peers.ROOT):
    """Run and compare one technique, and store it; return the lines to print."""
    reference = ours(name, root)
    kept, lines = {"mxnet": of_chapter(name, reference, root)}, []
    there = [f for f in PACKAGE if peers.program(name, f, root).is_file()]
    with ThreadPoolExecutor() as pool:
        found = {f: pool.submit(checked, name, f, reference, root) for f in there}
    for framework, future in found.items():
        words = f"{name:32} {peers.FRAMEWORKS[framework]:8}"
        try:
            kept[framework] = one = future.result()
            sent = ", ".join(f"{k} {n:,} B" for k, (_, n) in one["sent"].items())
            lines.append(f"{words} {one['difference']:.1e}  {sent}")
        except (Different, subprocess.SubprocessError) as error:
            lines.append(f"{words} DIFFERENT: {error}")
    path = root / "results" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return lines


def in_float64(name, root=peers.ROOT):
    """Compare one technique in float64; return the lines to print.

    Programs that ask for float32, such as those with Gluon's parameters, do not run.
    Differences above 1e-10 must be explained, and no others.
    """
    lines = []
    try:
        reference = ours(name, root, fine=True)
    except Exception as error:  # noqa: BLE001  of MXNet, and of the checks of arguments
        return [f"{name:32} not in float64: {str(error).strip().splitlines()[-1]}"]
    for framework in PACKAGE:
        if peers.program(name, framework, root).is_file():
            words = f"{name:32} {peers.FRAMEWORKS[framework]:8}"
            try:
                found = theirs(name, framework, root, fine=True)
                apart, bar, device = furthest(reference, found)
                why = peers.differs(name, framework, root).get("float64", "")
                if apart > (BAR if why else bar):
                    raise Different(f"by {apart:.1e}, more than {bar:.0e}")
                if why and apart <= bar:
                    raise Different(f"by {apart:.1e} only; explained: {why}")
                kinds = {str(a.dtype) for a in (*reference["arrays"],
                                                *found["devices"][device])}
                line = f"{words} {apart:.1e}  {', '.join(sorted(kinds))}  {why}"
                lines.append(line.rstrip())
            except (Different, subprocess.SubprocessError) as error:
                lines.append(f"{words} DIFFERENT: {error}")
    return lines


def main(argv=None):
    """Run what is asked for; return 1 if something differs, else 0.

    Ends with status 2 for an unknown technique, and without the peers' interpreter.
    """
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("names", nargs="*", metavar="PART/NAME", help="default: all")
    flags.add_argument("--stale", action="store_true",
                       help="name the programs that were changed since they were run")
    flags.add_argument("--float64", action="store_true",
                       help="compare in float64, to 1e-10, and store nothing")
    given = flags.parse_args(argv)
    if given.stale:
        for (name, framework), why in peers.all_stale().items():
            print(f"stale: {name}_{framework}.py: {why} (make peers NAME={name})")
        return 0
    unknown = set(given.names) - set(peers.techniques())
    if unknown:
        flags.error(f"no such technique: {', '.join(sorted(unknown))}")
    if not Path(python()).exists():
        flags.error(f"no PyTorch and no JAX here: make peers, or set {PEER_PYTHON}")
    import d2l_ext  # noqa: F401  (before mxnet, see d2l_ext.runtime)

    begin, wrong = time.monotonic(), 0
    for name in given.names or peers.techniques():
        for line in (in_float64 if given.float64 else technique)(name):
            print(line, flush=True)
            wrong += "DIFFERENT" in line
    print(f"{wrong} different; {time.monotonic() - begin:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
