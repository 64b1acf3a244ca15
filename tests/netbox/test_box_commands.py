"""A cluster in a box without one: its files of ssh, and what its commands make of the
box that is up."""

import argparse
import json
import os
import signal
import subprocess
from types import SimpleNamespace

import pytest

from netbox import __main__ as command_line
from netbox import cluster, keys

# ---- Files of ssh ----


def host(name, place, second=False):
    return SimpleNamespace(name=name, address=f"10.77.0.{place}",
                           second_address=f"10.78.0.{place}" if second else None)


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A function that writes the files of a head and a host; returns their texts."""
    monkeypatch.setattr(keys, "make_key", lambda _, comment: f"key-of {comment} c\n")

    def write(port, strict, second=False):
        hosts = [host("head", 1, second), host("h1", 11, second)]
        for one in hosts:
            (tmp_path / one.name).mkdir()
        keys.write(tmp_path, hosts, "ann", port, strict)
        return {path.relative_to(tmp_path).as_posix(): path.read_text()
                for path in tmp_path.rglob("*") if path.is_file()}

    return write


def test_each_host_has_its_files_and_all_share_the_others(written):
    files = written(22, strict=True)
    assert sorted(files) == ["etc_hosts", "h1/authorized_keys", "h1/sshd_config",
                             "head/authorized_keys", "head/sshd_config", "known_hosts",
                             "ssh_config"]
    assert files["h1/authorized_keys"] == "key-of ann@box c\n"
    assert files["etc_hosts"] == ("127.0.0.1 localhost\n10.77.0.1 head\n"
                                  "10.77.0.11 h1\n")


@pytest.mark.parametrize("port, strict, second, known, listens", [
    (22, True, False, "h1,10.77.0.11", ["10.77.0.11"]),
    (22, True, True, "h1,10.77.0.11,10.78.0.11", ["10.77.0.11", "10.78.0.11"]),
    (2222, False, False, "[h1]:2222,[10.77.0.11]:2222", ["10.77.0.11"]),
])
def test_a_host_is_known_and_listens_by_all_its_addresses_at_the_boxs_port(
    written, port, strict, second, known, listens
):
    """ssh looks a host up by its bare name at port 22 only: [name]:port elsewhere."""
    files = written(port, strict, second)
    assert files["known_hosts"].splitlines()[1] == f"{known} key-of h1"
    sshd = files["h1/sshd_config"].splitlines()
    begins = [f"Port {port}", *(f"ListenAddress {address}" for address in listens)]
    assert sshd[: len(begins)] == begins
    assert {f"HostKey {keys.OWN}/ssh_host_key", "AllowUsers ann",
            f"StrictModes {'yes' if strict else 'no'}"} <= set(sshd)
    assert f"    User ann\n    Port {port}\n" in files["ssh_config"]


def test_ssh_finds_its_files_in_a_folder_with_a_space(tmp_path, monkeypatch):
    monkeypatch.setattr(keys, "make_key", lambda _, comment: f"key-of {comment} c\n")
    folder = tmp_path / "my box"
    folder.mkdir()
    keys.write(folder, [], "ann", 22, strict=True)
    words = ["ssh", "-G", "-F", folder / "ssh_config", "h1"]
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert f"identityfile {folder}/id_ed25519\n" in told
    assert f"userknownhostsfile {folder}/known_hosts\n" in told.replace('"', "")


def test_a_box_that_ends_while_the_folders_are_listed_is_none(tmp_path, monkeypatch):
    (tmp_path / f"{cluster.PREFIX}gone").symlink_to(tmp_path / "nowhere")
    monkeypatch.setattr(cluster.tempfile, "tempdir", str(tmp_path))
    assert cluster.boxes() == []
    monkeypatch.setattr(command_line, "boxes", lambda: [tmp_path / "gone"])
    monkeypatch.setattr(command_line.Path, "exists", lambda _: True)
    assert command_line._states() == []


# ---- Commands ----

STATE = {"holder": 4000, "user": [1000, 1001], "switch": 4001, "hosts_file": "/b/hosts",
         "hosts": {"head": [4010, "10.77.0.1", None],
                   "h1": [4011, "10.77.0.11", "10.78.0.11"],
                   "h2": [4012, "10.77.0.12", "10.78.0.12"]}}


@pytest.fixture
def box(tmp_path, monkeypatch):
    """A file that says a box is up; nothing of it is."""
    (tmp_path / command_line.STATE).write_text(json.dumps(STATE))
    monkeypatch.setattr(command_line, "boxes", lambda: [tmp_path / "new", tmp_path])
    monkeypatch.setattr(command_line, "why_not", lambda: None)


@pytest.fixture
def executed(monkeypatch):
    """The words that took this process's place."""
    found = []

    def execv(path, words):
        assert path == words[0]
        found.extend(words)

    monkeypatch.setattr(os, "execv", execv)
    return found


def test_the_flags_of_a_box_and_of_a_shape():
    read = command_line.parser().parse_args
    flags = {"do": "up", "hosts": 3, "second_interface": False}
    assert vars(read(["up"])) == flags
    assert vars(read(["hold", "--hosts", "5", "--second-interface"])) == {
        "do": "hold", "hosts": 5, "second_interface": True}
    undone = {"do": "shape", "host": "h2", "rate": None, "delay": None, "loss": 0.0,
              "interface": "eth0"}
    assert vars(read(["shape", "h2"])) == undone
    words = "shape h2 --rate 1mbit --delay 20ms --loss 0.05 --interface eth1"
    shaped = {"rate": "1mbit", "delay": "20ms", "loss": 0.05, "interface": "eth1"}
    assert vars(read(words.split())) == {**undone, **shaped}
    assert vars(read(["shell"])) == {"do": "shell", "host": "head"}
    run = argparse.Namespace(do="run", host="h1", command=["ls", "--rate", "1"])
    assert read(["run", "h1", "ls", "--rate", "1"]) == run


