"""What a job uses on one host: its processes, and the ports they listen on.

This file needs only the standard library: agents, which use it, run on hosts without
other packages.
"""

import contextlib
import ctypes
import fcntl
import os
import random
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

#: The environment variable that marks the processes of a job, and their children.
MARK = "D2L_EXT_JOB"
DEATH, SUBREAPER = 1, 36  # what prctl calls PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER


def table(pids=None):
    """Return a dict from process ids, by default all, to (state, id of the parent)."""
    found = {}
    for pid in ids() if pids is None else pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
            letter, parent = file.read().rpartition(b") ")[2].split(None, 2)[:2]
            found[pid] = letter.decode(), int(parent)
    return found


def ids():
    """Return the ids of all processes of this system."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def state(pid):
    """Return a process's state as in /proc: 'T' stopped, 'Z' ended, '' gone."""
    return table([pid]).get(pid, ("", 0))[0]


def descendants(root, rows=None):
    """Return the ids of the descendants of `root` that have not ended, nearest first.

    `rows`: a `table`; by default a new one.
    """
    rows, found, new = table() if rows is None else rows, {}, [root]
    while new:
        new = [pid for pid, (_, parent) in rows.items()
               if parent in new and pid not in found]
        found.update(dict.fromkeys(new))
    return [pid for pid in found if rows[pid][0] != "Z"]


def halted(root, rows):
    """Return the first of `root` and its descendants that a signal has stopped, or
    None.

    A process that a debugger has stopped is in another state.
    """
    found = (pid for pid in [root, *descendants(root, rows)]
             if rows.get(pid, "-")[0] == "T")
    return next(found, None)


def environ(pid):
    """Return the environment that a process was started with, as a dict of strings;
    empty if the process has ended or belongs to another user.
    """
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        texts = os.fsdecode(file.read()).split("\0")
        return dict(text.split("=", 1) for text in texts if "=" in text)
    return {}


def node_of(pid):
    """Return (role, rank) of a process of a job, from its environment; else None."""
    env = environ(pid)
    role = env.get("DMLC_ROLE")
    return role and (role, int(env.get(f"DMLC_{role.upper()}_ID", 0)))


def members(job, under=None):
    """Return ids of processes with the mark of `job` or descending from `under`."""
    found = set(descendants(under) if under else ())
    found.update(pid for pid in ids() if environ(pid).get(MARK) == job)
    return found - {os.getpid()}


def end(job, grace=2.0, wait=5.0, under=None):
    """Send SIGTERM to all `members`, and SIGKILL after `grace` seconds; wait.

    Returns the ids of those that still run after `wait` more seconds. A process that
    has become another user's is left alone.
    """
    others = set()
    for signum, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, wait)):
        until, told = time.monotonic() + seconds, set()
        while True:
            left = members(job, under) - others
            for pid in left - told:  # one may start others meanwhile
                told.add(pid)
                try:
                    os.kill(pid, signum)
                except PermissionError:
                    others.add(pid)
                except ProcessLookupError:
                    pass
            if not left:
                return []
            if time.monotonic() > until:
                break
            time.sleep(0.02)
    return sorted(left)


def adopt():
    """Become the parent of orphaned descendants (a subreaper); `reap` them."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1)


def adopts():
    """Return whether this process is a subreaper."""
    answer = ctypes.c_int()
    ctypes.CDLL(None).prctl(SUBREAPER + 1, ctypes.byref(answer))
    return bool(answer.value)


def popen(command, **options):
    """Start a process that leads a session; the system kills it with this process.

    Only for programs without other threads: one of them could hold a lock.
    """
    prctl = ctypes.CDLL(None).prctl  # loaded before there is a second process
    parent = os.getpid()

    def die_with_parent():
        prctl(DEATH, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended already
            os._exit(1)

    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
        start_new_session=True, preexec_fn=die_with_parent, **options,  # noqa: PLW1509
    )


def reap():
    """Yield (id, exit code) of each child that has ended; then release its id."""
    with contextlib.suppress(ChildProcessError):
        while True:
            how = os.WEXITED | os.WNOHANG | os.WNOWAIT
            found = os.waitid(os.P_ALL, 0, how)
            if not found:
                return
            by_itself = found.si_code == os.CLD_EXITED
            yield found.si_pid, found.si_status if by_itself else -found.si_status
            os.waitpid(found.si_pid, 0)


def cancel(words, seconds=20):
    """Run the command that cancels a scheduler's job; ignore failures."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        if words:
            subprocess.run(words, check=False, stdin=subprocess.DEVNULL,
                           timeout=seconds, capture_output=True)


