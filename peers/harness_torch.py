"""Runs the PyTorch program of a page's tab as `torchrun` does; records its results.

    python harness_torch.py WORLD program_torch.py result.npz

Starts WORLD processes. Writes each one's `result`, a list of tensors, as arrays named
DEVICE.PLACE, and the collectives in the program's second cell: kind, number of calls,
and bytes sent by all together. All processes but the first may set `result` to None.
"""

import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import traceback
from collections import Counter

import torch
from torch import distributed as dist
from torch.distributed import distributed_c10d as c10d
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

#: Of an operator of c10d: the kind, and which of its arguments is what is sent.
KINDS = {
    "allreduce_": ("all_reduce", 0),
    "all_reduce": ("all_reduce", 0),
    "all_reduce_coalesced": ("all_reduce", 0),
    "_reduce_scatter_base_": ("reduce_scatter", 1),
    "reduce_scatter_": ("reduce_scatter", 1),
    "reduce_scatter_tensor": ("reduce_scatter", 0),
    "_allgather_base_": ("all_gather", 1),
    "allgather_": ("all_gather", 1),
    "all_gather_into_tensor": ("all_gather", 0),
    "all_gather_into_tensor_coalesced": ("all_gather", 0),
    "alltoall_base_": ("all_to_all", 1),
    "all_to_all_single": ("all_to_all", 0),
    "broadcast_": ("broadcast", 0),
    "scatter_": ("scatter", 1),
    "gather_": ("gather", 1),
    "send": ("send", 0),
}
#: Said, but nothing of the program's is sent.
QUIET = {"recv_", "barrier", "wait_tensor", "monitored_barrier_",
         "_wrap_tensor_autograd"}


def nbytes(value):
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, (list, tuple)):
        return sum(map(nbytes, value))
    return 0


def share(kind, payload, k):
    """Return the bytes one of `k` sends of its `payload`, whatever the algorithm."""
    if kind in ("send", "broadcast"):
        return payload
    if kind == "all_gather":  # its own part, to all others
        return (k - 1) * payload
    return {"all_reduce": 2, "reduce_scatter": 1}[kind] * payload * (k - 1) // k


def group_of(args):
    """Return how many processes the group among `args` has, and this one's rank."""
    for value in args:
        group = None
        if isinstance(value, torch.ScriptObject):
            group = dist.ProcessGroup.unbox(value)
        elif isinstance(value, str) and value.isdigit():
            group = c10d._resolve_process_group(value)
        if group is not None:
            return group.size(), group.rank()
    return dist.get_world_size(), dist.get_rank()


def bytes_sent(kind, payload, args):
    """Return the bytes this process sends in a collective of `kind` with `args`."""
    k, me = group_of(args)
    if kind == "all_to_all":
        return sent_to_others(payload, args, k, me)
    if kind == "broadcast":
        return payload * (k - 1) if me == args[2] else 0
    if kind in ("gather", "scatter"):  # all but the root's own part
        return payload * (k - 1) // k
    return share(kind, payload, k)


def sent_to_others(payload, args, k, me):
    """Return the bytes of an all-to-all's `payload` without this process's own part."""
    splits = [a for a in args if isinstance(a, list) and len(a) == k
              and all(isinstance(n, int) for n in a)]
    if not splits:
        return payload * (k - 1) // k
    rows = sum(splits[-1])  # the last are those of what is sent
    return payload * (rows - splits[-1][me]) // max(rows, 1)


class Count(TorchDispatchMode):
    """Counts the collectives of this process: `calls` by kind, and the bytes `sent`."""

    def __init__(self):
        super().__init__()
        self.calls, self.sent = Counter(), Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if DTensor in types:  # it calls operators on its parts: count those
            return NotImplemented
        space, _, name = func._schema.name.partition("::")
        if space in ("c10d", "_c10d_functional") and name not in QUIET:
            kind, place = KINDS[name]
            self.calls[kind] += 1
            self.sent[kind] += bytes_sent(kind, nbytes(args[place]), args)
        return func(*args, **(kwargs or {}))


def run_cells(program, around):
    """Run a program cell by cell, the second inside `around`; return its variables."""
    with open(program) as file:
        lines = file.read().splitlines(keepends=True)
    starts = [i for i, line in enumerate(lines) if line.startswith("# %%")]
    space = {"__name__": "__main__", "__file__": program}
    for n, (start, stop) in enumerate(zip(starts, [*starts[1:], len(lines)])):
        text = "\n" * start + "".join(lines[start:stop])
        with around if n == 1 else contextlib.nullcontext():
            exec(compile(text, program, "exec"), space)  # noqa: S102  our own program
    return space


def process(program, folder):
    count = Count()
    made = run_cells(program, count)
    rank = dist.get_rank() if dist.is_initialized() else 0
    with open(os.path.join(folder, f"sent{rank}.json"), "w") as file:
        sent = {kind: [n, count.sent[kind]] for kind, n in count.calls.items()}
        json.dump(sent, file)
    if rank == 0 or made["result"] is not None:
        result = [torch.as_tensor(a).detach().clone() for a in made["result"]]
        torch.save(result, os.path.join(folder, f"result{rank}.pt"))
    if dist.is_initialized():
        dist.destroy_process_group()


def start(rank, world, program, folder):
    """Start a process of the program, as `torchrun` would; return its id."""
    child = os.fork()
    if child:
        return child
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world),
                      LOCAL_WORLD_SIZE=str(world))
    code = 1
    try:
        process(program, folder)
        code = 0
    except BaseException:  # noqa: BLE001  a forked process must not return
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main(world, program, target):
    world = int(world)
    torch.set_num_threads(1)
    if os.environ.get("PEERS_FLOAT64"):
        torch.set_default_dtype(torch.float64)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ.update(OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo",
                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    with tempfile.TemporaryDirectory() as folder:
        children = {start(rank, world, program, folder) for rank in range(world)}
        while children:
            ended, status = os.wait()
            children.discard(ended)
            if status:  # the others may wait for it forever
                for child in children:
                    os.kill(child, signal.SIGKILL)
                sys.exit(f"{program}: a process ended with {status}")
        _write(folder, world, target)


def _write(folder, world, target):
    import numpy

    sent, arrays = {}, {}
    for rank in range(world):
        with open(os.path.join(folder, f"sent{rank}.json")) as file:
            for kind, (calls, amount) in json.load(file).items():
                seen = sent.setdefault(kind, [0, 0])
                seen[0], seen[1] = max(seen[0], calls), seen[1] + amount
        path = os.path.join(folder, f"result{rank}.pt")
        for i, a in enumerate(torch.load(path) if os.path.exists(path) else ()):
            wide = a.to(torch.float64) if a.dtype == torch.bfloat16 else a
            arrays[f"{rank}.{i}"] = wide.numpy()
    numpy.savez(target, **arrays)
    with open(f"{target}.json", "w") as file:
        json.dump(sent, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
