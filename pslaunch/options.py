"""The flags of `python -m pslaunch`, named as those of MXNet's `launch.py`."""

import argparse
import os
import shlex
import sys
import textwrap

from d2l_ext.trainer.flags import count, from_0, not_negative

from .plan import LAUNCHERS
from .runner import READY_TIMEOUT

#: Launchers of MXNet's `launch.py` and its tracker, which are not here (yet).
ELSEWHERE = ("mesos",)
#: Flags that say where a job runs, besides the hosts.
WHERE = ("interface", "sync_dst_dir", "ssh_config", "python", "submit_args")
EXAMPLES = """\
examples:
  two workers and a server, on this machine:
    %(prog)s -n 2 -s 1 python -m d2l_ext.train --kv-store dist_sync

  three workers and three servers, in turn on the hosts of a file, which share the
  working directory:
    %(prog)s -n 3 -H hosts python -m d2l_ext.train --kv-store dist_sync

  the same, where hosts share nothing, over their second network:
    %(prog)s -n 3 -H hosts --sync-dst-dir /tmp/job --interface eth1 \\
        --env OMP_NUM_THREADS:2 python -m d2l_ext.train --kv-store dist_sync

  what would run where:
    %(prog)s -n 3 -H hosts --dry-run python -m d2l_ext.train

a hosts file:
  h1                  # a name, or an IPv4 address
  10.0.0.12:2222      # and the port of its sshd
  alice@h3 slots=4    # another user; at most 4 processes (mpi, sge)
"""


class _Parser(argparse.ArgumentParser):
    """Says what was wrong in one line, without the list of all flags."""

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message}\n")


def parser():
    """The parser. Everything from the command's first word on is the command's."""
    flags = _Parser(
        prog="d2l-ext-launch",
        description="Run COMMAND in each of N workers, with servers and a scheduler.",
        usage="%(prog)s -n N [options] COMMAND [argument ...]",
        epilog=textwrap.fill("Every line that a process prints goes to standard "
        "output, with its process in front. Exit code: 0 when all ended well, else "
        "that of the process that failed first (128 and the signal's number, when a "
        "signal ended it, 147 when one stopped it); 2: a flag is wrong; 124: the "
        "deadline passed; 125: not ready; 127: no such command; 255: a host cannot be "
        "reached.", 79)
        + "\n\n" + EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = flags.add_argument
    add("-n", "--num-workers", type=count, required=True, metavar="N", help="workers")
    add("-s", "--num-servers", type=count, metavar="N",
        help="servers; default as many as workers")  # fmt: skip
    add("--launcher", type=_launcher, metavar="NAME",
        help=f"{', '.join(LAUNCHERS)}; default ssh with -H, else local")  # fmt: skip
    _add_where(flags)
    for role in ("", "worker", "server"):
        add(f"--env-{role}" if role else "--env", type=_variable, action="append",
            default=[], metavar="VAR:VALUE", help="set a variable for "
            + (f"each {role}" if role else "all; VAR alone passes on its value here"),
            )  # fmt: skip
    add("--deadline", type=not_negative, default=0, metavar="SECONDS",
        help="end the job after this time; default: no limit")  # fmt: skip
    add("--log-dir", metavar="DIR", help="keep a log of each process there")
    add("--ps-verbose", type=int, choices=(0, 1, 2), default=0,
        help="1: log connections, 2: all messages")  # fmt: skip
    add("--attempts", type=count, default=3, metavar="N",
        help="starts, at most, of a job that does not become ready; default 3. What "
        "COMMAND does before it opens the store may be done again.")  # fmt: skip
    add("--ready-timeout", type=not_negative, default=READY_TIMEOUT, metavar="SECONDS",
        help="for nodes that all listen to find each other; default "
        f"{READY_TIMEOUT:g}")  # fmt: skip
    add("--max-restarts", type=from_0, default=0, metavar="N",
        help="start a job that failed again, at most N times; COMMAND learns from "
        "D2L_EXT_START, 1, 2, ..., which start it is, and should go on from a "
        "checkpoint; default 0")  # fmt: skip
    add("--json", action="store_true",
        help="as the last line, on standard output: what became of the job, and the "
        "last line of each worker, in JSON")  # fmt: skip
    add("--dry-run", action="store_true", help="show what would be started")
    add("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    return flags


def _add_where(flags):
    add = flags.add_argument
    add("-H", "--hostfile", metavar="FILE",
        help="the hosts; servers and workers are placed on them in turn")  # fmt: skip
    add("--sync-dst-dir", metavar="DIR", help="copy the working directory there, on "
        "each host, by rsync; default: hosts share it")  # fmt: skip
    add("--interface", metavar="NAME", help="the network interface, of every host, "
        "that the job uses; default: by which hosts reach each other")  # fmt: skip
    add("--ssh-config", metavar="FILE", help="that ssh reads; default its own")
    add("--python", default=sys.executable, metavar="PATH",
        help="Python on the hosts; default the path of this one")  # fmt: skip
    add("--submit-args", type=shlex.split, default=(), metavar="WORDS", help="for the "
        "command that submits the job, as in '-p short'")  # fmt: skip


def parse(argv=None):
    """The flags as a namespace; `command` begins after the last flag, or after `--`."""
    flags = parser()
    args = flags.parse_args(argv)
    if args.command[:1] == ["--"]:
        del args.command[0]
    if not args.command:
        flags.error("which command? Give it after the flags")
    args.num_servers = args.num_servers or args.num_workers
    return args


def _launcher(name):
    if name in LAUNCHERS:
        return name
    why = "is not here yet" if name in ELSEWHERE else "is not known"
    raise argparse.ArgumentTypeError(f"{name!r} {why}: there is {', '.join(LAUNCHERS)}")


def _variable(text):
    """(name, value) of `NAME:VALUE`, `NAME=VALUE`, or `NAME`, whose value is here."""
    cut = min((text.index(c) for c in ":=" if c in text), default=len(text))
    name, value = text[:cut], text[cut + 1 :]
    if cut == len(text):
        if name not in os.environ:
            raise argparse.ArgumentTypeError(f"{name} has no value here: give one, as "
                                             "in OMP_NUM_THREADS:3")  # fmt: skip
        value = os.environ[name]
    return name, value
