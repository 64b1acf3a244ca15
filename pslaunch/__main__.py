"""The command line: `python -m pslaunch -n 2 -s 1 python train.py --lr 0.1`.

The flags are in `options.py`; `--help` lists them.
"""

import json
import shlex
import signal
import sys
from contextlib import contextmanager

from . import environment, local, options, processes
from .plan import make
from .runner import run


def main(argv=None):
    """Run the job that `argv` describes, by default the process's; its exit code.

    What the processes print goes to standard output, what the launcher has to say
    to standard error. SIGTERM, SIGHUP and Ctrl-C end the job, with 128 and the
    signal's number.
    """
    args = options.parse(argv)
    if argv is None:  # this process runs nothing but the job
        processes.adopt()
    given = {
        "num_workers": args.num_workers, "num_servers": args.num_servers,
        "env": dict(args.env), "env_worker": dict(args.env_worker),
        "env_server": dict(args.env_server), "launcher": args.launcher,
        "verbose": args.ps_verbose, "hosts": args.hostfile,
        **{name: getattr(args, name) for name in options.WHERE},
    }  # fmt: skip
    try:
        plan = make(args.command, **given)
        if args.dry_run:
            return _show(plan)
        with _stoppable():
            job = run(args.command, **given, deadline=args.deadline or None,
                      stream=True, log_dir=args.log_dir, attempts=args.attempts,
                      ready_timeout=args.ready_timeout,
                      max_restarts=args.max_restarts)  # fmt: skip
    except (ValueError, OSError) as error:
        _say(f"error: {error}")
        return 2
    if job.returncode:
        _say(f"the job failed: {job.cause}")
        if job.culprit:
            _say(f"the last lines of {job.culprit}:")
            print(job.last_lines(10), file=sys.stderr)
    else:
        _say(f"{args.num_workers} workers and {args.num_servers} servers ended well, "
             f"{job.seconds:.1f} s, {job.attempts} start(s)")  # fmt: skip
    if args.json:
        print(json.dumps(summary(job, args.num_workers)), flush=True)
    return job.returncode


def summary(job, num_workers):
    """What became of a job, for a program to read: types of JSON.

    `workers`: of each the last line that is a JSON object, as `d2l_ext.train` prints
    one; without any, its last line.
    """
    outputs = [job.output("worker", i) for i in range(num_workers) if job.logs]
    return {
        "returncode": job.returncode, "cause": job.cause, "attempts": job.attempts,
        "restarts": job.restarts,
        "seconds": round(job.seconds, 2), "notes": job.notes,
        "workers": [_last_said(text) for text in outputs],
    }  # fmt: skip


def _last_said(text):
    lines = text.splitlines() or [""]
    # After a worker's last line ps-lite may write its own: messages, or a late abort.
    found = (_json_object(line) for line in reversed(lines))
    return next(filter(None, found), lines[-1])


def _json_object(line):
    if not line.startswith("{"):
        return None
    try:
        return json.loads(line)
    except ValueError:
        return None


def _show(plan):
    """Print commands, and the variables that the launcher sets; no other's value."""
    if plan.launcher is not local:
        print("here: scheduler-0")
        print(*plan.launcher.describe(plan), sep="\n")
        return 0
    ports = range(10000, 10000 + len(plan.nodes))  # as an example
    for role, rank in plan.nodes:
        own = environment.of_node(role, rank, plan.nodes, ports, "…")
        own.update({name: "…" for name in plan.env[role]})
        words = [f"{name}={value}" for name, value in own.items()]
        print(f"{role}-{rank}:", *words, shlex.join(plan.command_of(role)))
    return 0


@contextmanager
def _stoppable():
    """Let signals leave by an exception: on its way, all that was started is ended."""

    def stop(signum, _):
        _say(f"stopped by {signal.Signals(signum).name}, ending the job")
        sys.exit(128 + signum)

    signums = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = {signum: signal.signal(signum, stop) for signum in signums}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def _say(line):
    print(f"launch: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
