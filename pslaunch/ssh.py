"""The launcher `ssh`: servers and workers run on the hosts of a list.

Each process has an ssh connection with an agent at its far end: `agent.py`, which the
launcher sends first. The command line that the remote shell reads is the same in every
job; commands and variables travel through the channel.
"""

import os
import shlex
import shutil
import socket
import subprocess
import time
from pathlib import Path

from . import channel, crew
from .job import LOST, Failed
from .plan import START, configured, place, scheduler_address

#: Reads the length of a program and its text from standard input, and runs it.
BECOME = ("f=open(0,'rb',0,closefd=False);"
          "exec(b''.join(f.read(1)for _ in range(int(f.readline()))))")
#: The files of the agent.
PARTS = ("processes", "channel", "agent")
#: No prompts, no unknown hosts, no forwarding, and no long waits.
OPTIONS = {
    "BatchMode": "yes", "StrictHostKeyChecking": "yes", "ConnectTimeout": "30",
    "ServerAliveInterval": "3", "ServerAliveCountMax": "3", "ControlPath": "none",
    "ForwardAgent": "no", "ForwardX11": "no", "ClearAllForwardings": "yes",
    "PermitLocalCommand": "no", "RemoteCommand": "none", "RequestTTY": "no",
    "LogLevel": "ERROR",
}


def placed(settings):
    """Return [(role, host)] of a job's servers and workers."""
    return place(settings.hosts, settings.num_servers, settings.num_workers)


def client(settings, host):
    """Return the words of an `ssh` to `host`, without a remote command."""
    words = ["ssh", "-T"]
    for name, value in OPTIONS.items():
        words += ["-o", f"{name}={value}"]
    words += ["-F", settings.ssh_config] if settings.ssh_config else []
    words += ["-p", str(host.port)] if host.port else []
    words += ["-l", host.user] if host.user else []
    return words


def agent_command(settings, host):
    """Return words that start an agent on `host`, whose shell reads the last one."""
    become = f"exec {shlex.quote(settings.python)} -E -s -S -c {shlex.quote(BECOME)}"
    return [*client(settings, host), "--", host.name, become]


def agent_source():
    """Return the text of the agent, with its length in front."""
    texts = [(f"pslaunch.{name}",
              Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))
             for name in PARTS]
    text = f"""\
import sys, types
for name, text in {texts!r}:
    module = sys.modules[name] = types.ModuleType(name)
    package = module.__package__ = name.rpartition(".")[0]
    parent = sys.modules.setdefault(package, types.ModuleType(package))
    exec(compile(text, name, "exec"), module.__dict__)
    setattr(parent, name.rpartition(".")[2], module)
from pslaunch.channel import Channel
module.serve(Channel(0, 1))
""".encode()
    return b"%d\n" % len(text) + text


