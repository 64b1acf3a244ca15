"""The rows of the table: what is measured, and by which program."""

from collections import namedtuple

#: `baseline`: the row on one device that `id` is compared with. `threads`: how
#: many compute at a time. `cores`: how many the process may use. One device of
#: MXNet may use two: its worker computes on one while Python runs on the other.
Row = namedtuple("Row", "id name baseline devices threads cores script peer")


#: What PyTorch's steps are also measured with: {end of the row's id: in words}.
OPTIONS = {"-last": "channels last", "-compile": "compiled",
           "-compile-last": "compiled, channels last"}
_PEERS = {"torch": "benchmarks.data_parallel.steps_torch",
          "ddp": "benchmarks.data_parallel.steps_torch",
          "jax": "benchmarks.data_parallel.steps_jax"}


def _row(id, name, baseline, devices, threads, cores):
    kind = id.split("-")[0]
    script = _PEERS.get(kind, "benchmarks.data_parallel.steps_mxnet")
    return Row(id, name, baseline, devices, threads, cores, script, kind in _PEERS)


ROWS = (
    _row("scratch-1", "MXNet from scratch, 1 device", "scratch-1", 1, 1, 2),
    _row("scratch-2", "MXNet from scratch, 2 devices", "scratch-1", 2, 2, 2),
    _row("flat-1", "… 1 device, one array of gradients", "flat-1", 1, 1, 2),
    _row("flat-2", "… 2 devices, one allreduce", "flat-1", 2, 2, 2),
    _row("replay-1", "… recorded and replayed, 1 device", "replay-1", 1, 1, 2),
    _row("replay-2", "… recorded and replayed, 2 devices", "replay-1", 2, 2, 2),
    _row("scratch-4", "MXNet from scratch, 4 devices", "scratch-1", 4, 4, 4),
    # One device needs no kvstore: a Trainer makes none, whichever is asked for.
    _row("gluon-1", "Gluon hybridized, 1 device", "gluon-1", 1, 1, 2),
    _row("gluon-2-local", "Gluon, 2 devices, kvstore local", "gluon-1", 2, 2, 2),
    _row("gluon-2-device", "Gluon, 2 devices, kvstore device", "gluon-1",
         2, 2, 2),
    _row("torch-1", "PyTorch, 1 process, 1 thread", "torch-1", 1, 1, 2),
    *[_row(f"torch-1{option}", f"… 1 thread, {name}", f"torch-1{option}", 1, 1, 2)
      for option, name in OPTIONS.items()],
    _row("torch-2", "PyTorch, 1 process, 2 threads", "torch-1", 1, 2, 2),
    *[_row(f"torch-2{option}", f"… 2 threads, {name}", f"torch-1{option}", 1, 2, 2)
      for option, name in OPTIONS.items()],
    _row("ddp-2", "PyTorch DDP, 2 processes, gloo", "torch-1", 2, 2, 2),
    *[_row(f"ddp-2{option}", f"… {name}", f"torch-1{option}", 2, 2, 2)
      for option, name in OPTIONS.items()],
    _row("jax-1-core", "JAX, 1 host device, 1 core", "jax-1-core", 1, 1, 1),
    _row("jax-1", "JAX, 1 host device, 2 cores", "jax-1-core", 1, 2, 2),
    _row("jax-2", "JAX, 2 host devices", "jax-1-core", 2, 2, 2),
)

#: Rows that the bars compare: data-parallel on two devices, and PyTorch on two cores.
SCRATCH = ("scratch-2", "flat-2", "replay-2")
GLUON = ("gluon-2-local", "gluon-2-device")
TORCH = tuple(row.id for row in ROWS if row.id.startswith(("torch-2", "ddp-2")))


def is_peer(entry):
    """Return whether an entry of the result is another library's."""
    return entry["id"].split("-")[0] in _PEERS


def chosen(only, peers, peer_python):
    """Split `ROWS` into those to start and those left out.

    `only`: beginnings of row ids, empty for all. `peers`: whether to start them.
    `peer_python`: their interpreter, or None. Returns `(rows, missing)`, where
    `missing` maps the id of every other row to the reason.
    Raises `ValueError` when an entry of `only` fits no row.
    """
    for start in only:
        if not any(row.id.startswith(start) for row in ROWS):
            known = ", ".join(row.id for row in ROWS)
            raise ValueError(f"--only {start}: no id begins with it. Rows: {known}")
    missing = {}
    for row in ROWS:
        if only and not row.id.startswith(tuple(only)):
            missing[row.id] = "left out by --only"
        elif row.peer and not peers:
            missing[row.id] = "left out by --no-peers"
        elif row.peer and peer_python is None:
            missing[row.id] = "not installed: make bench-peers"
    return [row for row in ROWS if row.id not in missing], missing


def command(row, python, peer_python, problem):
    """Return the command line that starts the worker of `row`."""
    interpreter = peer_python if row.peer else python
    return [str(interpreter), "-m", row.script, row.id, str(problem)]
