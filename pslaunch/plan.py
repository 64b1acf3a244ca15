"""The plan of a job: its settings, checked as a whole; which process runs on which
host; and the environment variables by which ps-lite knows what each process is."""

import math
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from numbers import Real
from pathlib import Path

from . import processes
from .job import LOST, Failed
from .processes import LOOPBACK, Refused, own_address

#: The module and the class of each launcher; it is imported when it is named.
LAUNCHERS = {
    "local": ("crew", "Local"),
    "ssh": ("ssh", "Ssh"),
    "mpi": ("submitted", "Mpi"),
    "slurm": ("submitted", "Slurm"),
    "sge": ("submitted", "Sge"),
    "yarn": ("submitted", "Yarn"),
}
#: Runs a server or the scheduler, with the Python of its host.
NODE = ["-m", "pslaunch.node"]
#: Tells each process 1 plus the number of restarts of the job.
START = "D2L_EXT_START"
#: Tells each worker a token, and where the workers of a ring listen, by rank.
RING = "D2L_EXT_RING"
#: Variables that only the launcher may set.
OWN = ("DMLC_ROLE", "DMLC_RANK", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT",
       "DMLC_NODE_HOST", "DMLC_NUM_WORKER", "DMLC_NUM_SERVER", "DMLC_WORKER_ID",
       "DMLC_SERVER_ID", "PORT", START, RING, processes.MARK)
#: Other hosts get the launcher's variables that MXNet and this library read.
PASSED_ON = ("MXNET_", "OMP_", "KMP_", "D2L_EXT_")


#: Settings that are paths, strings in a plan.
PATHS = ("sync_dst_dir", "ssh_config", "python")


@dataclass(frozen=True)
class Settings:
    """The settings of a job; `runner.run` explains them. In a plan, `hosts` is a list
    of `Host`."""

    num_workers: int = 2
    num_servers: int = 1
    env: dict = None
    env_worker: dict = None
    env_server: dict = None
    env_scheduler: dict = None
    deadline: float = 900.0
    log_dir: str = None
    stream: bool = False
    attempts: int = 3
    ready_timeout: float = 60.0  # takes less than a second on an idle machine
    launcher: str = None
    verbose: int = 0
    max_restarts: int = 0
    hosts: list = None
    interface: str = None
    sync_dst_dir: str = None
    ssh_config: str = None
    python: str = sys.executable
    submit_args: tuple = ()


@dataclass(frozen=True)
class JobPlan:
    """`command`: the words that a worker runs. `nodes`: every (role, rank). `env`: for
    each role, a dict of variables. `launcher`: a subclass of `crew.Crew`.
    """

    command: list
    nodes: list
    env: dict
    launcher: type = None
    settings: Settings = Settings()

    def command_of(self, role):
        """Return the words a process of this role runs; None is its host's Python."""
        return self.command if role == "worker" else [None, *NODE]

    def shown(self, role):
        """Return a line with a role's command, and its variables without values."""
        names = [f"DMLC_ROLE={role}", *(f"{name}=…" for name in self.env[role])]
        words = [word or self.settings.python for word in self.command_of(role)]
        return f"{' '.join(names)} {shlex.join(words)}"


def make(command, *counts, **given):
    """Return a `JobPlan` from a command and `Settings`, which are checked.

    Raises `ValueError`, or `OSError` if the hosts file cannot be read.
    """
    settings = Settings(*counts, **given)
    has_hosts = settings.hosts is not None
    launcher = settings.launcher or ("ssh" if has_hosts else "local")
    if not isinstance(command, (list, tuple)) or not command:
        raise ValueError(f"command={command!r}: give a list of words, as in ['python', "
                         "'train.py']")
    wrong = [word for word in command if not isinstance(word, (str, os.PathLike))]
    if wrong:
        raise ValueError(f"command: {wrong[0]!r} is a {type(wrong[0]).__name__}: give "
                         "each word as a string")
    command = [os.fspath(word) for word in command]
    if any("\0" in word for word in command):
        raise ValueError("command: a word contains a null character")
    _check(settings, launcher)
    common = {"PS_VERBOSE": str(int(settings.verbose))} if settings.verbose else {}
    common.update(user_variables(settings.env))
    names = {role: f"env_{role}" for role in ("worker", "server", "scheduler")}
    env = {role: {**common, **user_variables(getattr(settings, name), name)}
           for role, name in names.items()}
    nodes = all_nodes(settings.num_workers, settings.num_servers)
    paths = {name: os.fspath(getattr(settings, name)) for name in PATHS
             if getattr(settings, name)}
    settings = replace(settings, **{"python": sys.executable, **paths},
                       hosts=read_hosts(settings.hosts) if has_hosts else None)
    module, name = LAUNCHERS[launcher]
    kind = getattr(import_module(f".{module}", __package__), name)
    plan = JobPlan(command, nodes, env, kind, settings)
    plan.launcher.check(plan)
    return plan


