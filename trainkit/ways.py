"""The ways of training: each adds its flags, rejects other flags, and builds.

A way is a class without state. `chosen(job)`: whether the flags select it.
`check(job, places)`: raises `ValueError` for flags that conflict with it, or that need
it when it is not chosen. `load(job)`: the data. `connect(job, held)`: the store that
connects a job's workers, a ring, or None. `build(job, dataset, kv)`: the replicas on
the devices `job.places`; `kv`: from `connect`. `check` sees the flags as given, the
others the description of the job. MXNet is loaded only after the flags have been read.
"""

import os
from dataclasses import replace

from d2l_ext.checks import known_name

from .words import below_one, count, non_empty, one_of, positive

#: Optimizers whose state is only arrays and counts, and whether they use `--mom`.
OPTIMIZERS = {
    "sgd": True,
    "nag": True,
    "signum": True,
    "adam": False,
    "rmsprop": False,
    "adagrad": False,
}
#: The stores that need a job; MXNet reads `dist_device_sync` as `dist_sync_device`.
DIST_KV_STORES = ("dist_sync", "dist_sync_device", "dist_device_sync", "dist_async",
                  "dist_async_device", "dist_device_async")
JOB_KV_STORES = (*DIST_KV_STORES, "ring")
KV_STORES = ("local", "device", "none", *JOB_KV_STORES)


class OneProcess:
    """All devices in one process: `gluon.Trainer` with a store, or an allreduce."""

    title = "how gradients are summed in one process"

    def add(self, group):
        """Add `--allreduce` and compression."""
        add = group.add_argument
        add("--allreduce", type=non_empty, metavar="NAME",
            help=f"with --kv-store none: {', '.join(allreduces())}; default: naive")
        add("--gc-type", type=one_of(("none", "2bit")), default="none", metavar="TYPE",
            help="gradient compression: 2bit or none (default)")
        add("--gc-threshold", type=positive, metavar="T",
            help="threshold of 2bit compression; default 0.5")

    def chosen(self, job):
        """True: this way comes last."""
        return True

    def check(self, job, places):
        """Reject an allreduce or a compression that would not be used."""
        known_name("allreduce", job.allreduce or "naive", allreduces())
        if job.allreduce and (job.kv_store != "none" or job.shard != "none"):
            raise ValueError(f"--allreduce {job.allreduce} needs --kv-store none, and "
                             "no --shard: otherwise a store or ring sums gradients")
        if job.gc_threshold and job.gc_type == "none":
            raise ValueError(f"--gc-threshold {job.gc_threshold:g} needs --gc-type "
                             "2bit")
        if job.gc_type != "none" and (job.kv_store != "device" or len(places) < 2):
            raise ValueError(
                f"--gc-type {job.gc_type} needs at least two devices and --kv-store "
                f"device, not {len(places)} and {job.kv_store}: on one machine, MXNet "
                "compresses gradients only there"
            )
        if job.mom is not None and not OPTIMIZERS[job.optimizer]:
            raise ValueError(f"--mom {job.mom:g}: {job.optimizer} has no momentum")
        if (job.dataset or os.environ.get("D2L_EXT_DATASET") or "digits") == "digits":
            refuse({"--data-dir": job.data_dir}, "--dataset digits",
                   "which come with scikit-learn, not in files: name another --dataset")

    def load(self, job):
        """Return the images: a `Dataset`."""
        from d2l_ext.data import load_arrays

        return first(load_arrays(job.dataset, job.data_dir), job.num_examples)

    def connect(self, job, held):
        """Return None: there are no other workers."""

    def build(self, job, dataset, kv):
        """Return a replica of the network on each device."""
        from .replicas import Replicas

        options = accumulation(job)
        if job.gc_type != "none":
            options["compression"] = {"type": job.gc_type,
                                      "threshold": job.gc_threshold}
        return Replicas(new_network(job, dataset), job.places, *optimizer(job),
                        gluon_store(job), **options)


