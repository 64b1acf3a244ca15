"""A cluster in a box without one: its files of ssh, and what its commands make of the
box that is up."""

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


@pytest.fixture(autouse=True)
def make_no_keys(monkeypatch):
    monkeypatch.setattr(keys, "make_key", lambda _, comment: f"key-of {comment} c\n")


@pytest.mark.parametrize("port, strict, second, known, listens", [
    (22, True, False, "h1,10.77.0.11", ["10.77.0.11"]),
    (22, True, True, "h1,10.77.0.11,10.78.0.11", ["10.77.0.11", "10.78.0.11"]),
    (2222, False, False, "[h1]:2222,[10.77.0.11]:2222", ["10.77.0.11"]),
])
def test_a_host_is_known_and_listens_by_all_its_addresses_at_the_boxs_port(
    tmp_path, port, strict, second, known, listens
):
    """ssh looks a host up by its bare name at port 22 only: [name]:port elsewhere."""
    (tmp_path / "h1").mkdir()
    keys.write(tmp_path, [host("h1", 11, second)], "ann", port, strict)
    assert (tmp_path / "known_hosts").read_text() == f"{known} key-of h1\n"
    hosts = "127.0.0.1 localhost\n10.77.0.11 h1\n"
    assert (tmp_path / "etc_hosts").read_text() == hosts
    sshd = (tmp_path / "h1/sshd_config").read_text().splitlines()
    begins = [f"Port {port}", *(f"ListenAddress {address}" for address in listens)]
    assert sshd[: len(begins)] == begins
    assert {f"HostKey {keys.OWN}/ssh_host_key", "AllowUsers ann",
            f"StrictModes {'yes' if strict else 'no'}"} <= set(sshd)
    assert f"    User ann\n    Port {port}\n" in (tmp_path / "ssh_config").read_text()


def test_ssh_finds_its_files_in_a_folder_with_a_space(tmp_path):
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
    command_line.main(["shape", "h1"])
    assert list(asked[1][3:]) == [0, None, None, 0.0]


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


@pytest.mark.parametrize("words, given", [
    ([], (3, False)), (["--hosts", "5", "--second-interface"], (5, True))])
def test_a_box_is_held_with_the_hosts_that_were_wanted(
    monkeypatch, capsys, words, given
):
    def make(*hosts):
        asked.append(hosts)
        raise OSError("no box here")

    asked = []
    monkeypatch.setattr(command_line.signal, "signal", lambda *_: None)
    monkeypatch.setattr(command_line, "Cluster", make)
    assert refused(capsys, "hold", *words) == "box: no box here\n"
    assert asked == [given]


class PlayedHolder:
    """Of `hold`: says that it is ready, or ends with code 1."""

    def __init__(self, line, words, **options):
        self.words, self.options = words, options
        self.stdout = SimpleNamespace(readline=lambda: line)
        self.wait = lambda: 1


SHOWN = ("head  10.77.0.1\nh1    10.77.0.11 10.78.0.11\nh2    10.77.0.12 10.78.0.12\n"
         "hosts file: /b/hosts\n")


@pytest.mark.parametrize("words, holds, line, code, shown", [
    (["up", "--hosts", "2", "--second-interface"],
     ["--hosts", "2", "--second-interface"], "ready\n", 0, SHOWN),
    (["up"], ["--hosts", "3"], "", 1, ""),
])
def test_up_leaves_a_holder_behind_and_shows_the_box_once_it_is_ready(
    box, monkeypatch, capsys, words, holds, line, code, shown
):
    started = []

    def popen(words, **options):
        started.append(PlayedHolder(line, words, **options))
        return started[0]

    states = iter([[], [STATE]])
    monkeypatch.setattr(command_line, "_states", lambda: next(states))
    monkeypatch.setattr(command_line.subprocess, "Popen", popen)
    assert command_line.main(words) == code
    assert started[0].words[1:] == ["-m", "netbox", "hold", *holds]
    assert started[0].options["start_new_session"]
    assert capsys.readouterr().out == shown