def _check(settings, launcher):
    _check_numbers(settings)
    if launcher not in LAUNCHERS:
        raise ValueError(f"launcher={launcher!r}: choose {', '.join(LAUNCHERS)}")
    hosts = settings.hosts
    if hosts is not None and not isinstance(hosts, (str, os.PathLike, list, tuple)):
        raise ValueError(f"hosts={hosts!r}: give the path of a hosts file, or a list "
                         "of its lines")
    if settings.verbose not in (0, 1, 2):
        raise ValueError(f"verbose={settings.verbose!r}: PS_VERBOSE is 0, 1 or 2")
    words = settings.submit_args
    if not isinstance(words, (list, tuple)) or not all(
            isinstance(word, str) for word in words):
        raise ValueError(
            f"submit_args={settings.submit_args!r}: give a list of words, as in "
            "['-p', 'short']")
    for name in ("interface", *PATHS):
        value = getattr(settings, name)
        kinds = (str, os.PathLike) if name in PATHS else str
        if value and not isinstance(value, kinds):
            raise ValueError(f"{name}={value!r}: give a string")
        if value and "\0" in os.fspath(value):
            raise ValueError(f"{name}={value!r} contains a null character")


def _check_numbers(settings):
    least = {"num_workers": 1, "num_servers": 0, "attempts": 1, "max_restarts": 0}
    for name, smallest in least.items():
        number = getattr(settings, name)
        if not isinstance(number, int) or number < smallest:
            raise ValueError(
                f"{name}={number!r}: give a whole number of at least {smallest}"
            )
    seconds = {"deadline": settings.deadline or 0,
               "ready_timeout": settings.ready_timeout}
    for name, number in seconds.items():
        if not isinstance(number, Real) or not 0 <= number < math.inf:
            raise ValueError(f"{name}={number!r}: give a number of seconds, at least 0 "
                             "and finite")


# ---- The hosts file, and which process runs on which host ----

_LINE = re.compile(
    r"(?:(?P<user>[A-Za-z_][\w.-]*)@)?"
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?:\s+slots\s*=\s*(?P<slots>[1-9][0-9]{0,5}))?"
)


@dataclass(frozen=True)
class Host:
    """`name`: a host name or an IPv4 address. `port`, `user`: for ssh; None: as ssh is
    configured. `slots`: for mpi, the maximum number of processes on it; None: no limit.
    """

    name: str
    port: int = None
    user: str = None
    slots: int = None

    def __str__(self):
        user = f"{self.user}@" if self.user else ""
        return f"{user}{self.name}" + (f":{self.port}" if self.port else "")


def read_hosts(source):
    """Read a hosts file: a list of `Host`. `--help` shows such a file.

    `source`: the path, or a list of lines. Raises `ValueError` for a line that is not a
    host, a repeated host, or no host at all; `OSError` if the file cannot be read.
    """
    if isinstance(source, (str, os.PathLike)):
        where = source
        try:
            lines = Path(source).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise ValueError(f"{where} is not a hosts file in UTF-8: {error}"
                             ) from None
    else:
        lines, where = [str(line) for line in source], "hosts"
    found = {}
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if text:
            host = _host(text, f"{where}, line {number}")
            if host.name in found:
                raise ValueError(f"{where}, line {number}: {host.name} is repeated, "
                                 f"first in line {found[host.name][0]}")
            found[host.name] = number, host
    if not found:
        raise ValueError(f"{where}: no hosts: write one per line")
    return [host for _, host in found.values()]


def _host(text, where):
    match = _LINE.fullmatch(text)
    if not match:
        raise ValueError(f"{where}: {text!r} is not a host: write NAME, NAME:PORT or "
                         "USER@NAME, optionally followed by slots=N")
    user, name, port, slots = match.groups()
    if port and not 0 < int(port) < 65536:
        raise ValueError(f"{where}: {text!r}: port {port} is not between 1 and 65535")
    return Host(name, int(port) if port else None, user, int(slots) if slots else None)