class Sharded(OneProcess):
    """The devices of one process divide states, gradients or parameters."""

    title = "sharded replicas (ZeRO)"

    def add(self, group):
        """Add `--shard`."""
        group.add_argument(
            "--shard", type=non_empty, default="none", metavar="WHAT",
            help="what the devices divide: none (default), states (ZeRO 1), gradients "
            "(2) or parameters (3, as FSDP). This library's ring then sums the "
            "gradients of the devices of one process; a checkpoint can be resumed on "
            "another number of devices, and with another WHAT")

    def chosen(self, job):
        """Return whether `--shard` is not `none`."""
        return job.shard != "none"

    def check(self, job, places):
        """Reject stores of jobs, compression, and a minibatch in pieces."""
        from d2l_ext.memory.shards import STAGES

        known_name("shard", job.shard, STAGES)
        if self.chosen(job):
            others = {**other_steps(job), store(job): job.kv_store in
                      ("local", *JOB_KV_STORES)}
            refuse(others, f"--shard {job.shard}", "which takes a minibatch in one "
                   "piece, and uses this library's ring among the devices of one "
                   "process; the servers of a job each hold a part anyway")

    def build(self, job, dataset, kv):
        """Return one network, divided over the devices."""
        from .sharded import ShardedReplicas

        return ShardedReplicas(job.shard, new_network(job, dataset), job.places,
                               *optimizer(job), **common(job))


class Text(OneProcess):
    """A decoder that learns a text, on groups of devices that divide its heads."""

    title = "a transformer"

    def add(self, group):
        """Add `--tensor`."""
        group.add_argument(
            "--tensor", type=count, default=1, metavar="K",
            help="K devices divide each layer, and groups of K the minibatch "
            "(--work-load-list then has a share for each); default 1")

    def chosen(self, job):
        """Return whether `--network` is `transformer`."""
        return job.network == "transformer"

    def check(self, job, places):
        """Reject unknown networks, and flags that split a group or its minibatch."""
        from .networks import NETWORKS

        known_name("network", job.network, (*NETWORKS, "transformer"))
        if self.chosen(job):
            others = {f"--shard {job.shard}": job.shard != "none",
                      "--data-dir": job.data_dir, **other_steps(job)}
            refuse(others, "--network transformer", "whose groups are whole replicas "
                   "in one process, take a minibatch in one piece, and read one text "
                   "(--dataset FILE)")
        elif job.tensor > 1:
            raise ValueError(
                f"--tensor {job.tensor} divides the heads of attention, and "
                f"{job.network} has none: use --network transformer"
            )
        if len(places) % job.tensor:
            raise ValueError(f"--tensor {job.tensor}: {len(places)} devices cannot be "
                             "divided into groups of that size")

    def load(self, job):
        """Return a text, as a `Dataset` of sequences."""
        from .language import load_sequences

        return first(load_sequences(job.dataset), job.num_examples)

    def build(self, job, dataset, kv):
        """Return a decoder on each group."""
        from .language import Decoders

        return Decoders(len(dataset.classes), job.tensor, job.places, *optimizer(job),
                        gluon_store(job), **common(job))


class OneOfSeveral(OneProcess):
    """One worker of several: it joins the others first."""

    def connect(self, job, held):
        """Join the other workers."""
        from .workers import join_job

        return join_job(job.kv_store, held)


class LocalSteps(OneOfSeveral):
    """Workers that each take several steps, and then exchange weights."""

    title = "steps between exchanges (local SGD)"

    def add(self, group):
        """Add `--local-steps`, and the flags of the outer optimizer."""
        add = group.add_argument
        add("--local-steps", type=count, metavar="H",
            help="with dist_sync: each worker takes H steps, then all exchange "
            "weights; default: gradients are exchanged in every step")
        add("--outer-lr", type=positive,
            help="learning rate of the exchange; default 1")
        add("--outer-mom", type=below_one,
            help="Nesterov momentum of the exchange; default 0")

    def chosen(self, job):
        """Return whether `--local-steps` is given."""
        return bool(job.local_steps)

    def check(self, job, places):
        """Reject asynchronous stores, and checkpoints."""
        if self.chosen(job):
            in_step = job.kv_store in DIST_KV_STORES and "async" not in job.kv_store
            refuse({"--save-prefix": job.save_prefix, store(job): not in_step},
                   f"--local-steps {job.local_steps}", "which is for workers of a "
                   "synchronous job, each with weights of its own: use dist_sync, and "
                   "save nothing: a checkpoint would hold one worker's weights")
        elif job.outer_lr or job.outer_mom:
            raise ValueError("--outer-lr and --outer-mom need --local-steps")

    def build(self, job, dataset, kv):
        """Return a worker with an optimizer of its own."""
        from .replicas import LocalReplicas

        outer = job.local_steps, job.outer_lr or 1.0, job.outer_mom or 0.0
        return LocalReplicas(kv, outer, new_network(job, dataset), job.places,
                             *optimizer(job), **accumulation(job))


