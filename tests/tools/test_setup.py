"""make book finds a Python and an MXNet that fit the machine, or says what to do.

The machine is that of `played_machine`.
"""

import os
import shutil
import subprocess
import sys

import pytest
from nvml_answers import UNUSABLE, USABLE
from played_machine import TOOLS, Machine

from d2l_ext.devices import gpus


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path / "bin")


# Python

#: What is on the PATH (name: version, and more of `add_python`), what the reader sets,
#: and which is taken.
TAKEN = {
    "the newest that is supported": (
        {f"python3.{n}": [f"3.{n}"] for n in (9, 10, 11, 12)}, {}, "python3.11"),
    "3.9 alone": ({"python3.9": ["3.9"]}, {}, "python3.9"),
    "a python3 without a number": ({"python3": ["3.10"]}, {}, "python3"),
    "an older one, when the newer lacks venv": (
        {"python3.11": ["3.11", "no-venv"], "python3.10": ["3.10"]}, {}, "python3.10"),
    "one without venv, for uv": (
        {"python3.11": ["3.11", "no-venv"]}, {"NEED_VENV": "no"}, "python3.11"),
    "the one that the reader names": (
        {"python3.11": ["3.11"], "mine": ["3.9"]}, {"PYTHON": "mine"}, "mine"),
}
#: The same, and what is said.
REFUSED = {
    "3.12 alone": (
        {"python3.12": ["3.12"], "python3": ["3.12"]}, {},
        ["python3: is Python 3.12", "NumPy 1.23.5, which has no wheel",
         "sudo apt-get install python3.11-venv"]),
    "none at all": ({}, {}, ["There is none at all"]),
    "one without venv": (
        {"python3.11": ["3.11", "no-venv"]}, {},
        ["lacks the module venv", "sudo apt-get install python3.11-venv"]),
    "one for a processor without MXNet": (
        {"python3.11": ["3.11", "venv", "Darwin-arm64"]}, {},
        ["built for Darwin-arm64; MXNet 1.9.1 has wheels for"]),
    "a wrong one that the reader names": (
        {"python3.11": ["3.11"], "python3.12": ["3.12"]}, {"PYTHON": "python3.12"},
        ["PYTHON=python3.12 cannot run this book", "is Python 3.12"]),
    "none of the name that the reader gives": (
        {"python3.11": ["3.11"]}, {"PYTHON": "nowhere"},
        ["PYTHON=nowhere cannot run this book", "no such program"]),
}


@pytest.mark.parametrize("pythons, settings, taken", TAKEN.values(), ids=TAKEN)
def test_a_python_is_taken(machine, pythons, settings, taken):
    for name, how in pythons.items():
        machine.add_python(name, *how)
    found = machine.find_python(**settings)
    assert (found.returncode, found.stdout) == (0, f"/real/{taken}\n")


@pytest.mark.parametrize("pythons, settings, said", REFUSED.values(), ids=REFUSED)
def test_where_no_python_will_do_the_message_says_why_and_what_to_do(
    machine, pythons, settings, said
):
    for name, how in pythons.items():
        machine.add_python(name, *how)
    found = machine.find_python(**settings)
    assert (found.returncode, found.stdout) == (1, "")
    assert [words for words in said if words not in found.stderr] == []


@pytest.mark.parametrize(
    "script", ["echo 'pyenv: command not found' >&2; exit 127", "exit 0"]
)
def test_a_shim_that_does_not_run_is_passed_over_and_named_where_there_is_nothing_else(
    machine, script
):
    machine.add("python3.11", script)
    found = machine.find_python()
    assert found.returncode == 1
    assert "python3.11: is on the PATH, but does not run" in found.stderr
    machine.add_python("python3.10", "3.10")
    assert machine.find_python().stdout == "/real/python3.10\n"


def test_the_probe_understands_a_real_python(machine):
    found = machine.find_python(PYTHON=sys.executable)
    assert found.stdout == f"{sys.executable}\n"


# CPU or GPU


