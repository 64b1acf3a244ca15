"""The doctor says what a machine has, whether the book runs there, and why not on more.

What NVML answers on machines with GPUs is played by `nvml_answers`.
"""

import importlib.util
import json
import re
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nvml_answers as played
import pytest
from nvml_answers import A10, A100, A100_MIG, B200, H200, K80, V100, Error, Machine

from bookkit.doctor import BAD, NOTE, OK, __main__, cluster, driver, hardware, software
from bookkit.doctor import list as gpu_list
from bookkit.doctor.report import examine
from d2l_ext.devices import gpus

ROOT = Path(__file__).resolve().parents[2]
CPU = {"version": "1.9.1", "features": ["MKLDNN", "DIST_KVSTORE"], "gpus": 0}
FEATURES = ["CUDA", "CUDNN", "NCCL", "MKLDNN", "DIST_KVSTORE"]


def ask(machine):
    library = played.Library(machine)
    return driver.read(lambda name: library)


def report(machine, probed=CPU):
    return examine(lambda: ask(machine), lambda: probed)


def of_gpu_build(seen):
    return {"version": "1.9.1", "features": FEATURES, "gpus": seen}


def texts(findings):
    return [f"{finding.topic}: {finding.text}" for finding in findings]


# What the driver says


def test_name_memory_capability_and_versions_are_what_nvml_says():
    cards = [*played.USABLE.values(), *played.UNUSABLE.values()]
    answers = ask(Machine(cards, driver="535.129.03", cuda=12020))
    assert (answers.driver, answers.more.cuda) == ("535.129.03", (12, 2))
    found = [(gpu.name, gpu.capability) for gpu in answers.gpus]
    assert found == [(c.name, c.capability) for c in cards]
    assert answers.more.memory == tuple(c.mib * 2**20 for c in cards)


def test_nvml_is_shut_down_again():
    library = played.Library(Machine([A10]))
    gpus.read(lambda name: library)
    assert library.shut_down


@pytest.mark.parametrize(("machine", "said"), [
    (Machine([A10], init=18), "does not answer: .*, as after an update: reboot"),
    (Machine([A10], init=999), "does not answer: nvmlInit_v2 answered with error 999"),
    (Machine([played.Card("", 0, (8, 0), handle=Error(15))]), "fallen off the bus"),
])
def test_a_driver_or_a_gpu_that_does_not_answer_says_why(machine, said):
    answers = ask(machine)
    assert answers.gpus == () and re.search(said, answers.problem)


def test_an_old_driver_that_knows_no_capability_is_named_too_old():
    lacks = ("nvmlDeviceGetCudaComputeCapability",)
    answers = ask(Machine([K80], driver="390.157", cuda=9010, lacks=lacks))
    assert "too old to be queried" in answers.problem
    assert "390.157: too old for CUDA 11" in texts(hardware.cards(answers))[0]


@pytest.mark.parametrize(("machine", "code", "lines"), [
    (Machine([V100, A10], driver="470.256.02"), 0, 2),
    (Machine([V100], driver="440.33.01"), 1, 0),
    (Machine([]), 1, 0),
    (Machine([A10], init=9), 1, 0),
])
def test_gpus_are_listed_for_the_set_up_where_the_driver_will_do(
    machine, code, lines, capsys
):
    assert gpu_list.main(lambda: ask(machine)) == code
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == lines
    assert not lines or printed[0] == "Tesla V100-SXM2-16GB, 7.0"


# Which GPUs MXNet can use


@pytest.mark.parametrize("card", played.USABLE.values(), ids=lambda card: card.name)
def test_capabilities_5_to_8_are_usable_and_say_with_which_code(card):
    answers = ask(Machine([card]))
    assert [gpu.name for gpu in gpus.usable(answers)] == [card.name]
    assert gpus.unusable(answers) == []
    assert "usable, with the machine code for" in texts(hardware.cards(answers))[1]


@pytest.mark.parametrize("card", played.UNUSABLE.values(), ids=lambda card: card.name)
def test_other_capabilities_are_not_usable_and_say_why(card):
    answers = ask(Machine([card]))
    assert gpus.usable(answers) == []
    capability = ".".join(map(str, card.capability))
    (line,) = gpus.unusable(answers)
    assert line.startswith(f"{card.name}: its compute capability is {capability}")
    assert "only for 5.0 to 8.x" in texts(hardware.cards(answers))[1]


