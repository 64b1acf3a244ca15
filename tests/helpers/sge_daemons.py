"""Grid Engine on the hosts of a box: the master on the head, an execution daemon on
each other. All of its files are in a folder of the box; what Debian has configured
for the whole system is left alone."""

import os
import re
from contextlib import contextmanager
from pathlib import Path

from daemons import starting
from job_checks import wait_for

LIBRARY = Path("/usr/lib/gridengine")
SHARE = Path("/usr/share/gridengine")
NEEDED = {LIBRARY / "sge_qmaster": "gridengine-master",
          LIBRARY / "sge_execd": "gridengine-exec",
          LIBRARY / "qsub": "gridengine-client"}
BOOTSTRAP = """\
admin_user none
default_domain none
ignore_fqdn false
spooling_method classic
spooling_lib libspoolc
spooling_params {spool}
binary_path /usr/sbin
qmaster_spool_dir {folder}/master
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""
HOST = """\
hostname {name}
load_scaling NONE
complex_values NONE
user_lists NONE
xuser_lists NONE
projects NONE
xprojects NONE
usage_scaling NONE
report_variables NONE
"""


def why_not():
    """None, or why Grid Engine can't be brought up here."""
    missing = [package for path, package in NEEDED.items() if not path.exists()]
    if missing:
        return f"Grid Engine needs Debian's {', '.join(missing)}"
    return "Grid Engine's daemons need root" if os.geteuid() else None


def changed(text, **values):
    """`text`, a configuration of Grid Engine's, with other values."""
    for name, value in values.items():
        text, count = re.subn(rf"(?m)^{name}\s.*$", f"{name} {value}", text)
        assert count == 1, name
    return text


@contextmanager
def running(cluster, slots=3):
    """Grid Engine on `cluster`, with so many slots on each host; the environment in
    which its commands find it. The daemons end with the hosts."""
    folder = cluster.folder / "sge"
    common = folder / "default" / "common"
    spool = f"{common};{folder}/spool"
    for path in (common, folder / "spool", folder / "master"):
        path.mkdir(parents=True)
    for name in ("bin", "lib", "utilbin", "util"):
        (folder / name).symlink_to(Path("/var/lib/gridengine") / name)
    (common / "act_qmaster").write_text("head\n")
    (common / "bootstrap").write_text(BOOTSTRAP.format(folder=folder, spool=spool))
    (folder / "configuration").write_text(changed(
        (SHARE / "default-configuration").read_text(), min_uid=0, min_gid=0,
        execd_spool_dir=cluster.head.private, load_report_time="00:00:01",
        mailer="none"))
    env = {"PATH": f"{os.environ['PATH']}:/usr/sbin", "SGE_ROOT": str(folder),
           "SGE_CELL": "default", "SGE_ND": "1", "SGE_QMASTER_PORT": "6444",
           "SGE_EXECD_PORT": "6445"}
    def tell(*command):
        told = cluster.head.run([str(word) for word in command], env=env, timeout=300)
        assert told.returncode == 0, (command, told.stdout, told.stderr)
        return told.stdout

    with starting(folder, env) as start:
        tell(LIBRARY / "spoolinit", "classic", "libspoolc", spool, "init")
        for kind, what in {
            "configuration": folder / "configuration", "managers": "root",
            "complexes": SHARE / "util/resources/centry",
            "usersets": SHARE / "util/resources/usersets",
        }.items():
            tell(LIBRARY / "spooldefaults", kind, what)
        start(cluster.head, LIBRARY / "sge_qmaster")
        wait_for(lambda: cluster.head.run(["qconf", "-sh"], env=env).returncode == 0)
        _configure(cluster, folder, env, tell, slots)
        for host in cluster.hosts:
            start(host, LIBRARY / "sge_execd")
        wait_for(lambda: len(re.findall(r"all\.q@h\d+ .* \S+ +\n",
                                        tell("qstat", "-f"))) == len(cluster.hosts))
        yield env


def _configure(cluster, folder, env, tell, slots):
    """Hosts, a scheduler in a hurry, and a queue of all hosts."""
    tell("qconf", "-as", "head")
    for host in cluster.hosts:
        (folder / "host").write_text(HOST.format(name=host.name))
        tell("qconf", "-ah", host.name)
        tell("qconf", "-Ae", folder / "host")
    (folder / "scheduler").write_text(changed(
        tell("qconf", "-ssconf"), schedule_interval="0:0:1", flush_submit_sec=1,
        flush_finish_sec=1))
    tell("qconf", "-Msconf", folder / "scheduler")
    names = " ".join(host.name for host in cluster.hosts)
    values = {"hostlist": names, "slots": slots, "pe_list": "NONE",
              "load_thresholds": "NONE", "shell_start_mode": "unix_behavior"}
    edits = [f"-e 's/^{name} .*/{name} {value}/'" for name, value in values.items()]
    editor = folder / "editor"  # which qconf calls with a queue as it would be
    editor.write_text(f"#!/bin/sh\nexec sed -i {' '.join(edits)} \"$1\"\n")
    editor.chmod(0o755)
    env["EDITOR"] = str(editor)
    tell("qconf", "-aq", "all.q")


def jobs(cluster, env):
    """Names of the jobs in the queue, as far as it prints them."""
    told = cluster.head.run(["qstat"], env=env, timeout=300)
    return [line.split()[2] for line in told.stdout.splitlines()[2:]]
