"""The ladder: seconds until a network has learned something, each rung one change.

    make race                       climb it, and store what this machine took
    make race ARGS="--rounds 1"     look only

LeNet reads the digits, and a small decoder (`ladder_decoder.py`) a text. A rung names
the one below it that it changes. What did not help stays.
"""

import d2l_ext  # noqa: F401, I001  first: it prepares MXNet's engine

import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import median

import numpy
from mxnet import autograd, gluon, np, npx

import mxnet as mx
from bookkit import stored
from d2l_ext import data_parallel
from d2l_ext.data import load_arrays
from d2l_ext.data_parallel import flat, lenet, minibatch, overlap
from d2l_ext.devices import try_all_devices

from .. import command, machine
from ..scale.rosetta.mxnet_steps import gluon_lenet
from . import ladder_decoder as decoder

#: The prefix of stored results, one for each make of machine.
NAME = "ladder-"
#: How Gluon's blocks are hybridized.
STATIC = {"static_alloc": True, "static_shape": True}


class Digits:
    """LeNet has learned when it reads this share of the held-out digits."""

    target, epochs = 0.95, 30

    def __init__(self):
        self.data = load_arrays("digits")

    def start(self, rung, seed):
        """Return the step of `rung`, with new weights."""
        return rung.step(lenet.init_params(seed=seed), rung.batch,
                         try_all_devices(rung.devices))

    def spans(self, batch, seed):
        """Yield minibatches (X, y): one epoch after another, without left-overs."""
        order = numpy.random.RandomState(seed)
        for _ in range(self.epochs):
            yield self._epoch(order.permutation(len(self.data.train_y)), batch)

    def _epoch(self, chosen, batch):
        for start in range(0, len(chosen) - batch + 1, batch):
            own = chosen[start:start + batch]
            yield (np.array(self.data.train_X[own]),
                   np.array(self.data.train_y[own], dtype="int32"))

    def solved(self, params):
        scores = lenet.lenet(np.array(self.data.test_X), params).asnumpy()
        right = scores.argmax(axis=1) == self.data.test_y
        return bool(right.mean() >= self.target)


class PerArray:
    """A step as it is written first: each array has its own update and allreduce."""

    def __init__(self, params, batch, devices):
        self.devices = devices
        self.replicas = [data_parallel.get_params(params, d) for d in devices]

    def __call__(self, X, y, lr):
        data_parallel.train_batch(X, y, self.replicas, self.devices, lr)

    def params(self):
        return self.replicas[0]


class Reads(PerArray):
    """The same, with a loop that reads the loss of every step."""

    def __call__(self, X, y, lr):
        params = self.replicas[0]
        with autograd.record():
            loss = lenet.loss(lenet.lenet(X, params), y).sum()
        loss.backward()
        self.seen = float(loss)
        for p in params:
            p[:] -= lr * p.grad / len(X)


class OneArray(PerArray):
    """All parameters of a replica in one array, and all gradients in another."""

    def __init__(self, params, batch, devices):
        self.devices = devices
        self.replicas = [flat.get_flat_params(params, d) for d in devices]

    def __call__(self, X, y, lr):
        flat.train_batch(X, y, self.replicas, self.devices, lr)

    def params(self):
        return self.replicas[0].params


class Replayed(PerArray):
    """Forward and backward recorded once, replayed in two calls."""

    def __init__(self, params, batch, devices):
        X, y = np.zeros((batch, 1, 28, 28)), np.zeros(batch, dtype="int32")
        self.plans = flat.record_steps(params, X, y, devices)

    def __call__(self, X, y, lr):
        flat.replay_batch(X, y, self.plans, lr)

    def params(self):
        return self.plans[0].replica.params


class OneUpdate(Replayed):
    """The update as one operator instead of three."""

    def __init__(self, params, batch, devices):
        super().__init__(params, batch, devices)
        for plan in self.plans:
            plan.replica.update = partial(fused_update, plan.replica)


