"""The launcher `ssh`: every server and worker runs on a host of a list.

One ssh per process, and an agent at its other end: `agent.py`, which is sent there
first. The command line that a remote shell reads is the same in every job; what to run,
and its variables, go through the channel.
"""

import contextlib
import os
import shlex
import subprocess
import time
from pathlib import Path

from . import addresses, channel, crew, hosts, processes, sync
from .environment import START
from .failures import LOST, Failed
from .ssh_errors import explain

#: Reads a program from its standard input, of so many bytes, and becomes it.
BECOME = ("f=open(0,'rb',0,closefd=False);"
          "exec(b''.join(f.read(1)for _ in range(int(f.readline()))))")  # fmt: skip
#: What the agent is made of.
PARTS = ("processes", "nearby", "agent")
#: No questions, no unknown hosts, nothing for others to use, and no waiting.
OPTIONS = {
    "BatchMode": "yes", "StrictHostKeyChecking": "yes", "ConnectTimeout": "8",
    "ServerAliveInterval": "3", "ServerAliveCountMax": "3", "ControlPath": "none",
    "ForwardAgent": "no", "ForwardX11": "no", "ClearAllForwardings": "yes",
    "PermitLocalCommand": "no", "RemoteCommand": "none", "RequestTTY": "no",
    "LogLevel": "ERROR",
}  # fmt: skip
root = addresses.of_scheduler


def check(plan):
    """Raise `ValueError` when `plan` names no hosts."""
    if not plan.where.hosts:
        raise ValueError("the launcher ssh needs hosts: name a file of them (-H)")
    if plan.where.submit_args:
        raise ValueError("submit_args: ssh submits nothing to a scheduler")


def client(where, host):
    """The words of an `ssh` to `host`, without what it should run."""
    words = ["ssh", "-T"]
    for name, value in OPTIONS.items():
        words += ["-o", f"{name}={value}"]
    words += ["-F", where.ssh_config] if where.ssh_config else []
    words += ["-p", str(host.port)] if host.port else []
    words += ["-l", host.user] if host.user else []
    return words


def command(where, host):
    """The words that start an agent on `host`. Its shell reads the last."""
    become = f"exec {shlex.quote(where.python)} -E -s -S -c {shlex.quote(BECOME)}"
    return [*client(where, host), "--", host.name, become]


def program():
    """The text of the agent, with its length in front."""
    texts = [(f"pslaunch.{name}",
              Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))
             for name in PARTS]  # fmt: skip
    text = f"""\
import sys, types
for name, text in {texts!r}:
    module = sys.modules[name] = types.ModuleType(name)
    package = module.__package__ = name.rpartition(".")[0]
    parent = sys.modules.setdefault(package, types.ModuleType(package))
    exec(compile(text, name, "exec"), module.__dict__)
    setattr(parent, name.rpartition(".")[2], module)
sys.exit(module.serve(0, 1))
""".encode()
    return b"%d\n" % len(text) + text


class Crew(crew.Crew):
    """Agents over ssh. A host that does not answer is an error in the first start of a
    job; in a restart it is left out, while others are there.
    """

    def open(self):
        self.program, self.clients, self.gone = program(), {}, set()
        self.copies = None
        count = [role for role, _ in self.wanted].count
        for role, host in hosts.place(self.plan.where.hosts, count("server"),
                                      count("worker")):  # fmt: skip
            self._contact(role, host)

    def _contact(self, role, host):
        (their_in, to), (back, their_out), (said, their_err) = (
            os.pipe() for _ in range(3))  # fmt: skip
        try:
            process = subprocess.Popen(
                command(self.plan.where, host), stdin=their_in, stdout=their_out,
                stderr=their_err, start_new_session=True,
                env={**os.environ, processes.MARK: self.job},
            )  # fmt: skip
        finally:
            for file in (their_in, their_out, their_err):
                os.close(file)
        link = channel.Channel(back, to, host.name, role)
        os.set_blocking(said, False)
        self.clients[link] = process, said, host
        link.send(self.program)
        self.add(link, folder=self.plan.where.sync_dst_dir)

    def look(self):
        for link, (_, said, _) in self.clients.items():
            link.said = getattr(link, "said", b"") + _read(said)

    def reason(self, link):
        process = self.clients[link][0]
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2)
        process.kill()
        process.wait()
        self.look()
        text = (link.noise + link.inbox + link.said).decode("utf-8", errors="replace")
        return explain(text, self.clients[link][2], self.plan.where)

    def lost(self, link):
        host, why = self.clients[link][2], self.reason(link)
        starts = int(self.plan.env[link.role].get(START, 1))
        left = [h for h in self.plan.where.hosts if h not in {*self.gone, host}]
        if starts == 1 or not left:
            raise Failed(f"{host} cannot be used: {why}", LOST)
        if host not in self.gone:
            self.gone.add(host)
            self.say(f"{host} is left out of start {starts}: {why}")
        self._contact(link.role, left[len(self.clients) % len(left)])

    def prepared(self):
        if not self.plan.where.sync_dst_dir:
            return True
        if self.copies is None:
            used = {client[2] for link, client in self.clients.items()
                    if link in self.channels}  # fmt: skip
            self.copies = sync.Copies(self.plan.where, used, self.job, self.say)
        return self.copies.done()

    def close(self):
        if self.copies:
            self.copies.end()
        until = time.monotonic() + 1
        for process, said, _ in self.clients.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0, until - time.monotonic()))
            process.kill()
            process.wait()
            os.close(said)


def _read(file):
    with contextlib.suppress(BlockingIOError):
        return os.read(file, 65536)
    return b""


def describe(plan):
    """What would run on which host, for `--dry-run`: a list of lines."""
    where, lines = plan.where, []
    count = [role for role, _ in plan.nodes].count
    placed = hosts.place(where.hosts, count("server"), count("worker"))
    for host in dict.fromkeys(host for _, host in placed):
        lines.append(f"{host}:")
        if where.sync_dst_dir:
            lines.append(f"  copy: {os.getcwd()} to {where.sync_dst_dir}")
        for role in [role for role, other in placed if other == host]:
            names = [f"DMLC_ROLE={role}", *(f"{name}=…" for name in plan.env[role])]
            words = [where.python if word is None else word
                     for word in plan.command_of(role, there=True)]  # fmt: skip
            lines.append(f"  {role}: {' '.join(names)} {shlex.join(words)}")
    return lines
