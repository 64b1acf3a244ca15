"""The command line: `python -m pslaunch -n 2 -s 1 python train.py --lr 0.1`.

`--help` lists the flags; they have the names of those of MXNet's `launch.py`.
"""

import argparse
import errno
import json
import os
import shlex
import signal
import sys
import textwrap
from contextlib import suppress

from . import processes
from .plan import LAUNCHERS, Settings, make
from .runner import OutputLost, carry_out, printable

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

a hosts file:
  h1                  # a name, or an IPv4 address
  10.0.0.12:2222      # and the port of its sshd (ssh)
  alice@h3            # another user (ssh)
  h4 slots=4          # at most 4 processes (mpi)
"""


def main(argv=None):
    """Run the job that `argv` describes; return its exit code.

    The output of the processes goes to standard output, the launcher's own lines to
    standard error. `argv`: by default that of this process; then SIGTERM, Ctrl-C and
    SIGHUP (unless it is ignored, as under nohup) end the job, with 128 plus the
    signal's number.
    """
    command, settings, dry_run, wants_json = parse(argv)
    if argv is None:
        _own_process()
    if sys.stdout is None:
        _say("error: standard output is closed, so the output of the processes would "
             "be lost: redirect it, as in > /dev/null")
        return 1
    try:
        plan = make(command, **settings)
        if dry_run:
            _print(*plan.launcher.describe(plan), sep="\n")
            return 0
        job = carry_out(plan)
    except OutputLost as error:
        _forget_output(error, "the job was ended")
        return 128 + signal.SIGPIPE if error.errno == errno.EPIPE else 1
    except (ValueError, OSError) as error:
        _say(f"error: {error}")
        return 1 if getattr(error, "errno", None) == errno.ENOSPC else 2
    _report(job, plan.settings)
    return _print_summary(job, plan.settings) if wants_json else job.returncode


def _own_process():
    """Adopt orphans and handle signals, in a process that runs nothing but the job."""
    processes.adopt()
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as it is under nohup
        signal.signal(signal.SIGHUP, _stop)


def _report(job, settings):
    """Say how `job` ended."""
    if job.returncode:
        _say(f"the job failed: {job.cause}")
        if job.culprit:
            _say(f"the last lines of {job.culprit}:")
            print(job.last_lines(10), file=sys.stderr)
    else:
        _say(f"{settings.num_workers} workers and {settings.num_servers} servers ended "
             f"well, {job.seconds:.1f} s, {job.attempts} start(s)")


def _print_summary(job, settings):
    """Print the outcome as JSON; return the exit code."""
    try:
        _print(json.dumps(summary(job, settings.num_workers)))
    except OutputLost as error:
        _forget_output(error, "the summary is lost")
        return job.returncode or 1
    return job.returncode


def _print(*lines, **options):
    try:
        print(*map(printable, lines), **options, flush=True)
    except OSError as error:
        raise OutputLost(error.errno, error.strerror) from None


def _forget_output(error, what):
    """Report lost output; discard the rest, which Python would write at its exit."""
    if sys.stdout is sys.__stdout__:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    _say(f"error: standard output: {error.strerror}; {what}")


def summary(job, num_workers):
    """Return the outcome of a job as a dict that JSON can hold.

    `workers`: for each worker, the last line that is a JSON object, such as
    `d2l_ext.train` prints; without one, its last line.
    """
    return {
        "returncode": job.returncode, "cause": job.cause, "attempts": job.attempts,
        "restarts": job.restarts,
        "seconds": round(job.seconds, 2), "notes": job.notes,
        "workers": [_last_said(job.output("worker", i)) for i in range(num_workers)],
    }


def _last_said(text):
    lines = text.splitlines() or [""]
    # ps-lite may print after a worker's last line: messages, or a late abort.
    for line in reversed(lines):
        with suppress(ValueError):
            if line.startswith("{"):
                return json.loads(line)
    return lines[-1]


def _stop(signum, _):
    """Exit by an exception, which ends all that was started."""
    _say(f"stopped by {signal.Signals(signum).name}, ending the job")
    sys.exit(128 + signum)


def _say(line):
    with suppress(OSError):  # nobody reads it
        print(f"launch: {line}", file=sys.stderr, flush=True)


# ---- The flags ----


EXIT_CODES = (
    "The lines that workers and servers print go to standard output, prefixed with the "
    "name of their process; with --ps-verbose, the scheduler's, too. Of a process that "
    "prints too fast, some lines are skipped. Exit code: 0 if all processes succeed, "
    "else that of the process that failed first (128 plus the signal's number if a "
    "signal ended it, 147 if one stopped it); 1: standard output, or the disk of the "
    "logs, is full or closed (141: the reader of the output is gone); 2: a flag is "
    "invalid; 124: the deadline passed; 125: the job did not become ready; 126: the "
    "command is not executable; 127: no such command; 255: a host cannot be reached."
)


class _Parser(argparse.ArgumentParser):
    """Reports errors on one line, without the list of all flags."""

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message}\n")


def parser():
    """Return the parser. Everything from COMMAND on belongs to the command."""
    flags = _Parser(
        prog="python -m pslaunch",
        description="Run COMMAND in each of N workers, with servers and a scheduler.",
        usage="%(prog)s -n N [options] COMMAND [argument ...]",
        epilog=f"{textwrap.fill(EXIT_CODES, 79)}\n\n{EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_processes(flags.add_argument)
    _add_where(flags.add_argument)
    _add_variables(flags.add_argument)
    _add_logs(flags.add_argument)
    _add_starts(flags.add_argument)
    flags.add_argument(
        "--json", action="store_true", help="print a last line of JSON: the outcome of "
        "the job, and of each worker the last line that is JSON, else its last line")
    flags.add_argument(
        "--dry-run", action="store_true", help="show the commands without running them")
    flags.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    return flags


def _add_processes(add):
    add("-n", "--num-workers", type=int, required=True, metavar="N",
        help="number of workers")
    add("-s", "--num-servers", type=int, metavar="N",
        help="number of servers, 0 for --kv-store ring; default: as many as workers")
    add("--launcher", choices=LAUNCHERS, metavar="NAME",
        help=f"{', '.join(LAUNCHERS)} (the last was tested only with a stand-in); "
        "default: ssh with -H, else local")


def _add_variables(add):
    add("--env", type=_variable, action="append", default=[], metavar="VAR:VALUE",
        help="set a variable for all; VAR alone passes on its value")
    for role in ("worker", "server"):
        add(f"--env-{role}", type=_variable, action="append", default=[],
            metavar="VAR:VALUE", help=f"set a variable for each {role}")


def _add_logs(add):
    add("--deadline", type=float, metavar="SECONDS",
        help="end the job after this time; 0, the default: no limit")
    add("--log-dir", metavar="DIR",
        help="keep a complete log of each process there; default: temporary logs, "
        "of which only the ends are kept")
    add("--ps-verbose", dest="verbose", type=int, choices=(0, 1, 2), default=0,
        help="1: log connections, 2: all messages")


def _add_starts(add):
    add("--attempts", type=int, default=Settings.attempts, metavar="N",
        help="start a job at most N times if it does not become ready; default 3. "
        "What COMMAND does before it opens the store may be repeated.")
    add("--ready-timeout", type=float, default=Settings.ready_timeout,
        metavar="SECONDS", help="time for listening nodes to connect; default "
        f"{Settings.ready_timeout:g}")
    add("--max-restarts", type=int, default=0, metavar="N",
        help="restart a failed job at most N times; default 0. D2L_EXT_START holds "
        "1 plus the number of restarts; COMMAND should resume from a checkpoint")


def _add_where(add):
    add("-H", "--hostfile", dest="hosts", metavar="FILE",
        help="a file of hosts; servers and workers are placed on them in turn")
    add("--sync-dst-dir", metavar="DIR", help="copy the working directory there on "
        "each host, with rsync; default: the hosts share it")
    add("--interface", metavar="NAME", help="the network interface that the "
        "job uses on every host; default: the one that reaches the other hosts")
    add("--ssh-config", metavar="FILE", help="ssh's configuration file; default: "
        "~/.ssh/config")
    add("--python", default=sys.executable, metavar="PATH",
        help="the path of Python on the hosts; default: its path here")
    add("--submit-args", type=shlex.split, default=(), metavar="WORDS",
        help="arguments of the command that submits the job, such as '-p short'")


def parse(argv=None):
    """Parse `argv`: (command, settings, dry_run, wants_json).

    `settings`: a dict for `plan.Settings`. The command begins after the last flag, or
    after `--`.
    """
    flags = parser()
    given = vars(flags.parse_args(argv))
    command, dry_run, wants_json = map(given.pop, ("command", "dry_run", "json"))
    if command[:1] == ["--"]:
        del command[0]
    if not command:
        flags.error("no command: give it after the flags")
    for name in ("env", "env_worker", "env_server"):
        given[name] = dict(given[name])
    if given["num_servers"] is None:
        given["num_servers"] = given["num_workers"]
    return command, {**given, "stream": True}, dry_run, wants_json


def _variable(text):
    """Return (name, value) of `NAME:VALUE`, `NAME=VALUE`, or `NAME` with its value."""
    cut = min((text.index(c) for c in ":=" if c in text), default=len(text))
    name, value = text[:cut], text[cut + 1 :]
    if cut == len(text):
        if name not in os.environ:
            raise argparse.ArgumentTypeError(f"{name} is not set here: give a value, "
                                             "as in OMP_NUM_THREADS:3")
        value = os.environ[name]
    return name, value


if __name__ == "__main__":
    sys.exit(main())
