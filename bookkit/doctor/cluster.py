"""The needs of jobs on several machines: ports, ssh, MPI, schedulers, a box."""

import shutil
import socket
import threading

from pslaunch.submitted import OPEN_MPI, implementation

from . import BAD, NOTE, Finding

LOOPBACK = "127.0.0.1"
PATIENCE = 0.5  # seconds: a name server that does not answer takes many more
#: The command that submits a job, for each scheduler.
SCHEDULERS = {
    "Slurm": "srun",
    "Grid Engine": "qsub",
    "YARN": "yarn",
}
SERVERS = "/usr/sbin:/usr/local/sbin"  # where sshd is, often outside of the PATH


def tools(which=shutil.which, why_no_box=None):
    """Return the findings. `why_no_box()`: why a box is impossible here, or None."""
    client, server = which("ssh"), which("sshd") or which("sshd", path=SERVERS)
    schedulers = [name for name, command in SCHEDULERS.items() if which(command)]
    return [
        _ssh(client, server),
        _mpi(which("mpirun")),
        _tool("schedulers", ", ".join(schedulers), ""),
        _box((why_no_box or _why_no_box)()),
    ]


def _ssh(client, server):
    if client:
        return Finding("ssh", "client and server" if server else "client")
    return Finding("ssh", "no client here: stored results are shown", NOTE,
                   "sudo apt-get install openssh-client")


def _tool(topic, there, advice):
    if there:
        return Finding(topic, there)
    return Finding(topic, "none here: stored results are shown", NOTE, advice)


def _mpi(mpirun):
    found = mpirun and implementation(mpirun)
    advice = "sudo apt-get install openmpi-bin"
    if found in (None, OPEN_MPI):
        return _tool("MPI", found and f"mpirun of {found}", advice)
    return Finding("MPI", f"mpirun of {found}, which the launcher mpi refuses: it is "
                   "for Open MPI", NOTE, advice)


def _why_no_box():
    import netbox

    return netbox.why_not()


def _box(reason):
    if reason is None:
        return Finding("cluster in a box", "can run here")
    return Finding("cluster in a box", f"stored results are shown: {reason}", NOTE)


def ports(resolve=socket.gethostbyname, listener=socket.socket):
    """Return the findings about loopback ports and this host's own name."""
    return [_ports(listener), _name(resolve)]


def _ports(listener):
    try:
        with listener() as server, listener() as client:
            server.bind((LOOPBACK, 0))
            server.listen(1)
            client.settimeout(PATIENCE)
            client.connect(server.getsockname())
    except OSError as error:
        text = f"no connection on {LOOPBACK}: {error}"
        advice = "allow loopback: chapters on the distributed kvstore cannot run"
        return Finding("ports", text, BAD, advice)
    return Finding("ports", f"free ports on {LOOPBACK} can be connected to")


def _name(resolve):
    name, found = socket.gethostname(), []

    def look_up():
        try:
            found.append(resolve(name))
        except OSError:
            found.append(None)

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if found and found[0]:
        return Finding("host name", f"{name} is {found[0]}")
    text = f"{name} has no address: jobs over several machines start slowly"
    return Finding("host name", text, NOTE, f"add {name} to /etc/hosts")