@pytest.mark.parametrize(("gpus", "chosen", "reason"), [
    (["NVIDIA A10, 8.6"], "gpu", "NVIDIA A10, 8.6"),
    (["NVIDIA A10, 8.6", "NVIDIA L4, 8.9"], "gpu", "8.6; NVIDIA L4, 8.9"),
    (["NVIDIA H200, 9.0"], "cpu", "is within 5.0 to 8.9: NVIDIA H200, 9.0"),
    (["NVIDIA B200, 10.0", "NVIDIA A10, 8.6"], "gpu", "GPU: NVIDIA A10, 8.6."),
    (["Some GPU, [N/A]"], "cpu", "is within 5.0 to 8.9"),
    ([], "cpu", "nvidia-smi lists no GPU"),
])
def test_the_gpu_set_is_for_gpus_that_its_machine_code_fits(
    machine, gpus, chosen, reason
):
    machine.add("uname", "echo Linux x86_64")
    machine.add_gpus(*gpus)
    found = machine.find_device()
    assert (found.returncode, found.stdout) == (0, f"{chosen}\n")
    assert reason in found.stderr
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize("card", [*USABLE.values(), *UNUSABLE.values()])
def test_the_set_is_chosen_by_the_rule_that_the_doctor_has(machine, card):
    machine.add("uname", "echo Linux x86_64")
    machine.add_gpus(f"{card.name}, {gpus.dotted(card.capability)}")
    chosen = "gpu" if gpus.code_for(card.capability) else "cpu"
    assert machine.find_device().stdout == f"{chosen}\n"


@pytest.mark.parametrize("system, smi, reason", [
    ("Linux x86_64", None, "there is no NVIDIA driver"),
    ("Linux x86_64", "echo 'NVIDIA-SMI has failed'; exit 9", "finds no GPU"),
    ("Linux aarch64", "echo 'NVIDIA A10, 8.6'", "Linux aarch64"),
])
def test_without_a_driver_that_works_or_a_wheel_the_cpu_set_is_chosen_and_says_why(
    machine, system, smi, reason
):
    machine.add("uname", f"echo {system}")
    if smi:
        machine.add("nvidia-smi", smi)
    found = machine.find_device()
    assert (found.returncode, found.stdout) == (0, "cpu\n")
    assert reason in found.stderr


def test_an_old_drivers_library_is_asked_where_its_nvidia_smi_knows_too_little(machine):
    machine.add("uname", "echo Linux x86_64")
    machine.add("nvidia-smi", "echo 'Field \"compute_cap\" is not valid'; exit 2")
    python = machine.path / "python3.11"
    script = f"""
case "$*" in
-I*) echo "3.11 venv Linux-x86_64 {python}" ;;
"-m bookkit.doctor.list") echo "Tesla V100-SXM2-16GB, 7.0" ;;
esac"""
    machine.add("python3.11", script)
    found = machine.find_device()
    assert found.stdout == "gpu\n"
    assert "Tesla V100-SXM2-16GB, 7.0" in found.stderr


# The environment


