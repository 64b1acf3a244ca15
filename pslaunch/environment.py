"""The environment of each process of a job: by it, ps-lite knows what it is."""

import os
from collections.abc import Mapping

from . import processes

#: Tells each process of a job which start of the job this is, from 1.
START = "D2L_EXT_START"
#: Tells each worker a token, and where the workers of a ring listen, by rank.
RING = "D2L_EXT_RING"
#: What the launcher decides itself.
OWN = ("DMLC_ROLE", "DMLC_RANK", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT",
       "DMLC_NODE_HOST", "DMLC_NUM_WORKER", "DMLC_NUM_SERVER", "DMLC_WORKER_ID",
       "DMLC_SERVER_ID", "PORT", START, RING, processes.MARK)
LOOPBACK = "127.0.0.1"
#: What other hosts get of the launcher's variables: what MXNet and this library read.
PASSED_ON = ("MXNET_", "OMP_", "KMP_", "D2L_EXT_")


def names(num_workers, num_servers):
    """All (role, rank) of a job, in the order in which they are started."""
    return [
        ("scheduler", 0),
        *(("server", i) for i in range(num_servers)),
        *(("worker", i) for i in range(num_workers)),
    ]


def node_id(role, rank=0):
    """The number that ps-lite gives to a node: 1 to the scheduler, 8, 10, … to servers,
    9, 11, … to workers."""
    return {"scheduler": 1, "server": 8 + 2 * rank, "worker": 9 + 2 * rank}[role]


def check(env):
    """Return `env` as a dict of strings; None is an empty one.

    Raises `ValueError` for a variable that is the launcher's, or no name at all.
    """
    if env is not None and not isinstance(env, Mapping):
        raise ValueError(f"{type(env).__name__}: give variables as a dict")
    env = {str(name): str(value) for name, value in (env or {}).items()}
    for name, value in env.items():
        if name in OWN:
            raise ValueError(f"{name} is set by the launcher: leave it out")
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"{name!r} is not the name of a variable with a text")
    return env


def inherited(environ=os.environ):
    """What a job takes from the process that starts it: all but another job's.

    A `DMLC_ROLE` would make a server of a worker; a `DMLC_RANK` makes ps-lite wait
    for ever; `PORT`, which hosts of web services set, is where a node would listen.
    """
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(("DMLC_", "PS_")) and name not in OWN
    }


def passed_on(environ=os.environ):
    """What a process on another host takes from the one that starts the job."""
    return {name: value for name, value in inherited(environ).items()
            if name.startswith(PASSED_ON)}


def of_node(role, rank, nodes, ports, job, given=(), root=LOOPBACK,
            address=LOOPBACK):
    """The variables that make a process `role` number `rank` of a job.

    `nodes`: the (role, rank) of all. `ports`: as many, ascending; the scheduler's
    first. ps-lite numbers the nodes of a role by their ports, so that rank and
    order of start are the same. `job`: its mark. `given`: the user's own, a dict.

    `root`, `address`: where the scheduler and this node listen. By default both on
    127.0.0.1 only: the servers unpickle what they are sent.
    """
    count = [who for who, _ in nodes].count
    env = {
        "DMLC_ROLE": role,
        "DMLC_PS_ROOT_URI": root,
        "DMLC_PS_ROOT_PORT": str(ports[0]),
        "DMLC_NODE_HOST": address,
        "DMLC_NUM_WORKER": str(count("worker")),
        "DMLC_NUM_SERVER": str(count("server")),
        **({} if role == "scheduler" else {f"DMLC_{role.upper()}_ID": str(rank)}),
        "PORT": str(ports[nodes.index((role, rank))]),
        "PYTHONUNBUFFERED": "1",  # what a process printed before it was killed stays
        processes.MARK: job,
        **dict(given),
    }
    if role == "scheduler" and env.get("PS_VERBOSE", "0") == "0":
        env["PS_VERBOSE"] = "1"  # it has to tell when the job is ready
    return env
