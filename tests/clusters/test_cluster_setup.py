"""The commands of the page *Setting up a cluster*, run from the page itself."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import netbox as box

ROOT = Path(__file__).parents[2]
MISSING = [tool for tool in ("curl", "ssh-keyscan", "rsync", "bash")
           if not shutil.which(tool)]
REASON = (box.why_not() or (os.geteuid() and "sshd listens on another port for users")
          or (MISSING and f"not here: {', '.join(MISSING)}"))
in_a_box = pytest.mark.skipif(bool(REASON), reason=str(REASON))
JOB = "import d2l_ext, mxnet as mx; print(mx.kv.create('dist_sync').num_workers)"


def blocks(kind):
    """The blocks of the page that are marked as `kind`."""
    text = (ROOT / "reference/cluster_setup.md").read_text(encoding="utf-8")
    pattern = rf"```\{{code-block\}} bash\n:class: {kind}\n(.*?)```"
    return re.findall(pattern, text, flags=re.DOTALL)


def test_every_command_of_the_page_says_whether_it_is_tried():
    text = (ROOT / "reference/cluster_setup.md").read_text(encoding="utf-8")
    begins = [m.start() for m in re.finditer(r"(?m)^```(\{code-block\} )?bash", text)]
    assert len(begins) >= len(blocks("tried")) + 4 and len(blocks("tried")) >= 9
    for begin in begins:
        before = text[:begin].rstrip().splitlines()[-1]
        assert re.match(r"\*\*Tried|\*Not tried", before), before


@pytest.fixture(scope="module")
def cluster():
    with box.Cluster(hosts=3) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def own(cluster):
    """What takes the place of `~/.ssh` on the head."""
    folder = cluster.head.disk / "ssh"
    folder.mkdir(mode=0o700)
    return f"{cluster.head.private}/ssh"


def on_head(cluster, own, scripts):
    """Run scripts as one, with a passphrase for whoever asks; what they printed."""
    ask = cluster.folder / "ask"
    ask.write_text("#!/bin/sh\necho a passphrase\n")
    ask.chmod(0o700)
    agent = 'trap \'test -z "${SSH_AGENT_PID-}" || kill $SSH_AGENT_PID\' EXIT'
    ssh = f'ssh() {{ command ssh -F {own}/config "$@"; }}'
    start = f"set -euo pipefail\ncd {cluster.head.private}\n{agent}\n{ssh}\n"
    env = {"PATH": os.environ["PATH"], "PYTHON": sys.executable, "LC_ALL": "C",
           "DATA": f"{cluster.head.private}/data", "SSH_ASKPASS": str(ask),
           "SSH_ASKPASS_REQUIRE": "force"}
    text = "\n".join(scripts).replace("~/.ssh", own)
    done = cluster.head.run(["bash", "-c", start + text], env=env, timeout=300,
                            stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def said(cluster, own):
    """What the page's tried blocks print, one after the other in one shell."""
    first, *rest = blocks("tried")
    on_head(cluster, own, [first])
    public = (cluster.head.disk / "ssh" / "id_cluster.pub").read_text()
    for host in cluster.hosts:  # what ssh-copy-id does; the box's own key goes
        host.run(["sh", "-c", "cat > /run/box/authorized_keys"], input=public)
    store = cluster.hosts[2]
    make = ("mkdir www && cd www && echo data > part-1.rec && "
            "sha256sum part-1.rec > SHA256SUMS")
    store.run(["sh", "-c", f"cd {store.private} && {make}"])
    server = store.popen([sys.executable, "-m", "http.server", "8000", "--directory",
                          f"{store.private}/www"], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    until = time.monotonic() + 20
    while store.run(["sh", "-c", "grep -q :1F40 /proc/net/tcp"]).returncode:
        assert time.monotonic() < until, "no server"
        time.sleep(0.1)
    yield on_head(cluster, own, rest)
    server.kill()
    server.wait()


@in_a_box
def test_the_key_has_a_passphrase_and_the_agent_holds_it(said, own, cluster):
    key = f"{own}/id_cluster"
    assert "launches jobs (ED25519)" in said
    bare = cluster.head.run(["ssh-keygen", "-y", "-P", "", "-f", key])
    assert bare.returncode != 0


@in_a_box
def test_the_host_keys_that_were_collected_are_those_of_the_hosts(said, own, cluster):
    known = (cluster.head.disk / "ssh" / "known_hosts").read_text().split()
    for host in cluster.hosts:
        public = (cluster.folder / host.name / "ssh_host_key.pub").read_text().split()
        assert public[1] in known


@in_a_box
def test_every_host_is_reached_knows_all_names_and_has_the_same_versions(said):
    lines = said.splitlines()
    assert [line for line in lines if line in ("h1", "h2", "h3")] == ["h1", "h2", "h3"]
    for i in (1, 2, 3):
        assert sum(x.split()[:1] == [f"10.77.0.1{i}"] for x in lines) == 3
    assert len(re.findall(r"(?m)^\d\d:\d\d:\d\d\n\S+ 1\.9\.1$", said)) == 3


@in_a_box
def test_rsync_is_there_and_data_arrive_whole(said, cluster):
    assert len(re.findall("(?m)^rsync +version", said)) == 3
    assert said.count("part-1.rec: OK") == 2
    for host in cluster.hosts[:2]:
        assert (host.disk / "data" / "part-1.rec").read_text() == "data\n"


@in_a_box
def test_behind_the_firewall_a_job_runs_and_other_ports_are_closed(said, own, cluster):
    """After the others: the rules stay."""
    if not shutil.which("nft"):
        pytest.skip("not here: nft")
    (rules,) = blocks("tried-on-each")
    everybody = [cluster.head, *cluster.hosts]
    for host in everybody:
        done = host.run(["bash", "-c", rules])
        if done.returncode and "not supported" in done.stderr:
            pytest.skip(f"nft: {done.stderr.strip()}")
        assert done.returncode == 0, done.stderr
    config = (cluster.head.disk / "ssh" / "config").read_text()
    assert "BatchMode" not in config  # the launcher adds that itself
    add = f"eval $(ssh-agent -s) > /dev/null; ssh-add -q {own}/id_cluster; "
    launch = (f"{sys.executable} -m pslaunch -n 2 -s 1 -H {cluster.hosts_file} "
              f"--ssh-config {own}/config --deadline 300 {sys.executable}")
    out = on_head(cluster, own, [f'{add} cd {ROOT}; {launch} -c "{JOB}"'])
    assert out.count("| 2\n") == 2, out
    try_it = "import socket; socket.create_connection(('h3', {}), 2).close()"
    ports = {port: cluster.head.run([sys.executable, "-c", try_it.format(port)])
             .returncode for port in (22, 8000)}
    assert ports[22] == 0 and ports[8000] != 0  # the web server's