def fused_update(replica, lr, n):
    values, gradients = (
        array.as_nd_ndarray() for array in (replica.values, replica.gradients)
    )
    mx.nd.sgd_update(values, gradients, lr=lr, wd=0, rescale_grad=1 / n, out=values)


class Joined(Replayed):
    """The graph after MXNet's subgraph backend has joined convolution and ReLU."""

    def __init__(self, params, batch, devices):
        super().__init__(params, batch, devices)
        for plan in self.plans:
            bind(plan, lenet.lenet, "MKLDNN")


class ReluPool(Replayed):
    """ReLU and pooling as one operator, `relu_pool.cc`.

    MXNet gives each operator of a loaded library a generator of random numbers. With
    one for all CPU contexts, the default, two devices take turns: `make race` asks for
    16 of them.
    """

    def __init__(self, params, batch, devices):
        super().__init__(params, batch, devices)
        relu_pool()
        for plan in self.plans:
            bind(plan, lenet_of_fewer_operators)


def bind(plan, net, backend=None):
    """Let `plan` replay the graph of `net`, partitioned by a subgraph backend."""
    with autograd.record():
        losses = lenet.loss(net(plan.X, plan.replica.params), plan.y)
    graph = autograd.get_symbol(losses)
    names = graph.list_arguments()  # in the order of use, as in `flat.RecordedStep`
    arrays = [plan.X, *plan.replica.params, plan.y]
    if backend:
        known = {name: a.as_nd_ndarray() for name, a in zip(names, arrays)}
        graph = graph.optimize_for(backend, args=known)
    grads = dict(zip(names[1:-1], [p.grad for p in plan.replica.params]))
    wanted = {name: "write" if name in grads else "null" for name in names}
    plan.replay = graph.bind(plan.X.ctx, arrays, grads, wanted)


def lenet_of_fewer_operators(X, params):
    """Return `lenet.lenet`, with ReLU and pooling as one operator."""
    W1, b1, W2, b2, W3, b3, W4, b4 = params
    h = npx.convolution(X, W1, b1, kernel=(3, 3), num_filter=20)
    h = relu_pool()(h.as_nd_ndarray()).as_np_ndarray()
    h = npx.convolution(h, W2, b2, kernel=(5, 5), num_filter=50)
    h = relu_pool()(h.as_nd_ndarray()).as_np_ndarray().reshape(h.shape[0], -1)
    return np.dot(npx.relu(np.dot(h, W3) + b3), W4) + b4


@cache
def relu_pool():
    """Return MXNet's operator of `relu_pool.cc`; raise where it cannot be compiled."""
    mxnet, source = Path(mx.__file__).parent, Path(__file__).with_name("relu_pool.cc")
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/librelu_pool.so"
        subprocess.run(
            ["g++", "-O3", "-march=native", "-std=c++11", "-shared", "-fPIC",
             f"-I{mxnet}/include", source, mxnet / "src" / "lib_api.cc",
             "-o", library],
            check=True, capture_output=True,
        )
        mx.library.load(library, verbose=False)
    return mx.nd.relu_pool


class ChannelsLast(PerArray):
    """Images and weights with their channels as the last axis."""

    def __init__(self, params, batch, devices):
        super().__init__(params, batch, devices)
        X, W = np.zeros((batch, 28, 28, 1)), params[0].transpose(0, 2, 3, 1)
        npx.convolution(X, W, params[1], kernel=(3, 3), num_filter=20,
                        layout="NHWC").wait_to_read()


class WithLoss(gluon.HybridBlock):
    """A network and its loss in one block: one plan, and one call, for both."""

    def __init__(self, net):
        super().__init__()
        self.net, self.loss = net, gluon.loss.SoftmaxCrossEntropyLoss()

    def hybrid_forward(self, F, X, y):
        return self.loss(self.net(X), y)


