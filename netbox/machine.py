"""A machine: namespaces for network, processes, mounts and host name.

`why_not` says whether this system allows one.
"""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

#: Starts quickly: without user settings and site packages.
INSIDE = [sys.executable, "-E", "-s", "-S", str(Path(__file__).with_name("inside.py"))]
#: The commands, and the Debian packages that contain them.
COMMANDS = {
    "ip": "iproute2", "tc": "iproute2", "iptables": "iptables",
    "nsenter": "util-linux", "ssh": "openssh-client", "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
}


class NoMachine(OSError):
    """The system did not allow a machine."""


class Namespaces:
    """The namespaces of one host; `wait` raises `NoMachine` if there can be none.

    `name`: the host's name. `user`: None for root; True for a new user namespace, or
    the `Namespaces` whose user namespace it joins. `binds`: pairs (source, target) that
    only this machine sees; without them it has the caller's `/run`. `folder`: removed
    with the machine, even if the caller is killed or creates it only later. `pid`: its
    process 1, as the caller sees it.
    """

    def __init__(self, name, user=None, binds=None, folder=None):
        self.name, self.user, self.pid = name, user, None
        told = {"name": name,
                "user": user.pid if isinstance(user, Namespaces) else user}
        if binds is not None:
            told["binds"] = [[os.fspath(path) for path in pair] for pair in binds]
        if folder is not None:
            told["folder"] = os.fspath(folder)
        env = {n: os.environ[n] for n in ("PATH", "LD_LIBRARY_PATH") if n in os.environ}
        self.holder = subprocess.Popen(
            [*INSIDE, "hold"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, cwd="/", start_new_session=True, env=env,
        )
        self.holder.stdin.write(json.dumps(told).encode() + b"\n")
        self.holder.stdin.flush()

    @classmethod
    def of_pid(cls, name, pid, user):
        """Return a machine held by another process; `user`: in a user namespace."""
        machine = cls.__new__(cls)
        machine.name, machine.pid, machine.user, machine.holder = name, pid, user, None
        return machine

    def wait(self):
        """Wait until the machine is up; return it."""
        said = {self.holder.stdout.readline().decode().strip() for _ in range(2)}
        numbers = said - {"ready"}
        if "ready" not in said or not all(word.isdigit() for word in numbers):
            self.end()
            words = sorted(word for word in numbers if not word.isdigit())
            why = " ".join(words).replace("error ", "").strip()
            raise NoMachine(f"the system could not create machine {self.name}: {why}")
        self.pid = int(*numbers)
        return self

    def end(self):
        """End all its processes at once."""
        if not self.holder.stdin.closed:
            # A child that the caller has forked may keep this pipe open.
            with suppress(BrokenPipeError):  # the holder was killed
                os.write(self.holder.stdin.fileno(), b"end\n")
            self.holder.stdin.close()
        self.holder.stdout.close()
        self.holder.wait()

    def ip(self, *lines):
        """Configure its network with commands of `ip`."""
        self.tool(["ip", "-batch", "-"], "\n".join(lines))

    def tool(self, command, text=""):
        """Run an administrator's command in its network. Raises `OSError`."""
        user = ["--user", "--preserve-credentials"] if self.user else []
        done = subprocess.run(
            ["nsenter", "--target", str(self.pid), *user, "--net",
             find(command[0]) or command[0], *command[1:]],
            check=False, input=text, capture_output=True, text=True,
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise OSError(f"{' '.join(command)} in {self.name}: {said}")
        return done.stdout

    def command(self, words, as_user=None):
        """Return the command line that runs `words` inside. `as_user`: (uid, gid)."""
        user = "-"
        if self.user:
            user = "{}:{}".format(*as_user) if as_user else "root"
        return [*INSIDE, "enter", str(self.pid), user, *map(os.fspath, words)]

    def processes(self):
        """Return its processes' ids, without process 1, as the caller sees them."""
        own = os.readlink(f"/proc/{self.pid}/ns/pid")
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                if pid != self.pid and _namespace(pid) == own]


def _namespace(pid):
    """Return a process's PID namespace; None if it ended or is another user's."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return None if state in "ZX" else os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def find(command):
    """Return the path of a command, also in the administrator's folders, or None."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    return shutil.which(command, path=path)


def why_not():
    """Return None if this system allows a box, else a sentence with the reason."""
    if not sys.platform.startswith("linux"):
        return f"A cluster in a box needs Linux; this is {sys.platform}."
    missing = {name: pack for name, pack in COMMANDS.items() if not find(name)}
    if missing:
        packages = sorted(set(missing.values()))
        them = "them" if packages[1:] else "it"
        return (f"A cluster in a box needs {', '.join(missing)}: install Debian's "
                f"{', '.join(packages)}, or what corresponds to {them}.")
    try:
        _try()
    except OSError as error:
        who = "root" if os.geteuid() == 0 else "this user"
        return f"A cluster in a box needs namespaces, and {who} gets none: {error}."
    return None


def _try():
    """Make a machine with an interface, and end it."""
    machine = Namespaces("probe", True if os.geteuid() else None, binds=())
    try:
        machine.wait()
        machine.ip("link add br0 type bridge", "link set lo up")
    finally:
        machine.end()
