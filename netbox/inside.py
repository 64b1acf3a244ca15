"""The program inside a machine of a box, with two commands.

`inside.py hold` holds a machine's namespaces open, by two processes:

    caller --pipe-- holder ---- init, process 1 of the new namespaces

The holder prints the id of `init` as the caller sees it, and `ready`, and waits for a
second line or the end of its standard input. Then it kills `init`, whereupon the system
ends every process of the machine and removes its interfaces. The pipe closes even if
the caller is killed, so no part of a machine outlives its caller and the children that
it has forked. The holder that knows the box's folder removes it last.

`inside.py enter PID USER COMMAND …` runs a command in the machine whose process 1 is
`PID`. `USER`: `-`; in a user namespace `root`, or `UID:GID` to run it as an ordinary
user. This process passes signals on to the command, which dies with it, so the caller
can treat it as the command.

It imports only the standard library, in order to start quickly.
"""

import ctypes
import json
import os
import signal
import socket
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
NEWNS, NEWUTS, NEWUSER, NEWPID, NEWNET = (
    0x00020000, 0x04000000, 0x10000000, 0x20000000, 0x40000000)
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_SET_PDEATHSIG = 1
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT,
             signal.SIGUSR1, signal.SIGUSR2)
#: Seconds to keep removing a folder that other processes still write to.
PATIENCE = 60


def call_libc(function, *args):
    """Call a function of libc that returns 0. Raises `OSError` with the reason."""
    if getattr(LIBC, function)(*args):
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")


def mount(source, target, kind="", flags=0, data=""):
    words = [text.encode() for text in (source, target, kind, data)]
    try:
        call_libc("mount", *words[:3], ctypes.c_ulong(flags), words[3])
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} ({target})") from None


def become_root():
    """Map the caller's user, and no other, to root in a new user namespace."""
    uid, gid = os.getuid(), os.getgid()
    call_libc("unshare", NEWUSER)
    map_ids(0, uid, 0, gid)


def map_ids(uid, parent_uid, gid, parent_gid):
    """Map the ids of this process in its new user namespace."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {parent_uid} 1"),
                       ("gid_map", f"{gid} {parent_gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def join_user(pid):
    """Enter the user namespace of process `pid`."""
    with open(f"/proc/{pid}/ns/user") as file:
        call_libc("setns", file.fileno(), 0)


def init(machine, ready):
    """Process 1: set the machine up, and wait to be killed. It reaps orphans."""
    call_libc("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.setsid()
    for signum in (signal.SIGCHLD, signal.SIGINT):
        signal.signal(signum, signal.SIG_IGN)
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc")
    socket.sethostname(machine["name"])
    if "binds" in machine:
        # Hide the sockets and process ids of the system's services.
        mount("tmpfs", "/run", "tmpfs", data="mode=755")
        os.mkdir("/run/sshd", 0o755)
    for source, target in machine.get("binds", ()):
        mount(source, target, flags=MS_BIND)
    os.write(ready, b"ready\n")
    os.close(ready)
    os.close(0)
    os.closerange(3, 64)
    while True:
        signal.pause()


def hold():
    """Hold a machine until a second line of standard input, or its end.

    The first line describes the machine. `name`: the host's name. `user`: true for a
    new user namespace, or the id of a process whose namespace it joins. `binds`: pairs
    (source, target) that only it sees. `folder`: a folder to remove at the end.
    """
    machine, pid = json.loads(sys.stdin.buffer.readline()), None
    for signum in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(signum, signal.SIG_IGN)
    try:
        if machine["user"]:
            become_root() if machine["user"] is True else join_user(machine["user"])
        call_libc("unshare", NEWNET | NEWPID | NEWNS | NEWUTS)
        pid = os.fork()
        if not pid:
            init(machine, os.dup(1))
        print(pid, flush=True)
    except OSError as error:
        print(f"error {error.strerror}", flush=True)
        if pid == 0:  # the child, which is not process 1
            os._exit(1)
        os.close(1)  # so that the caller reads its end
    sys.stdin.buffer.readline()
    if pid:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    if "folder" in machine:
        remove(machine["folder"])


def remove(folder):
    """Remove a folder, even if other processes still write to it for a moment."""
    import shutil  # imported late: a machine should start quickly

    until = time.monotonic() + PATIENCE
    while os.path.lexists(folder) and time.monotonic() < until:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.02)


def join(pid, kinds):
    """Join namespaces of `pid`; keep the working directory where it exists inside."""
    here = os.getcwd()
    # Open all of them before joining the first, which replaces /proc.
    files = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in kinds]
    for file in files:
        call_libc("setns", file, 0)
        os.close(file)
    try:
        os.chdir(here)
    except OSError:
        os.chdir("/")


def become(user):
    """Become an ordinary user, in a user namespace within the machine's."""
    uid, gid = map(int, user.split(":"))
    call_libc("unshare", NEWUSER)
    map_ids(uid, 0, gid, 0)


def run(user, command):
    """Become the command, in the child; never return."""
    call_libc("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    try:
        if ":" in user:
            become(user)
        for signum in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
            signal.signal(signum, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def enter(pid, user, *command):
    """Run a command in the machine of process `pid`; pass signals and exit code on."""
    # A terminal sends Ctrl-C to the command, too.
    interactive = os.isatty(0)
    join(pid, (["user"] if user != "-" else []) + ["net", "uts", "pid", "mnt"])
    child = os.fork()
    if not child:
        run(user, command)
    for signum in PASSED_ON:
        ignored = interactive and signum in (signal.SIGINT, signal.SIGQUIT)
        signal.signal(signum, signal.SIG_IGN if ignored else
                      lambda number, _: os.kill(child, number))
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        signum = os.WTERMSIG(status)
        if signum != signal.SIGKILL:
            signal.signal(signum, signal.SIG_DFL)
        os.kill(os.getpid(), signum)
    sys.exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    {"hold": hold, "enter": enter}[sys.argv[1]](*sys.argv[2:])