class Gluon(PerArray):
    """Network and loss as one hybridized block, with a `Trainer`."""

    def __init__(self, params, batch, devices, kvstore="device"):
        self.devices, self.net = devices, gluon_lenet(params, devices)
        self.loss_of, self.kvstore = WithLoss(self.net), kvstore
        self.loss_of.hybridize(**STATIC)
        self.trainer = gluon.Trainer(self.net.collect_params(), "sgd",
                                     {"learning_rate": 0}, kvstore=kvstore)

    def __call__(self, X, y, lr):
        self.trainer.set_learning_rate(lr)
        shards = minibatch.split_batch(X, y, self.devices)
        with autograd.record():
            losses = [self.loss_of(*shard) for shard in zip(*shards)]
        autograd.backward(losses)
        self.trainer.step(len(X))

    def params(self):
        own = [p.data(self.devices[0]) for p in self.net.collect_params().values()]
        return [p.T if p.ndim == 2 else p for p in own]


class Buckets(PerArray):
    """Gradients in buckets of 100 KB, each exchanged while backward goes on."""

    def __init__(self, params, batch, devices):
        super().__init__(params, batch, devices)
        self.buckets = [overlap.attach_buckets(own, 1e5) for own in self.replicas]

    def __call__(self, X, y, lr):
        overlap.train_batch(X, y, self.buckets, self.devices, lr)


@dataclass(frozen=True)
class Rung:
    """One way of training; `under`: the rung that it changes in one respect."""

    id: str
    change: str
    step: type
    under: str
    batch: int = 256
    lr: float = 0.2
    devices: int = 1
    bound: bool = False


DIGITS = (
    Rung("reads", "one device; the loop reads each loss", Reads, ""),
    Rung("keeps", "the loop does not read the loss", PerArray, "reads"),
    Rung("channels-last", "channels as the last axis", ChannelsLast, "keeps"),
    Rung("one-array", "all parameters in one array", OneArray, "keeps"),
    Rung("hybridised", "Gluon's hybridized block instead", Gluon, "keeps"),
    Rung("replayed", "recorded once, replayed", Replayed, "one-array"),
    Rung("one-update", "the update as one operator", OneUpdate, "replayed"),
    Rung("joined", "convolution and ReLU joined by a backend", Joined, "replayed"),
    Rung("relu-pool", "ReLU and pooling as one operator", ReluPool, "replayed"),
    Rung("two-256", "two devices", Replayed, "replayed", devices=2),
    Rung("relu-pool-2", "two devices, ReLU and pooling as one", ReluPool, "two-256",
         devices=2),
    Rung("batch-64", "one device, 64 images a step", Replayed, "replayed", 64),
    Rung("two-64", "two devices, 64 images a step", Replayed, "batch-64", 64,
         devices=2),
    Rung("bound", "the same, each device bound to a core", Replayed, "two-64", 64,
         devices=2, bound=True),
    Rung("two-plain", "the plain step on two devices", PerArray, "keeps", devices=2),
    Rung("buckets", "its exchange in buckets, during backward", Buckets, "two-plain",
         devices=2),
)
_words = partial(Rung, batch=32, lr=2e-3)
TEXT = (
    _words("words", "one device, 32 rows; Adam for each array", decoder.PerArray, ""),
    _words("attention", "attention by two operators that copy less", decoder.Fused,
           "words"),
    _words("products", "the norm by products", decoder.Products, "attention"),
    _words("words-replayed", "recorded once, replayed; one Adam", decoder.Replayed,
           "products"),
    _words("words-two", "two devices", decoder.Replayed, "words-replayed", devices=2),
    _words("heads", "two devices, each with half of the heads", decoder.OverHeads,
           "attention", devices=2),
    _words("rows-8", "one device, 8 rows a step", decoder.Replayed, "words-replayed",
           batch=8),
    _words("rows-8-two", "two devices, 8 rows a step", decoder.Replayed, "rows-8",
           batch=8, devices=2),
)


