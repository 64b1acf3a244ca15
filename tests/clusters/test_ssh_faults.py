"""Jobs over ssh that are cut short, and hosts that cannot be used."""

import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest
from job_checks import nothing_left, wait_for  # noqa: F401
from over_ssh import launch, left, nodes, nothing_stays, start  # noqa: F401

from netbox import keys

#: Seconds from a fault until nothing of a job runs, on whatever host, as documented.
ENDS = 15
#: A job that leaves children in sessions of their own, which ignore SIGTERM.
STUBBORN = ["bash", "-c", "trap '' TERM; echo begun; setsid sleep 1000 & sleep 1000"]
ALL = [("scheduler", "head"), ("server", "h1"), ("worker", "h2"), ("worker", "h3")]


@pytest.fixture
def sleeping(cluster):
    """A launcher whose job sleeps on all hosts, with children that want to stay.

    And seconds in which it must end: those documented, and what its start took here.
    """
    clock = time.monotonic()
    with start(cluster, *STUBBORN) as process:
        wait_for(lambda: set(nodes(cluster)) == set(ALL) and len(nodes(cluster)) == 8)
        yield process, ENDS + time.monotonic() - clock
        process.kill()


@pytest.mark.parametrize("signum, code", [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_launcher_that_is_stopped_leaves_nothing_on_any_host(
    cluster, sleeping, signum, code
):
    (launcher, bound), clock = sleeping, time.monotonic()
    launcher.send_signal(signum)
    launcher.communicate(timeout=bound)
    assert launcher.returncode == code
    wait_for(lambda: not left(cluster), bound - (time.monotonic() - clock))


def test_a_lost_connection_ends_the_job_on_both_of_its_sides(cluster, sleeping):
    """Nobody is told: the cable is pulled. Each side has to notice by itself."""
    (launcher, bound), clock = sleeping, time.monotonic()
    cluster.hosts[1].cut()
    try:
        _, err = launcher.communicate(timeout=bound)
        assert launcher.returncode == 255
        assert "the job failed: worker 1 on h2 was lost: " in err
        assert err.endswith("the last lines of worker-1:\nbegun\n")
        wait_for(lambda: not left(cluster), bound - (time.monotonic() - clock))
    finally:
        cluster.hosts[1].mend()


def test_a_launchers_host_that_is_gone_leaves_nothing_on_the_others(cluster, sleeping):
    (_, bound), clock = sleeping, time.monotonic()
    cluster.head.power_off()
    try:
        wait_for(lambda: not left(cluster), bound - (time.monotonic() - clock))
    finally:
        cluster.head.power_on()
        for folder in Path(tempfile.gettempdir()).glob("d2l_ext-job-*"):
            shutil.rmtree(folder)  # nobody was left to do so


def test_a_process_that_fails_on_another_host_is_named_with_its_last_lines(cluster):
    script = "echo before; [ $DMLC_WORKER_ID = 1 ] || sleep 100; echo last; exit 3"
    done = launch(cluster, "bash", "-c", script)
    assert done.returncode == 3
    assert done.stderr.endswith(
        "launch: the job failed: worker 1 on h2 ended with code 3 before the job was "
        "ready\nlaunch: the last lines of worker-1:\nbefore\nlast\n")


def test_what_a_host_lacks_is_named(cluster):
    for flags, code, text in [
        (["no-such-command"], 127, "no-such-command: No such file or directory"),
        (["--sync-dst-dir", "/proc/x", "true"], 1, "cannot make /proc/x: No such file"),
        (["--python", "/no/python", "true"], 255, "/no/python: No such file"),
        (["--interface", "eth7", "true"], 1, "no address on interface 'eth7'; int"),
    ]:
        done = launch(cluster, *flags)
        assert (done.returncode, text in done.stderr) == (code, True), done.stderr


def test_a_folder_that_cannot_be_copied_is_named_with_the_reason(cluster, tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "here").write_text("a file")
    host = cluster.hosts[1]
    (host.disk / "there" / "here" / "a folder").mkdir(parents=True)
    done = launch(cluster, "--sync-dst-dir", f"{host.private}/there", "true",
                  cwd=tmp_path / "work")
    assert done.returncode == 1
    assert "h2: the folder could not be copied: " in done.stderr
    assert "could not make way for new regular file: here" in done.stderr
    for host in cluster.hosts:
        shutil.rmtree(host.disk / "there", ignore_errors=True)


# ---- Hosts that cannot be used ----


def refused(cluster, config=None, hosts=None):
    """What a launcher says that is refused by a host; nothing has run anywhere."""
    flags = ["--ssh-config", config] if config else []
    done = launch(cluster, *flags, "sh", "-c", "echo ran", hosts=hosts)
    assert done.returncode == 255 and "ran" not in done.stdout
    return " ".join(done.stderr.split())


def config_with(cluster, folder, old, new):
    """Another configuration of ssh, with `new` in place of `old`."""
    text = Path(cluster.ssh_config).read_text()
    assert old in text
    (folder / "config").write_text(text.replace(old, str(new)))
    return str(folder / "config")


def test_an_unknown_host_is_refused_with_the_way_to_accept_it(cluster, tmp_path):
    config = config_with(cluster, tmp_path, cluster.known_hosts, tmp_path / "known")
    said = refused(cluster, config)
    assert "cannot be used: its host key is not known here." in said
    way = f"ssh -F {config} -o BatchMode=no -o StrictHostKeyChecking=ask "
    assert f"accept it with `{way}" in said
    # That way, with the answer 'yes' that it asks for, works.
    for name in ("h1", "h2", "h3"):
        accept = [*way.replace("=ask", "=accept-new").split(), name, "true"]
        assert cluster.head.run(accept, timeout=20).returncode == 0
    assert launch(cluster, "--ssh-config", config, "true").returncode == 0


def test_a_changed_host_key_is_refused(cluster, tmp_path):
    lines = Path(cluster.known_hosts).read_text().splitlines()
    names, keys_ = zip(*(line.rsplit(" ", 1) for line in lines))
    swapped = [" ".join(pair) for pair in zip(names, keys_[1:] + keys_[:1])]
    (tmp_path / "known").write_text("\n".join(swapped) + "\n")
    config = config_with(cluster, tmp_path, cluster.known_hosts, tmp_path / "known")
    said = refused(cluster, config)
    assert "its host key differs from the known one" in said
    assert f"-f {tmp_path}/known`, and accept the new one with `ssh -F" in said


def test_a_wrong_key_is_refused_and_named(cluster, tmp_path):
    keys.make_key(str(tmp_path / "other"), "other")
    config = config_with(cluster, tmp_path, cluster.key, tmp_path / "other")
    said = refused(cluster, config)
    assert "it rejects this user." in said and "ssh-copy-id h" in said


@pytest.mark.parametrize("line, text", [
    ("10.77.0.99", "10.77.0.99 cannot be used: it does not answer: "),
    ("h2:23", "h2:23 cannot be used: no sshd listens on that port: "),
    ("nobody", "nobody cannot be used: nobody: "),
])
def test_a_host_that_does_not_answer_is_named(cluster, tmp_path, line, text):
    (tmp_path / "hosts").write_text(f"h1\n{line}\n")
    assert text in refused(cluster, hosts=tmp_path / "hosts")