class Workers(OneOfSeveral):
    """The workers of a job: with servers, or in a ring without them."""

    title = "a job of several workers: its stores are above"

    def add(self, group):
        """Add no flags: `--kv-store` selects this way."""

    def chosen(self, job):
        """Return whether the store needs a job."""
        return job.kv_store in JOB_KV_STORES

    def check(self, job, places):
        """Require a job; reject what an asynchronous store cannot do."""
        if "async" in job.kv_store:
            refuse({"--save-shards": job.save_shards,
                    "--lr-step-epochs": job.lr_step_epochs}, store(job), "whose "
                   "workers are at different steps, and whose servers receive the "
                   "learning rate only once: use dist_sync")
        if not self.chosen(job):
            return
        is_ring = job.kv_store == "ring"
        if os.environ.get("DMLC_ROLE") != "worker":
            servers = "" if is_ring else " and servers"
            raise ValueError(
                f"{store(job)} needs a job of workers{servers}: python -m pslaunch -n "
                f"2 -s {0 if is_ring else 1} python -m d2l_ext.train {store(job)} …"
            )
        if not is_ring and os.environ["DMLC_NUM_SERVER"] == "0":
            raise ValueError(f"{store(job)} needs servers: pslaunch -s 1 or more")

    def build(self, job, dataset, kv):
        """Return one worker's replicas."""
        from .replicas import DistReplicas, RingReplicas

        kind = RingReplicas if job.kv_store == "ring" else DistReplicas
        return kind(kv, job.batch_size, new_network(job, dataset), job.places,
                    *optimizer(job), **accumulation(job))


#: The first one that is chosen trains.
WAYS = (Text(), Sharded(), LocalSteps(), Workers(), OneProcess())


def chosen_way(job):
    """Return the way that the flags select."""
    return next(way for way in WAYS if way.chosen(job))


# ---- Shared by several ways ----


def allreduces():
    """Return the allreduces among devices: a dict from a name to the function."""
    from d2l_ext.data_parallel.allreduce.algorithm import algorithms

    return {name: a.reduce for name, a in algorithms().items() if a.reduce}


def first(dataset, num_examples):
    """Return `dataset` with the first `num_examples` for training; with all if it is
    None.

    Raises `ValueError` if there are fewer.
    """
    X, y = dataset.train_X, dataset.train_y
    if num_examples and num_examples > len(X):
        raise ValueError(f"--num-examples {num_examples}: there are only {len(X):,}")
    return replace(dataset, train_X=X[:num_examples], train_y=y[:num_examples])


def new_network(job, dataset):
    """Return the Gluon network of `--network`, initialized on all devices."""
    from . import networks

    return networks.build(job.network, dataset.train_X.shape[1:], job.places,
                          job.seed)


def optimizer(job):
    """Return (name, parameters) of the optimizer."""
    params = {"learning_rate": job.lr, "wd": job.wd}
    if OPTIMIZERS[job.optimizer]:
        params["momentum"] = job.mom
    return job.optimizer, params


def gluon_store(job):
    """Return the store of a Gluon `Trainer`; None for an allreduce of this library."""
    return None if job.kv_store == "none" else job.kv_store


def common(job):
    """Return the arguments of all replicas."""
    return {"work_load_list": job.work_load_list, "seed": job.seed,
            "allreduce": allreduces()[job.allreduce or "naive"]}


def accumulation(job):
    """Return the arguments of the replicas that can take a minibatch in pieces."""
    return {**common(job), "accumulate": job.accumulate, "recompute": job.recompute}


def store(job):
    """Return `--kv-store` as it was given."""
    return f"--kv-store {job.kv_store}"


def other_steps(job):
    """Return the flags that change a step: {flag: whether it is given}."""
    return {"--accumulate": job.accumulate > 1, "--recompute": job.recompute,
            "--gc-type": job.gc_type != "none",
            store(job): job.kv_store in JOB_KV_STORES}


def refuse(others, what, why):
    """Raise `ValueError` if one of `others` is given with `what`. `why`: the reason."""
    given = ", ".join(flag for flag, is_given in others.items() if is_given)
    if given:
        raise ValueError(f"{given} cannot be used with {what}, {why}")