def measured(rounds=3):
    """Measure the seconds until a network has learned its task, on each rung of the
    ladder.

    In each round all rungs train from the weights of one seed, in turns. The clock
    runs while they bind and train, and rests while held-out examples are tried. Each
    ratio is taken within a round.
    """
    npx.set_np()
    with machine.watched() as quiet:
        limits = device_limits()
        digits = ladder(DIGITS, Digits(), OPERATORS, limits, rounds)
        words = decoder.Text()
        text = ladder(TEXT, words, words.operators(), limits, rounds)
    return {
        "quiet": quiet, "generators": generators(), "rounds": rounds,
        "peak": limits[0], "bandwidth": limits[1],
        "target": {"digits": Digits.target, "text": words.target},
        "rows": [{"task": "digits", **row} for row in digits]
        + [{"task": "text", **row} for row in text],
    }


def generators():
    """Return how many generators of random numbers all CPU contexts share."""
    return int(os.environ.get("MXNET_CPU_PARALLEL_RAND_COPY", "1"))


def ladder(rungs, problem, operators, limits, rounds):
    """Return a row for each of `rungs`, all measured in turns."""
    missing = {rung.id: why_not(rung, problem) for rung in rungs}
    runs = {id: [] for id, why in missing.items() if not why}
    for seed in range(rounds):
        for rung in rungs:
            if rung.id in runs:
                runs[rung.id].append(climb(rung, problem, seed))
    return [
        row(rung, runs, operators, limits) if rung.id in runs
        else {"id": rung.id, "change": rung.change, "under": rung.under,
              "missing": missing[rung.id]}
        for rung in rungs
    ]


def why_not(rung, problem):
    """Return what MXNet says if it cannot take this rung's step, else "". Warms up."""
    try:
        climb(rung, problem, seed=0, most=1)
    except (mx.MXNetError, OSError, subprocess.CalledProcessError) as error:
        return str(error).rpartition("MXNetError: ")[2].split("\n")[0]
    return ""


def climb(rung, problem, seed, most=None):
    """Train from scratch until the problem is solved, or for `most` spans.

    Returns `seconds`, `steps`, `reached`, the `joules` of the processor or None, and
    `still`, how many arrays never changed.
    """
    devices, spent, steps, used = try_all_devices(rung.devices), 0, 0, 0
    with bound_to_cores(devices) if rung.bound else nullcontext():
        begin, energy = time.perf_counter(), joules()
        step = problem.start(rung, seed)
        first = [p.asnumpy() for p in step.params()]
        for _, span in zip(range(most or 10**9), problem.spans(rung.batch, seed)):
            for X, y in span:
                step(X, y, rung.lr)
                steps += 1
            npx.waitall()
            spent += time.perf_counter() - begin
            used = None if energy is None else used + joules() - energy
            reached = problem.solved(step.params())
            if reached:
                break
            begin, energy = time.perf_counter(), joules()
    still = sum(
        bool((before == after.asnumpy()).all())
        for before, after in zip(first, step.params())
    )
    return {"seconds": spent, "steps": steps, "reached": reached, "still": still,
            "joules": used}


def joules(folder="/sys/class/powercap"):
    """Return what the processors have used, by their own counters (RAPL); None without
    them.

    The counters start again from zero now and then; a run across that moment shows
    less than it used.
    """
    try:
        return sum(int((zone / "energy_uj").read_text()) / 1e6
                   for zone in Path(folder).glob("intel-rapl:?")) or None
    except OSError:
        return None


