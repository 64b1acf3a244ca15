"""A machine's namespaces, held open by two processes: `hold.py`, run as a program.

    caller --pipe-- holder ---- init, process 1 of the new namespaces

The holder prints the id of `init` as the caller sees it, and `ready`, and waits for the
end of its standard input. Then it kills `init`, and with it the system ends every
process of the machine and takes its interfaces away. No signal can keep the system from
closing the caller's end: nothing of a machine outlives its caller.

Standard library alone, so that it starts in a moment.
"""

import ctypes
import json
import os
import signal
import socket
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
NEWNS, NEWUTS, NEWUSER, NEWPID, NEWNET = (
    0x00020000, 0x04000000, 0x10000000, 0x20000000, 0x40000000)  # fmt: skip
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_SET_PDEATHSIG = 1


def call(function, *args):
    """A function of libc's that returns 0. Raises `OSError` with its reason."""
    if getattr(LIBC, function)(*args):
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")


def mount(source, target, kind="", flags=0, data=""):
    words = [text.encode() for text in (source, target, kind, data)]
    try:
        call("mount", *words[:3], ctypes.c_ulong(flags), words[3])
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} ({target})") from None


def become_root():
    """In a new user namespace: the caller's user is root, and there is no other."""
    uid, gid = os.getuid(), os.getgid()
    call("unshare", NEWUSER)
    map_ids(0, uid, 0, gid)


def map_ids(uid, parent_uid, gid, parent_gid):
    """Say who the process is in its new user namespace."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {parent_uid} 1"),
                       ("gid_map", f"{gid} {parent_gid} 1")):  # fmt: skip
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def join_user(pid):
    """Enter the user namespace of process `pid`."""
    with open(f"/proc/{pid}/ns/user") as file:
        call("setns", file.fileno(), 0)


def init(machine, ready):
    """Process 1: set the machine up, and wait to be killed. It reaps orphans."""
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.setsid()
    for signum in (signal.SIGCHLD, signal.SIGINT):
        signal.signal(signum, signal.SIG_IGN)
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc")
    socket.sethostname(machine["name"])
    if "binds" in machine:
        # Sockets and process ids of the system's own services are none of ours.
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


def main():
    machine = json.loads(sys.stdin.buffer.readline())
    for signum in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(signum, signal.SIG_IGN)
    try:
        if machine["user"]:
            become_root() if machine["user"] is True else join_user(machine["user"])
        call("unshare", NEWNET | NEWPID | NEWNS | NEWUTS)
        pid = os.fork()
        if not pid:
            init(machine, os.dup(1))
    except OSError as error:
        print(f"error {error.strerror}", flush=True)
        os._exit(1)
    print(pid, flush=True)
    sys.stdin.buffer.read()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