def place(hosts, num_servers, num_workers):
    """Return [(role, host)]: servers first, then workers, over `hosts` in turn.

    With 5 hosts, 3 servers and 3 workers: servers on 1, 2, 3, workers on 4, 5, 1.
    MXNet's `launch.py` has the same rule.
    """
    roles = ["server"] * num_servers + ["worker"] * num_workers
    return [(role, hosts[i % len(hosts)]) for i, role in enumerate(roles)]


def scheduler_address(plan):
    """Return the one IPv4 address where the scheduler of `plan` listens. Raises
    `Failed`.

    It is the address of the named interface; else, with hosts, the address from which
    the first other host is reached; else the address of this host's name, or the one
    from which other networks are reached.
    """
    settings = plan.settings
    try:
        if settings.interface:
            return own_address(None, settings.interface)
        if settings.hosts:
            own = [own_address(_resolve(settings, host)) for host in settings.hosts]
            return next((one for one in own if not one.startswith("127.")), LOOPBACK)
        with suppress(OSError):
            own = socket.gethostbyname(socket.gethostname())
            if not own.startswith("127."):
                return own
        return own_address("192.0.2.1")  # no host has this address
    except Refused as error:
        raise Failed(f"here: {error}; name an interface that the job's hosts can "
                     "reach") from None


def configured(settings, host):
    """Return ssh's configuration for `host`: a dict of strings, lower-case names."""
    words = ["ssh", *(["-F", settings.ssh_config] if settings.ssh_config else [])]
    done = subprocess.run([*words, "-G", host.name], check=False, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def _resolve(settings, host):
    """Return the address of `host`, a name that only ssh's configuration may know."""
    name = configured(settings, host).get("hostname", host.name)
    try:
        return socket.getaddrinfo(name, None, socket.AF_INET)[0][4][0]
    except OSError as error:
        raise Failed(f"{host} cannot be used: {name}: {error.strerror}", LOST) from None


# ---- The variables of each process ----

def all_nodes(num_workers, num_servers):
    """Return all (role, rank) of a job, in the order of their start."""
    return [
        ("scheduler", 0),
        *(("server", i) for i in range(num_servers)),
        *(("worker", i) for i in range(num_workers)),
    ]


def node_id(role, rank=0):
    """Return ps-lite's number for a node: 1 for the scheduler, 8, 10, … for the
    servers, 9, 11, … for the workers.
    """
    return {"scheduler": 1, "server": 8 + 2 * rank, "worker": 9 + 2 * rank}[role]


def user_variables(env, argument="env"):
    """Return `env` as a dict of strings; None gives an empty one.

    `argument`: what the caller calls it. Raises `ValueError` if it is no dict, for a
    variable that the launcher sets, for an invalid name, and for a null character.
    """
    if env is not None and not isinstance(env, Mapping):
        raise ValueError(f"{argument} is a {type(env).__name__}: give variables as a "
                         "dict")
    env = {str(name): str(value) for name, value in (env or {}).items()}
    for name, value in env.items():
        if name in OWN:
            raise ValueError(f"{name} is set by the launcher: leave it out")
        if not name or "=" in name or "\0" in name:
            raise ValueError(f"variable {name!r}: give a name without = and null "
                             "characters")
        if "\0" in value:
            raise ValueError(f"variable {name!r}: its value {value!r} has a null "
                             "character, which no environment can hold")
    return env


def inherited(environ=os.environ):
    """Return the variables that a job inherits: all but those of another job.

    An inherited `DMLC_ROLE` would turn a worker into a server; on `PORT`, which web
    hosts set, a node would listen.
    """
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(("DMLC_", "PS_")) and name not in OWN
    }


def passed_on(environ=os.environ):
    """Return variables that a process on another host inherits from the launcher."""
    return {name: value for name, value in inherited(environ).items()
            if name.startswith(PASSED_ON)}


def variables_of(role, rank, nodes, ports, job, given=(), root=LOOPBACK,
                 address=LOOPBACK):
    """Return the variables that make a process number `rank` of its `role` in a job.

    `nodes`: all (role, rank). `ports`: one for each, ascending; the scheduler's comes
    first. ps-lite numbers the nodes of a role by their ports, so that rank and
    order of start are the same. `job`: its mark. `given`: the user's variables, a dict.

    `root`, `address`: where the scheduler and this node listen. By default both listen
    on 127.0.0.1 only, because servers unpickle the messages they receive.
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
        "PYTHONUNBUFFERED": "1",  # a killed process's output is kept
        processes.MARK: job,
        **dict(given),
    }
    if role == "scheduler" and env.get("PS_VERBOSE") not in ("1", "2"):
        env["PS_VERBOSE"] = "1"  # its log tells when the job is ready
    return env