@pytest.mark.parametrize(("driver", "usable", "said"), [
    ("440.33.01", False, "too old for CUDA 11, which needs 450.80.02"),
    ("450.51.06", False, "too old for CUDA 11"),
    ("450.80.02", True, "before 520.61.05: fused operators are switched off"),
    ("470.256.02", True, "fused operators are switched off"),
    ("520.61.05", True, "up to CUDA"),
    ("580.95.05", True, "up to CUDA"),
])
def test_the_driver_must_be_new_enough_for_cuda_11(driver, usable, said):
    answers = ask(Machine([V100], driver=driver))
    found = hardware.cards(answers)[0]
    assert bool(gpus.usable(answers)) == usable
    assert said in found.text and (found.state == OK) == said.startswith("up to")
    assert bool(gpus.unusable(answers)) != usable


def test_a_gpu_divided_by_mig_is_a_note():
    whole, divided = (hardware.cards(ask(Machine([c])))[1] for c in (A100, A100_MIG))
    assert whole.state == OK
    assert divided.state == NOTE and "divided by MIG" in divided.text


def test_a_driver_without_gpus_says_so():
    assert "GPUs: the driver lists none" in texts(hardware.cards(ask(Machine())))


def test_a_card_without_a_driver_is_seen_on_the_bus(tmp_path):
    devices = {"gpu": ("0x10de", "0x030200"), "sound": ("0x10de", "0x040300")}
    devices["other"] = ("0x8086", "0x030000")
    for name, (vendor, kind) in devices.items():
        folder = tmp_path / "bus/pci/devices" / name
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "class").write_text(f"{kind}\n")
    assert hardware.plugged_in(tmp_path) == 1
    (found,) = hardware.cards(gpus.read(played.no_library), plugged_in=1)
    assert found.text == "there is no NVIDIA driver; 1 NVIDIA card plugged in"
    assert found.state == NOTE and "--gpus all" in found.advice
    (there,) = hardware.cards(ask(Machine(init=9)), plugged_in=1)
    assert there.advice == "reboot, or look at the output of dmesg"


@pytest.mark.parametrize(("settings", "said"), [
    ({}, "through one host bridge, peer-to-peer"),
    ({"peers": 5}, "no peer-to-peer: copies go through the host"),
    ({"nvlink": 0}, "by NVLink, peer-to-peer"),
    ({"path": Error(3)}, "by an unknown path"),
    ({"path": 50, "peers": Error(3)}, "across NUMA nodes, no peer-to-peer"),
])
def test_how_two_gpus_are_connected_is_said(settings, said):
    found = texts(hardware.cards(ask(Machine([A10, A10], **settings))))
    assert found[-1].startswith("GPUs 0–1: ") and said in found[-1]


def test_pairs_that_are_connected_alike_share_a_line():
    found = texts(hardware.cards(ask(Machine([A10] * 3))))
    assert next(line for line in found if "–" in line).startswith("GPUs 0–1, 0–2, 1–2:")


