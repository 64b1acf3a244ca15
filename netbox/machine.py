"""A machine of its own: namespaces for network, processes, mounts and host name."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
#: In a moment: nothing of the user's and no packages.
PYTHON = [sys.executable, "-E", "-s", "-S"]


class NoMachine(OSError):
    """The system did not let one be made."""


class Machine:
    """`name`: of the host. `user`: None as root; True for a new user namespace, or the
    `Machine` whose user namespace it joins. `binds`: pairs (what, where) that this
    machine alone sees there; without them it has the caller's `/run`.

    `pid`: its process 1, as the caller sees it. Raises `NoMachine` from `wait`.
    """

    def __init__(self, name, user=None, binds=None):
        self.name, self.user, self.pid = name, user, None
        told = {"name": name, "user": user.pid if isinstance(user, Machine) else user}
        if binds is not None:
            told["binds"] = [[os.fspath(path) for path in pair] for pair in binds]
        env = {n: os.environ[n] for n in ("PATH", "LD_LIBRARY_PATH") if n in os.environ}
        self.holder = subprocess.Popen(
            [*PYTHON, HERE / "hold.py"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, cwd="/", start_new_session=True, env=env,
        )  # fmt: skip
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
        )  # fmt: skip
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise OSError(f"{' '.join(command)} in {self.name}: {said}")
        return done.stdout

    def command(self, words, as_user=None):
        """The command line that runs `words` inside of it; `as_user`: (uid, gid)."""
        user = "-"
        if self.user:
            user = "{}:{}".format(*as_user) if as_user else "root"
        return [*PYTHON, str(HERE / "enter.py"), str(self.pid),
                user, *map(os.fspath, words)]  # fmt: skip

    def processes(self):
        """Ids of all that runs in it but its process 1, as the caller sees them."""
        own = os.readlink(f"/proc/{self.pid}/ns/pid")
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                if pid != self.pid and _namespace(pid) == own]  # fmt: skip


def _namespace(pid):
    """Of a process that runs: None when it has ended, or is another user's."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return None if state in "ZX" else os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None
