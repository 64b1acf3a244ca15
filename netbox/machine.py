"""A machine of its own: namespaces for network, processes, mounts and host name.

And whether one can be had here.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

#: In a moment: nothing of the user's and no packages.
INSIDE = [sys.executable, "-E", "-s", "-S", str(Path(__file__).with_name("inside.py"))]
#: Commands, and Debian's packages that bring them.
COMMANDS = {
    "ip": "iproute2", "tc": "iproute2", "iptables": "iptables",
    "nsenter": "util-linux", "ssh": "openssh-client", "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
}


class NoMachine(OSError):
    """The system did not let one be made."""


class Machine:
    """`name`: of the host. `user`: None as root; True for a new user namespace, or the
    `Machine` whose user namespace it joins. `binds`: pairs (what, where) that this
    machine alone sees there; without them it has the caller's `/run`. `folder`: what
    goes with it, however the caller ends, also if that makes it only later.

    `pid`: its process 1, as the caller sees it. Raises `NoMachine` from `wait`.
    """

    def __init__(self, name, user=None, binds=None, folder=None):
        self.name, self.user, self.pid = name, user, None
        told = {"name": name, "user": user.pid if isinstance(user, Machine) else user}
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
        """One that another process holds; `user`: whether it has a user namespace."""
        machine = cls.__new__(cls)
        machine.name, machine.pid, machine.user, machine.holder = name, pid, user, None
        return machine

    def wait(self):
        """Wait until it is up; return it."""
        said = {self.holder.stdout.readline().decode().strip() for _ in range(2)}
        numbers = said - {"ready"}
        if "ready" not in said or not all(word.isdigit() for word in numbers):
            self.end()
            why = " ".join(sorted(numbers)).replace("error ", "").strip()
            raise NoMachine(f"the system made no machine {self.name}: {why}")
        self.pid = int(*numbers)
        return self

    def end(self):
        """End every process of it at once."""
        self.holder.stdin.close()
        self.holder.stdout.close()
        self.holder.wait()

    def ip(self, *lines):
        """Configure its network, with commands of `ip`."""
        self.tool(["ip", "-batch", "-"], "\n".join(lines))

    def tool(self, command, text=""):
        """Run an administrator's command in its network. Raises `OSError`."""
        user = ["--user", "--preserve-credentials"] if self.user else []
        done = subprocess.run(
            ["nsenter", "--target", str(self.pid), *user, "--net", *command],
            check=False, input=text, capture_output=True, text=True,
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise OSError(f"{' '.join(command)} in {self.name}: {said}")
        return done.stdout

    def command(self, words, as_user=None):
        """The command line that runs `words` inside of it; `as_user`: (uid, gid)."""
        user = "-"
        if self.user:
            user = "{}:{}".format(*as_user) if as_user else "root"
        return [*INSIDE, "enter", str(self.pid), user, *map(os.fspath, words)]

    def processes(self):
        """Ids of all that runs in it but its process 1, as the caller sees them."""
        own = os.readlink(f"/proc/{self.pid}/ns/pid")
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                if pid != self.pid and _namespace(pid) == own]


def _namespace(pid):
    """Of a process that runs: None when it has ended, or is another user's."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return None if state in "ZX" else os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def find(command):
    """The path of a command, also of one that is for administrators; or None."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    return shutil.which(command, path=path)


def why_not():
    """None where a box can be had, else one sentence that says what is in the way."""
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
    machine = Machine("probe", True if os.geteuid() else None, binds=())
    try:
        machine.wait()
        machine.ip("link add br0 type bridge", "link set lo up")
    finally:
        if not machine.holder.stdin.closed:
            machine.end()