def row(rung, runs, operators, limits):
    """Return what is stored of a rung."""
    own, under = runs[rung.id], runs.get(rung.under)
    step_ms = 1e3 * median(run["seconds"] / run["steps"] for run in own)
    least = 1e3 * least_seconds(rung.batch / rung.devices, *limits, operators)
    return {
        "id": rung.id, "change": rung.change, "under": rung.under,
        "batch": rung.batch, "lr": rung.lr, "devices": rung.devices,
        "seconds": [round(run["seconds"], 3) for run in own],
        "steps": [run["steps"] for run in own],
        "reached": sum(run["reached"] for run in own),
        "still": max(run["still"] for run in own),
        "joules": None if own[0]["joules"] is None else median(
            run["joules"] for run in own
        ),
        "step_ms": step_ms, "of_roof": least / step_ms,
        "times": under and median(
            a["seconds"] / b["seconds"] for a, b in zip(under, own)
        ),
    }


def device_limits():
    """Return the flops and bytes a second of one device, as in *What limits a step*."""
    device = try_all_devices(1)[0]
    square, block = np.ones((1024, 1024), ctx=device), np.ones(2**24, ctx=device)
    there = np.ones(2**24, ctx=device)
    return (2 * 1024**3 / quickest(lambda: np.dot(square, square)),
            2 * 4 * 2**24 / quickest(lambda: block.copyto(there)))


def quickest(work, tries=7):
    """Return the shortest time of `work()`; the first one does not count."""
    took = []
    for _ in range(tries + 1):
        begin = time.perf_counter()
        work()
        npx.waitall()
        took.append(time.perf_counter() - begin)
    return min(took[1:])


#: Flops and bytes of each operator of LeNet's forward pass for an image, as in the
#: table of *What limits a step*.
OPERATORS = (
    (243_360, 57_216), (13_520, 108_160), (13_520, 67_600), (4_050_000, 29_720),
    (4_050, 32_400), (3_200, 16_000), (204_800, 3_712), (128, 1_024), (2_560, 552),
)


def least_seconds(examples, peak, bandwidth, operators=OPERATORS):
    """Return the roof of a step: each operator at its bound; backward is two forwards.

    `operators`: flops and bytes of each operator of the forward pass for an example.
    """
    return 3 * examples * sum(max(f / peak, b / bandwidth) for f, b in operators)


@contextmanager
def bound_to_cores(devices):
    """Keep each device's worker thread on its own core; give thread ids. Linux."""
    cores = sorted(os.sched_getaffinity(0))
    threads = [worker(device) for device in devices]
    for thread, core in zip(threads, cores):
        os.sched_setaffinity(thread, {core})
    try:
        yield threads
    finally:
        for thread in threads:
            os.sched_setaffinity(thread, cores)


def worker(device):
    """Return the id of the thread that computes for `device`, the busiest one."""
    x, before = np.ones((1024, 1024), ctx=device), ticks()
    for _ in range(5):
        np.dot(x, x)
    npx.waitall()
    after = ticks()
    return max(before, key=lambda thread: after.get(thread, 0) - before[thread])


def ticks():
    """Return, for each thread, the processor time that it has used, in clock ticks."""
    found = {}
    for file in Path("/proc/self/task").glob("*/stat"):
        fields = file.read_text().rpartition(")")[2].split()
        found[int(file.parent.name)] = int(fields[11]) + int(fields[12])
    return found


def name_here():
    """Return the name of this machine's result, made of its processor and its cores."""
    from bookkit.provenance import provenance

    here = provenance()
    words = re.sub(r"[^a-z0-9]+", "-", here["processor"].lower()).strip("-")
    return f"{NAME}{words}-{here['cores']}"


def main(argv):
    """Store a row for this machine; with options, write to `command.OUTPUT` instead."""
    from benchmarks.data_parallel import ladder

    if argv:
        return command.main("ladder", ladder.measured, argv, is_peer=lambda row: True)
    name = name_here()
    kept = stored.measure_and_store(name, ladder.measured)
    print(f"stored {name}: {kept.seconds} s")
    print(*machine.warning_lines(kept.data["quiet"]["warnings"]), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