class Checkout:
    """A copy of the set-up in which a script plays Python and pip."""

    #: A Python whose venv, pip and imports can be made to fail by files.
    PYTHON = """
case "$*" in
-I*) echo "3.11 venv Linux-x86_64 {self}" ;;
"-m venv"*) mkdir -p "$3/bin"; cp {self} "$3/bin/python" ;;
*locks/uv.txt) [ ! -e {root}/fail-pip ] || exit 1; cp {own_uv} "${{0%/*}}/uv" ;;
*"pip install"*) [ ! -e {root}/fail-pip ] || exit 1; echo "$@" >>{root}/installed ;;
*"import sysconfig"*) echo {root}/site ;;
*"import d2l_ext"*) [ ! -e {root}/message ] || {{ cat {root}/message >&2; exit 1; }} ;;
--version) echo "Python 3.11.9" ;;
esac"""

    def __init__(self, root, machine):
        self.root = root
        self.machine = machine
        (root / "tools").mkdir(parents=True)
        source = TOOLS.parent
        shutil.copy(source / "pyproject.toml", root)
        shutil.copytree(source / "requirements/locks", root / "requirements/locks")
        for file in (*TOOLS.glob("*.sh"), TOOLS / "quick_imports.py"):
            shutil.copy(file, root / "tools")
        (root / "site/mxnet").mkdir(parents=True)
        for name in ("cp", "ln"):
            (machine.path / name).symlink_to(shutil.which(name))
        python = machine.path / "python3.11"
        machine.add("own-uv", f"""
[ ! -e {root}/fail-uv ] || {{ echo 'no index' >&2; exit 1; }}
echo "own uv, index $UV_DEFAULT_INDEX, $*" >>{root}/installed""")
        own_uv = machine.path / "own-uv"
        script = self.PYTHON.format(self=python, root=root, own_uv=own_uv)
        machine.add("python3.11", script)

    def make(self, **settings):
        return self.machine.run(self.root / "tools" / "make_venv.sh", **settings)

    def add_uv(self):
        """A uv that brings its own Python, and notes what it is asked for."""
        script = f"""
case "$*" in
venv*) for last; do :; done; mkdir -p "$last/bin"
    cp {self.machine.path}/own-python "$last/bin/python" ;;
esac
echo "uv $*" >>{self.root}/installed"""
        self.machine.add("uv", script)
        shutil.copy(self.machine.path / "python3.11", self.machine.path / "own-python")

    def installations(self):
        """What was installed: one line for each call of pip or uv."""
        file = self.root / "installed"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def checkout(tmp_path, machine):
    return Checkout(tmp_path / "checkout", machine)


def test_the_environment_gets_the_chosen_set_and_the_library(checkout):
    made = checkout.make(PIP_INDEX_URL="https://mirror")
    assert made.returncode == 0, made.stderr
    packages, library = checkout.installations()
    lock = "--require-hashes -r requirements/locks/cpu.txt"
    assert packages == f"own uv, index https://mirror, pip install --quiet {lock}"
    assert library.endswith("--no-deps --no-build-isolation -e .")


def test_every_python_of_the_environment_takes_mxnets_operators_from_a_file(checkout):
    assert checkout.make().returncode == 0
    site = checkout.root / "site"
    assert (site / "quick_imports.pth").read_text() == "import quick_imports\n"
    installed = (site / "quick_imports.py").read_text()
    assert installed == (TOOLS / "quick_imports.py").read_text()


def test_cudas_libraries_stand_beside_mxnets_where_every_process_finds_them(checkout):
    site = checkout.root / "site"
    (site / "nvidia/cublas/lib").mkdir(parents=True)
    for name in ("libcublas.so.11", "libnvblas.so.11"):
        (site / "nvidia/cublas/lib" / name).write_text(name)
    assert checkout.make(DEVICE="gpu").returncode == 0
    (file,) = (site / "mxnet").iterdir()
    assert file.read_text() == file.name == "libcublas.so.11"


def test_where_the_uv_that_pip_brings_cannot_do_it_pip_does_it_and_says_why(checkout):
    (checkout.root / "fail-uv").touch()
    made = checkout.make()
    assert made.returncode == 0 and "as uv could not do it (no index)" in made.stdout
    packages, _ = checkout.installations()
    assert packages.endswith("--require-hashes --no-deps -r requirements/locks/cpu.txt")


def test_uv_is_used_when_it_is_there(checkout):
    checkout.add_uv()
    assert checkout.make().returncode == 0
    made, packages, library = checkout.installations()
    assert made.startswith("uv venv") and "/python3.11 " in made
    lock = "requirements/locks/cpu.txt"
    assert packages == f"uv pip install --quiet --require-hashes -r {lock}"
    assert library.startswith("uv pip install") and library.endswith("-e .")


def test_uv_brings_a_python_where_there_is_none(checkout):
    checkout.add_uv()
    checkout.machine.add_python("python3.11", "3.12")
    assert checkout.make().returncode == 0
    assert "--python >=3.9,<3.12" in checkout.installations()[0]


def test_where_uv_may_not_bring_a_python_the_message_says_what_to_do(checkout):
    checkout.machine.add("uv", "echo 'downloads are disabled' >&2; exit 2")
    checkout.machine.add_python("python3.11", "3.12")
    made = checkout.make()
    assert made.returncode == 1
    assert "downloads are disabled" in made.stderr
    assert "It needs Python 3.11, 3.10 or 3.9" in made.stderr