class Ssh(crew.Crew):
    """Agents over ssh. A host that does not answer fails the first start of a job; a
    restart leaves it out, as long as another host answers.
    """

    scheduler_address = staticmethod(scheduler_address)

    @classmethod
    def check(cls, plan):
        if not plan.settings.hosts:
            raise ValueError("the launcher ssh needs hosts: give a hosts file (-H)")
        if plan.settings.submit_args:
            raise ValueError("submit_args: the launcher ssh submits no job")
        if plan.settings.sync_dst_dir and not shutil.which("rsync"):
            raise ValueError("sync_dst_dir needs rsync: install it here and on the "
                             "hosts")

    @classmethod
    def describe(cls, plan):
        folder, there = plan.settings.sync_dst_dir, placed(plan.settings)
        lines = ["here: scheduler-0"]
        for host in dict.fromkeys(host for _, host in there):
            lines.append(f"{host}:")
            if folder:
                lines.append(f"  copy: {os.getcwd()} to {folder}")
            lines += [f"  {role}: {plan.shown(role)}" for role, at in there
                      if at == host]
        return lines

    def open(self):
        self.program, self.clients, self.gone = agent_source(), {}, set()
        self.copies = None
        for role, host in placed(self.plan.settings):
            self._contact(role, host)

    def _contact(self, role, host):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            words = agent_command(self.plan.settings, host)
            client = crew.Program(words, self.job, stdin=theirs, stdout=theirs)
            fd = ours.detach()
        link = channel.Channel(fd, fd, host.name, role)
        self.clients[link] = client, host
        link.send(self.program)
        self.add(link, folder=self.plan.settings.sync_dst_dir)

    def reason(self, link):
        client, host = self.clients[link]
        client.end(2)
        text = (link.noise + link.inbox).decode("utf-8", errors="replace")
        return explain(text + client.printed(), host, self.plan.settings)

    def lost(self, link):
        host, why = self.clients[link][1], self.reason(link)
        starts = int(self.plan.env[link.role].get(START, 1))
        left = [h for h in self.plan.settings.hosts if h not in {*self.gone, host}]
        if starts == 1 or not left:
            raise Failed(f"{host} cannot be used: {why}", LOST)
        if host not in self.gone:
            self.gone.add(host)
            self.say(f"{host} is left out of start {starts}: {why}")
        self._contact(link.role, left[len(self.clients) % len(left)])

    def gathered(self):
        """Return whether all agents have arrived, and all hosts have the folder."""
        settings = self.plan.settings
        if not super().gathered() or not settings.sync_dst_dir:
            return bool(self.placed)
        if self.copies is None:
            used = sorted({self.clients[link][1] for link in self.channels}, key=str)
            self.copies = {host: crew.Program(rsync(settings, host), self.job,
                                              stdin=subprocess.DEVNULL)
                           for host in used}
        for host, copy in list(self.copies.items()):
            if copy.poll() is not None:
                del self.copies[host]
                if copy.returncode:
                    raise Failed(f"{host}: the folder could not be copied: "
                                 f"{' '.join(copy.printed().split())}")
                self.say(f"copied {os.getcwd()} to {host}:{settings.sync_dst_dir}, "
                         f"without {', '.join(LEFT_OUT)}")
        return not self.copies

    def close(self):
        for copy in (self.copies or {}).values():
            copy.end()
        until = time.monotonic() + 1
        for client, _ in self.clients.values():
            client.end(max(0, until - time.monotonic()))


# ---- The working directory, copied to every host by rsync ----

#: A host has its own, or needs none.
LEFT_OUT = (".git", ".venv", "__pycache__")


def rsync(settings, host):
    """Return the words of an rsync to `host`. No shell reads the folder's name."""
    target = f"{host.user}@{host.name}" if host.user else host.name
    shell = shlex.join(client(settings, host))
    return ["rsync", "--archive", "--compress", "--secluded-args",
            *(f"--exclude={name}" for name in LEFT_OUT), f"--rsh={shell}", "--",
            "./", f"{target}:{settings.sync_dst_dir.rstrip('/')}/"]


# ---- Failures of ssh: what it prints, what that means, what to do ----

#: A part of ssh's message; what it means, and what to do.
KNOWN = {
    "IDENTIFICATION HAS CHANGED": "its host key differs from the known one. Either "
    "the connection is intercepted, or the host was reinstalled: ask its "
    "administrator. Then remove the old key with `ssh-keygen -R {name}{file}`, and "
    "accept the new one with `{accept}`",
    "host key is known for": "its host key is not known here. Compare its fingerprint "
    "with the one its administrator gives you, and accept it with `{accept}`",
    "Permission denied": "it rejects this user. Is your key in its "
    "authorized_keys (`ssh-copy-id {target}`)? ssh said: {said}",
    "Could not resolve hostname": "unknown host name: {said}",
    "Connection timed out": "it does not answer: {said}",
    "Connection refused": "no sshd listens on that port: {said}",
    "No route to host": "it does not answer: {said}",
    "not responding": "the connection was lost: {said}",
}


def explain(text, host, settings):
    """Return one line that explains the output of a failed ssh to `host`."""
    said = " ".join(text.split()) or "the connection ended without a message"
    config = settings.ssh_config
    options = "".join([f" -F {shlex.quote(config)}" if config else "",
                       f" -p {host.port}" if host.port else ""])
    target = f"{host.user}@{host.name}" if host.user else host.name
    words = {
        "name": f"[{host.name}]:{host.port}" if host.port else host.name,
        "file": f" -f {_known_hosts(settings, host)}" if config else "",
        "target": target, "said": said,
        "accept": f"ssh{options} -o BatchMode=no -o StrictHostKeyChecking=ask "
        f"{target} true",
    }
    for part, advice in KNOWN.items():
        if part in text:
            return advice.format(**words)
    return said


def _known_hosts(settings, host):
    """Return the file where ssh would store the key of `host`, quoted for a shell."""
    files = configured(settings, host).get("userknownhostsfile", "~/.ssh/known_hosts")
    first = files.replace(" ~", " /").partition(" /")[0]
    return shlex.quote(os.path.expanduser(first))