def test_show_names_hosts_their_addresses_and_the_hosts_file(box, capsys):
    assert command_line.main(["show"]) == 0
    assert capsys.readouterr().out == ("head  10.77.0.1\nh1    10.77.0.11 10.78.0.11\n"
                                       "h2    10.77.0.12 10.78.0.12\n"
                                       "hosts file: /b/hosts\n")


@pytest.mark.parametrize("words", [["echo", "-n", "a b"], ["--", "echo", "-n", "a b"]])
def test_a_command_runs_in_the_host_that_is_named_as_the_boxs_user(
    box, executed, words
):
    assert command_line.main(["run", "h2", *words]) == 0
    assert executed[-5:] == ["4012", "1000:1001", "echo", "-n", "a b"]


def test_a_box_of_roots_runs_commands_as_the_caller(box, tmp_path, executed):
    state = json.dumps({**STATE, "user": None})
    (tmp_path / command_line.STATE).write_text(state)
    assert command_line.main(["run", "h1", "id"]) == 0
    assert executed[-3:] == ["4011", "-", "id"]


def test_a_shell_is_the_users_own_on_the_head(box, executed, monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/fish")
    assert command_line.main(["shell"]) == 0
    assert executed[-3:] == ["4010", "1000:1001", "/bin/fish"]


def test_a_shape_is_for_one_host_and_the_others_drop_what_it_sends(box, monkeypatch):
    asked = []
    monkeypatch.setattr(command_line.links, "shape", lambda *words: asked.append(words))
    words = "shape h1 --rate 1mbit --delay 20ms --loss 0.05 --interface eth1"
    assert command_line.main(words.split()) == 0
    ((switch, machine, others, *values),) = asked
    assert [(m.name, m.pid, m.user) for m in (switch, machine, *others)] == [
        ("switch", 4001, True), ("h1", 4011, True), ("head", 4010, True),
        ("h2", 4012, True)]
    assert values == [1, "1mbit", "20ms", 0.05]


def test_down_ends_the_holder_and_waits_until_its_file_is_gone(
    box, tmp_path, monkeypatch
):
    ended, slept = [], []
    monkeypatch.setattr(os, "kill", lambda *words: ended.append(words))

    def sleep(_):
        slept.append(1)
        if len(slept) == 3:
            (tmp_path / command_line.STATE).unlink()

    monkeypatch.setattr(command_line.time, "sleep", sleep)
    assert command_line.main(["down"]) == 0
    assert (ended, len(slept)) == ([(4000, signal.SIGTERM)], 3)


def test_down_does_not_wait_for_another_box(box, tmp_path, monkeypatch):
    """`hold` starts one beside one that is up."""
    other = tmp_path / "new" / command_line.STATE
    other.parent.mkdir()
    other.write_text(json.dumps({**STATE, "holder": 4001}))
    monkeypatch.setattr(os, "kill", lambda *_: other.unlink())
    monkeypatch.setattr(command_line.time, "sleep", pytest.fail)
    assert command_line.main(["down"]) == 0


def refused(capsys, *words):
    assert command_line.main(words) == 1
    return capsys.readouterr().err


def test_what_cannot_be_done_is_refused_in_one_line(box, tmp_path, monkeypatch, capsys):
    assert refused(capsys, "run", "h3", "ls") == (
        "box: no host 'h3': choose head, h1, h2\n")
    assert refused(capsys, "run", "h1") == (
        "box: no command: give it after the host\n")
    assert refused(capsys, "up") == (
        "box: a box is running already: `show` lists it, `down` ends it\n")
    (tmp_path / command_line.STATE).unlink()
    nothing = "box: no box is running: start one with `python -m netbox up`\n"
    for words in (["show"], ["run", "h1", "ls"], ["shell"], ["shape", "h1"], ["down"]):
        assert refused(capsys, *words) == nothing
    monkeypatch.setattr(command_line, "why_not", lambda: "this is no Linux")
    assert refused(capsys, "up") == "box: this is no Linux\n"


class PlayedHolder:
    """Of `hold`: says that it is ready, or ends with code 1."""

    def __init__(self, line, words, **options):
        self.words, self.options = words, options
        self.stdout = SimpleNamespace(readline=lambda: line)
        self.wait = lambda: 1


@pytest.mark.parametrize("line, code, shown", [("ready\n", 0, True), ("", 1, False)])
def test_up_leaves_a_holder_behind_and_shows_the_box_once_it_is_ready(
    box, tmp_path, monkeypatch, capsys, line, code, shown
):
    started = []

    def popen(words, **options):
        started.append(PlayedHolder(line, words, **options))
        return started[0]

    states = iter([[], [STATE]])
    monkeypatch.setattr(command_line, "_states", lambda: next(states))
    monkeypatch.setattr(command_line.subprocess, "Popen", popen)
    assert command_line.main(["up", "--hosts", "2", "--second-interface"]) == code
    assert started[0].words[1:] == ["-m", "netbox", "hold", "--hosts", "2",
                                    "--second-interface"]
    assert started[0].options["start_new_session"]
    assert ("hosts file: /b/hosts" in capsys.readouterr().out) is shown