def test_a_second_call_does_nothing_and_says_nothing(checkout):
    checkout.make()
    again = checkout.make()
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert len(checkout.installations()) == 2


@pytest.mark.parametrize(
    "file, line, installations",
    [("requirements/locks/common.txt", "another==1.0\n", 4),
     ("pyproject.toml", "# more\n", 2)],
)
def test_a_changed_lock_is_noticed_and_changed_settings_of_tests_install_nothing(
    checkout, file, line, installations
):
    checkout.make()
    with open(checkout.root / file, "a") as stream:
        stream.write(line)
    checkout.make()
    assert len(checkout.installations()) == installations


def test_the_other_set_is_installed_when_asked_for_and_then_kept(checkout):
    checkout.make()
    checkout.make(DEVICE="gpu")
    assert checkout.installations()[2].endswith("-r requirements/locks/gpu.txt")
    checkout.make()
    assert len(checkout.installations()) == 4


def test_an_installation_that_failed_is_made_anew(checkout):
    (checkout.root / "fail-pip").touch()
    assert checkout.make().returncode != 0
    (checkout.root / "fail-pip").unlink()
    assert checkout.make().returncode == 0
    assert len(checkout.installations()) == 2


@pytest.mark.parametrize(
    "library, settings, said",
    [("libquadmath.so.0", {}, "sudo apt-get install libgomp1 libquadmath0"),
     ("libgomp.so.1", {}, "sudo apt-get install libgomp1 libquadmath0"),
     ("libcuda.so.1", {"DEVICE": "gpu"}, "make book DEVICE=cpu")],
)
def test_a_missing_library_is_named_with_what_to_do_and_nothing_is_installed_again(
    checkout, library, settings, said
):
    message = f"OSError: {library}: cannot open shared object file"
    (checkout.root / "message").write_text(message)
    for made in (checkout.make(**settings), checkout.make(**settings)):
        assert made.returncode == 1
        assert made.stderr.splitlines()[-1].endswith(said)
    (checkout.root / "message").unlink()
    assert checkout.make(**settings).returncode == 0
    assert len(checkout.installations()) == 2


def test_an_environment_of_the_readers_own_is_left_alone(checkout):
    (checkout.root / ".venv").mkdir()
    (checkout.root / ".venv" / "mine").touch()
    made = checkout.make()
    assert made.returncode == 1
    assert "was not made by make" in made.stderr
    assert (checkout.root / ".venv" / "mine").exists()


def test_a_moved_checkout_gets_a_new_environment(checkout):
    checkout.make()
    moved = checkout.root.with_name("moved")
    os.rename(checkout.root, moved)
    subprocess.run(["mkdir", checkout.root], check=True)  # where the record goes
    checkout.machine.run(moved / "tools" / "make_venv.sh")
    assert len(checkout.installations()) == 2


# The pins

ROOT = TOOLS.parent
REQUIRED = {
    "requirements.txt": "common",
    "requirements/cpu.txt": "cpu",
    "requirements/gpu.txt": "gpu",
    "requirements/lint.txt": "lint",
}


def lines_of(file):
    lines = [line.split(" #")[0] for line in file.read_text().splitlines()]
    return [line for line in lines if line and not line.startswith(("#", "-"))]


def locked(name):
    """Return the pins of a lock, each with its hashes."""
    text = (ROOT / f"requirements/locks/{name}.txt").read_text().replace("\\\n", "")
    return {
        line.split(" --hash")[0].strip(): line.count(" --hash=sha256:")
        for line in text.splitlines()
        if not line.startswith(("#", "-"))
    }


@pytest.mark.parametrize(("file", "lock"), REQUIRED.items())
def test_what_is_required_is_locked_in_that_version_with_hashes(file, lock):
    pins = locked(lock)
    assert all("==" in pin and hashes for pin, hashes in pins.items())
    names = {pin.split(" ;")[0] for pin in pins}
    for line in lines_of(ROOT / file):
        assert line.split(";")[0].strip() in names, f"{line}: run make lock"
