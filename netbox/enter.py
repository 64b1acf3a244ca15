"""Run a command inside a machine: `enter.py PID USER COMMAND …`, run as a program.

`PID`: process 1 of the machine. `USER`: `-`; in a user namespace `root`, or `UID:GID`
for the ordinary user that the command should be. Signals are passed on, and when this
process dies, however it does, so does the command: to the caller, this process is as
good as the command itself.
"""

import os
import signal
import sys

from hold import NEWUSER, PR_SET_PDEATHSIG, call, map_ids

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT,
             signal.SIGUSR1, signal.SIGUSR2)  # fmt: skip


def enter(pid, kinds):
    """Join namespaces of `pid`; keep the working directory where it exists inside."""
    here = os.getcwd()
    # All before the first is joined: then there is another /proc.
    files = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in kinds]
    for file in files:
        call("setns", file, 0)
        os.close(file)
    try:
        os.chdir(here)
    except OSError:
        os.chdir("/")


def become(user):
    """An ordinary user again, in a user namespace inside of the machine's."""
    uid, gid = map(int, user.split(":"))
    call("unshare", NEWUSER)
    map_ids(uid, 0, gid, 0)


def run(user, command):
    """The child: never returns."""
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    try:
        if ":" in user:
            become(user)
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def main(pid, user, *command):
    # A terminal sends Ctrl-C to the command as well.
    interactive = os.isatty(0)
    enter(pid, (["user"] if user != "-" else []) + ["net", "uts", "pid", "mnt"])
    child = os.fork()
    if not child:
        run(user, command)
    for signum in PASSED_ON:
        ignored = interactive and signum in (signal.SIGINT, signal.SIGQUIT)
        signal.signal(signum, signal.SIG_IGN if ignored else
                      lambda number, _: os.kill(child, number))  # fmt: skip
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        signum = os.WTERMSIG(status)
        if signum != signal.SIGKILL:
            signal.signal(signum, signal.SIG_DFL)
        os.kill(os.getpid(), signum)
    sys.exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main(*sys.argv[1:])