# ---- Ports, and addresses of this host ----

#: Below the ephemeral ports (from 32768 on Linux). Among those, a node that connects to
#: a port without a listener may be given that very port as its own, and so be connected
#: to itself.
FIRST_PORT, LAST_PORT = 10000, 32000
TRIES = 200
#: With `DMLC_LOCAL=1`, ps-lite uses sockets in this folder, named after the port.
SOCKETS = "/tmp"
LOOPBACK = "127.0.0.1"
SIOCGIFADDR = 0x8915
#: The code of `Refused` when a port is taken.
TAKEN = 98


class Refused(Exception):
    """A request that cannot be met. `code`: an exit code, as a shell's 126 or 127."""

    def __init__(self, text, code=1):
        self.code = code
        super().__init__(text)


def free_ports(count):
    """Return `count` ports in ascending order that are neither in use nor claimed.

    The agent that starts a process claims its ports, perhaps on another host. Raises
    `OSError` if there are not enough.
    """
    found = set()
    for _ in range(TRIES + 10 * count):
        port = random.SystemRandom().randint(FIRST_PORT, LAST_PORT)
        with contextlib.suppress(Refused):
            claim_port(port).close()
            found.add(port)
        if len(found) == count:
            return sorted(found)
    raise OSError(f"fewer than {count} free ports between {FIRST_PORT} and "
                  f"{LAST_PORT}")


def claim_port(port):
    """Keep other agents off `port` while the returned socket is open.

    The socket has a name in Linux's abstract namespace, which has no file and vanishes
    with the process. The port itself cannot be held, because ps-lite must bind it.
    Raises `Refused` if the port is claimed or in use.
    """
    own = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(OSError):
        own.bind(f"\0pslaunch:{port}")
        if not _is_in_use(port):
            return own
    own.close()
    raise Refused(f"port {port} is taken", TAKEN)


def is_listening(port):
    """Return whether a process of this host listens on `port`, on any address, or on
    the socket file that replaces the port with `DMLC_LOCAL=1`.
    """
    return _is_in_use(port) or Path(SOCKETS, str(port)).is_socket()


def _is_in_use(port):
    """Return whether `port` cannot be bound. The probe takes microseconds, and does not
    block a process that sets SO_REUSEADDR, as ps-lite does.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return True
    return False


def remove_sockets(ports):
    """Remove the socket files that killed nodes left behind with `DMLC_LOCAL=1`."""
    for path in (Path(SOCKETS, str(port)) for port in ports):
        if path.is_socket():
            path.unlink(missing_ok=True)


def own_address(root, interface=None):
    """Return the IPv4 address of `interface`, else the one that reaches `root`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            if not interface:
                probe.connect((root, 9))  # sends nothing
                return probe.getsockname()[0]
            name = struct.pack("256s", interface.encode()[:15])
            return socket.inet_ntoa(fcntl.ioctl(probe, SIOCGIFADDR, name)[20:24])
        except OSError as error:
            if not interface:
                raise Refused(f"no route to {root}: {error.strerror}") from None
            there = ", ".join(name for _, name in socket.if_nameindex())
            raise Refused(f"no address on interface {interface!r}; interfaces: {there}"
                          ) from None