@pytest.mark.parametrize(("visible", "is_said"), [("1", True), (A10.uuid, False)])
def test_what_the_library_hides_by_itself_is_no_choice_of_the_readers(
    monkeypatch, visible, is_said
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = report(Machine([A10, B200]), of_gpu_build(1)).sections["GPUs"]
    words = f"CUDA_VISIBLE_DEVICES={visible} hides"
    assert any(words in finding.text for finding in found) == is_said


# The verdict

#: A machine, what MXNet's library says of itself, words of the verdict, what is next.
RUNS = [
    (Machine(), CPU, "there is no GPU that it could use", "make book"),
    (Machine([A10]), of_gpu_build(1), "runs on one GPU, and on CPU", "make book"),
    (Machine([A10] * 2), of_gpu_build(2), "The book runs on 2 GPUs.", "make book"),
    (Machine([A10]), CPU, "a usable NVIDIA A10", "make book DEVICE=gpu"),
    (Machine([H200]), CPU, "CPU contexts, not on NVIDIA H200: its", "make book"),
    (Machine([H200]), of_gpu_build(0), "not on NVIDIA H200: its", "make book"),
    (Machine([A100_MIG]), of_gpu_build(0), "sees none of the GPUs", "make book"),
    (Machine([B200, A10]), of_gpu_build(1), "runs on one GPU", "make book"),
    (Machine([V100], driver="440.33.01"), CPU, "440.33.01 is too old", "make book"),
    (Machine([A10], init=9), CPU, "no GPU that it could use", "make book"),
]
NOT_YET = [
    (Machine(), {"missing": True}, "make will install it, for the CPU.", "make book"),
    (Machine([H200, A10]), {"missing": True}, "for GPUs, because of NVIDIA A10.",
     "make book"),
    (Machine(), {"error": "libcuda.so.1: x"}, "NVIDIA's driver",
     "make book DEVICE=cpu"),
    (Machine(), {"error": "libgomp.so.1: x"}, "libgomp",
     "sudo apt-get install libgomp1"),
    (Machine(), {"error": "libcudnn.so.8: x"},
     "libcudnn.so.8 is missing, from nvidia-cudnn-cu11",
     "make distclean book DEVICE=gpu"),
    (Machine(), {"error": "libodd.so: x"}, "libodd.so: x", "make distclean book"),
]


@pytest.mark.parametrize(("machine", "probed", "verdict", "command"), RUNS + NOT_YET)
def test_the_verdict_names_the_devices_or_what_is_missing_and_the_next_command(
    machine, probed, verdict, command
):
    found = report(machine, probed).verdict
    runs = "features" in probed
    assert (found.runs, found.next) == (runs, command) and verdict in found.text
    begin = "The book runs on " if runs else "The book cannot run yet: "
    assert found.text.startswith(begin)


def test_every_wheel_of_cuda_that_is_required_brings_a_library():
    required = (ROOT / "requirements/gpu.txt").read_text()
    assert all(f"\n{wheel}==" in required for wheel in software.WHEELS.values())
    assert required.count("-cu11==") == len(software.WHEELS)


def test_missing_cuda_libraries_are_found_by_looking(tmp_path):
    for file in list(software.WHEELS)[1:]:
        (tmp_path / "nvidia" / file / "lib").mkdir(parents=True)
        (tmp_path / "nvidia" / file / "lib" / file).touch()
    (found,) = software.cuda_libraries(tmp_path)
    assert "1 of 9" in found.text and "nvidia-cublas-cu11" in found.text


# Python and its packages


def versions(**others):
    there = dict.fromkeys(software.NEEDED, "1") | {"numpy": "1.23.5"} | others
    return lambda name: there.get(name.replace("-", "_"), there.get(name))


@pytest.mark.parametrize(("version_of", "running", "faults"), [
    (versions(), (3, 11, 7), []),
    (versions(), (3, 12, 1), [("Python", BAD)]),
    (versions(numpy="1.26.4"), (3, 11, 7), [("NumPy", BAD)]),
    (versions(numpy=None), (3, 11, 7), [("NumPy", BAD)]),
    (versions(d2l=None), (3, 11, 7), [("packages", BAD)]),
    (versions(nbval=None), (3, 11, 7), [("packages", NOTE)]),  # for tests alone
])
def test_a_python_or_a_package_that_does_not_fit_is_named(version_of, running, faults):
    found = software.python(version_of, running)
    assert [(f.topic, f.state) for f in found if f.state != OK] == faults


# The rest of the machine


@pytest.mark.parametrize(("environ", "cores", "notes"), [
    ({}, 2, []),
    ({"OMP_NUM_THREADS": "8"}, 2, ["OMP_NUM_THREADS"]),
    ({}, 1, ["cores"]),
])
def test_settings_that_cost_the_speed_up_are_notes(environ, cores, notes):
    found = hardware.machine(environ, cores, shared="/nowhere")
    assert [f.topic for f in found if f.state == NOTE] == notes


@pytest.mark.parametrize("megabytes, said", [
    (64, ["shared memory: 64 MB: too little for a DataLoader with workers"]),
    (255, ["shared memory: 255 MB: too little for a DataLoader with workers"]),
    (256, []),
])
def test_little_shared_memory_is_a_note_in_megabytes(monkeypatch, megabytes, said):
    size = SimpleNamespace(f_frsize=2**12, f_blocks=megabytes * 2**8)
    monkeypatch.setattr(hardware.os, "statvfs", lambda path: size)
    found = hardware.machine({}, 2)
    assert texts(f for f in found if f.state == NOTE) == said


def test_tools_are_looked_for_by_the_command_that_submits():
    there = {"ssh": "/x", "srun": "/x", "qsub": "/x"}
    found = cluster.tools(lambda name, path=None: there.get(name), lambda: "no root")
    assert texts(found) == [
        "ssh: client",
        "MPI: none here: stored results are shown",
        "schedulers: Slurm, Grid Engine",
        "cluster in a box: stored results are shown: no root",
    ]


def test_a_server_of_ssh_without_a_client_is_a_note_with_what_to_install():
    there = {"sshd": "/x"}
    ssh = cluster.tools(lambda name, path=None: there.get(name), lambda: None)[0]
    assert (ssh.state, ssh.advice) == (NOTE, "sudo apt-get install openssh-client")
    there["ssh"] = "/x"
    ssh = cluster.tools(lambda name, path=None: there.get(name), lambda: None)[0]
    assert (ssh.state, ssh.text) == (OK, "client and server")


def test_another_mpi_than_the_launchers_is_a_note(tmp_path):
    (tmp_path / "mpirun").write_text("#!/bin/sh\necho HYDRA build details:\n")
    (tmp_path / "mpirun").chmod(0o755)
    there = {"mpirun": str(tmp_path / "mpirun")}
    found = cluster.tools(lambda name, path=None: there.get(name), lambda: None)[1]
    assert found.state == NOTE and "the launcher mpi refuses" in found.text


def test_a_host_name_without_an_address_is_a_note_and_a_missing_loopback_is_bad():
    def fails(name=None):
        raise OSError("no such name, or not permitted")

    assert [f.state for f in cluster.ports(resolve=fails)] == [OK, NOTE]
    assert cluster.ports(listener=fails)[0].state == BAD


# The command


def run(*arguments, options=()):
    return subprocess.run(
        [sys.executable, *options, "-m", "bookkit.doctor", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=180, check=False,
    )


def test_here_the_book_can_run_and_that_takes_less_than_two_seconds_of_work():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = run("--json")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stderr == ""
    found = json.loads(ran.stdout)  # nothing else is printed
    assert found["runs"] is True and found["next"].startswith("make book")
    work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert work < 2  # of the processor: waiting for others does not count


def test_json_holds_what_is_printed(monkeypatch, capsys):
    here = report(Machine([A10]), of_gpu_build(1))
    monkeypatch.setattr(__main__, "examine", lambda: here)
    assert __main__.main(["--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["runs"], found["next"]) == (True, "make book")
    topics = [finding["topic"] for finding in found["findings"]]
    assert topics[:3] == ["Python", "NumPy", "packages"] and "MXNet" in topics
    assert found["nvml"]["gpus"][0]["name"] == A10.name
    assert set(found["nvml"]) == {"driver", "gpus", "problem", "more"}


def test_before_anything_is_installed_the_doctor_says_what_to_do():
    ran = run(options=["-S"])  # without site-packages
    assert ran.returncode == 1
    assert " ✗ NumPy                  not installed\n" in ran.stdout
    assert ran.stdout.endswith("Next: make book\n")


def test_the_library_tells_its_features_where_the_package_cannot_be_imported(
    tmp_path, monkeypatch
):
    real = importlib.util.find_spec("mxnet").submodule_search_locations[0]
    (tmp_path / "mxnet").mkdir()
    (tmp_path / "mxnet" / "__init__.py").write_text("raise ImportError('broken')")
    for library in Path(real).glob("*.so*"):  # they look for each other beside them
        (tmp_path / "mxnet" / library.name).symlink_to(library)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = software.probe()
    assert found["version"] == "1.9.1" and "DIST_KVSTORE" in found["features"]


def test_a_library_that_ends_its_process_is_no_crash_of_the_doctor(monkeypatch):
    monkeypatch.setattr(software.sys, "executable", "/bin/false")
    assert "ended with code 1" in software.probe()["error"]


def test_a_library_that_never_loads_is_given_up(monkeypatch, tmp_path):
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(software.sys, "executable", str(slow))
    monkeypatch.setattr(software, "PATIENCE", 0.2)
    (found,) = software.mxnet(software.probe())
    assert found.state == BAD
    assert found.text == "did not load within 0.2 s"
    assert found.advice == "nvidia-smi"


def test_advice_stands_below_what_it_is_about(capsys):
    printed = list(__main__.lines(report(Machine([A10]), {"missing": True})))
    i = next(i for i, line in enumerate(printed) if "not installed" in line)
    assert printed[i].startswith(" ✗ MXNet")
    assert printed[i + 1].strip() == "→ make book"


# The page


def page_rows(heading):
    """The cells of the table below a heading of the page that explains all this."""
    text = (ROOT / "reference/gpu_box.md").read_text(encoding="utf-8")
    part = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_pages_table_of_cards_is_the_rule_that_the_doctor_has():
    rows = page_rows("Which GPUs work")[1:]
    assert len(rows) >= 13
    for capability, _, runs, _ in rows:
        code = gpus.code_for(gpus.version(capability))
        expected = f"code for {gpus.dotted(code)}" if code else "no"
        assert (capability, runs) == (capability, expected)


def test_the_page_explains_every_line_that_can_be_printed():
    explained = {
        topic.replace("…", "").strip()
        for row in page_rows("The doctor")
        for topic in row[0].split(",")
    }
    machines = [Machine(), Machine([A10, H200]), Machine([A10], init=9)]
    for here in machines:
        for probed in (CPU, of_gpu_build(2), {"missing": True}):
            sections = report(here, probed).sections.values()
            topics = {f.topic for findings in sections for f in findings}
            assert topics <= explained


def test_the_page_holds_every_verdict():
    rows = page_rows("The doctor")
    cores = r" \(\w+ cores?\)"
    patterns = [re.escape(re.sub(cores, "", row[0])).replace("…", ".*") for row in rows]
    for here, probed, *_ in [*RUNS, *NOT_YET[:2]]:
        said = re.sub(cores, "", report(here, probed).verdict.text)
        assert any(re.fullmatch(f"{pattern}.?", said) for pattern in patterns), said
