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


def test_the_newest_supported_python_is_chosen(machine):
    for name in ("python3.9", "python3.10", "python3.11", "python3.12"):
        machine.add_python(name, name[6:])
    found = machine.find_python()
    assert (found.returncode, found.stdout) == (0, "/real/python3.11\n")


def test_python_3_9_alone_is_chosen(machine):
    machine.add_python("python3.9", "3.9")
    assert machine.find_python().stdout == "/real/python3.9\n"


def test_a_python3_without_a_number_is_asked_for_its_version(machine):
    machine.add_python("python3", "3.10")
    assert machine.find_python().stdout == "/real/python3\n"


def test_with_python_3_12_only_the_message_says_why_and_what_to_install(machine):
    machine.add_python("python3.12", "3.12")
    machine.add_python("python3", "3.12")
    found = machine.find_python()
    assert found.returncode == 1
    assert found.stdout == ""
    assert "python3: is Python 3.12" in found.stderr
    assert "NumPy 1.23.5, which has no wheel" in found.stderr
    assert "sudo apt-get install python3.11-venv" in found.stderr


def test_without_any_python_the_message_says_so(machine):
    found = machine.find_python()
    assert found.returncode == 1
    assert "There is none at all" in found.stderr


@pytest.mark.parametrize(
    "script", ["echo 'pyenv: command not found' >&2; exit 127", "exit 0"]
)
def test_a_shim_that_does_not_run_is_passed_over(machine, script):
    machine.add("python3.11", script)
    machine.add_python("python3.10", "3.10")
    assert machine.find_python().stdout == "/real/python3.10\n"


def test_a_shim_that_does_not_run_is_named_when_there_is_nothing_else(machine):
    machine.add("python3.11", "exit 127")
    found = machine.find_python()
    assert found.returncode == 1
    assert "python3.11: is on the PATH, but does not run" in found.stderr


def test_a_python_without_venv_is_named_with_the_missing_package(machine):
    machine.add_python("python3.11", "3.11", module="no-venv")
    found = machine.find_python()
    assert found.returncode == 1
    assert "lacks the module venv" in found.stderr
    assert "sudo apt-get install python3.11-venv" in found.stderr


def test_a_python_without_venv_is_passed_over_for_an_older_one(machine):
    machine.add_python("python3.11", "3.11", module="no-venv")
    machine.add_python("python3.10", "3.10")
    assert machine.find_python().stdout == "/real/python3.10\n"


def test_a_python_without_venv_will_do_for_uv(machine):
    machine.add_python("python3.11", "3.11", module="no-venv")
    assert machine.find_python(NEED_VENV="no").stdout == "/real/python3.11\n"


def test_a_python_for_a_processor_without_mxnet_is_refused_by_name(machine):
    machine.add_python("python3.11", "3.11", kind="Darwin-arm64")
    found = machine.find_python()
    assert found.returncode == 1
    assert "built for Darwin-arm64; MXNet 1.9.1 has wheels for" in found.stderr


def test_the_python_that_the_reader_names_is_taken(machine):
    machine.add_python("python3.11", "3.11")
    machine.add_python("mine", "3.9")
    assert machine.find_python(PYTHON="mine").stdout == "/real/mine\n"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("python3.12", "is Python 3.12"), ("nowhere", "no such program")],
)
def test_the_python_that_the_reader_names_is_checked(machine, name, reason):
    machine.add_python("python3.11", "3.11")
    machine.add_python("python3.12", "3.12")
    found = machine.find_python(PYTHON=name)
    assert (found.returncode, found.stdout) == (1, "")
    assert f"PYTHON={name} cannot run this book" in found.stderr
    assert reason in found.stderr


def test_the_probe_understands_a_real_python(machine):
    found = machine.find_python(PYTHON=sys.executable)
    assert found.stdout == f"{sys.executable}\n"


# CPU or GPU


@pytest.mark.parametrize(
    ("gpus", "chosen", "reason"),
    [
        (["NVIDIA A10, 8.6"], "gpu", "NVIDIA A10, 8.6"),
        (["NVIDIA A10, 8.6", "NVIDIA L4, 8.9"], "gpu", "8.6; NVIDIA L4, 8.9"),
        (["Tesla M40, 5.2"], "gpu", "Tesla M40, 5.2"),
        (["NVIDIA H200, 9.0"], "cpu", "is within 5.0 to 8.9: NVIDIA H200, 9.0"),
        (["NVIDIA B200, 10.0", "NVIDIA A10, 8.6"], "gpu", "GPU: NVIDIA A10, 8.6."),
        (["Tesla K80, 3.7"], "cpu", "is within 5.0 to 8.9: Tesla K80, 3.7"),
        (["Some GPU, [N/A]"], "cpu", "is within 5.0 to 8.9"),
        ([], "cpu", "nvidia-smi lists no GPU"),
    ],
)
def test_the_gpu_set_is_for_gpus_that_its_machine_code_fits(
    machine, gpus, chosen, reason
):
    machine.add("uname", "echo Linux x86_64")
    machine.add_gpus(*gpus)
    found = machine.find_device()
    assert (found.returncode, found.stdout) == (0, f"{chosen}\n")
    assert reason in found.stderr
    assert found.stderr.count("\n") == 1


def test_without_a_driver_the_cpu_set_is_chosen_and_says_why(machine):
    found = machine.find_device()
    assert (found.returncode, found.stdout) == (0, "cpu\n")
    assert "there is no NVIDIA driver" in found.stderr


@pytest.mark.parametrize("card", [*USABLE.values(), *UNUSABLE.values()])
def test_the_set_is_chosen_by_the_rule_that_the_doctor_has(machine, card):
    machine.add("uname", "echo Linux x86_64")
    machine.add_gpus(f"{card.name}, {gpus.dotted(card.capability)}")
    chosen = "gpu" if gpus.code_for(card.capability) else "cpu"
    assert machine.find_device().stdout == f"{chosen}\n"


def test_a_driver_that_fails_leads_to_the_cpu_set(machine):
    machine.add("uname", "echo Linux x86_64")
    machine.add("nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9")
    found = machine.find_device()
    assert found.stdout == "cpu\n"
    assert "finds no GPU" in found.stderr


def test_an_old_drivers_library_is_asked_where_its_nvidia_smi_knows_too_little(
    machine,
):
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


def test_a_gpu_beside_another_processor_leads_to_the_cpu_set(machine):
    machine.add("uname", "echo Linux aarch64")
    machine.add_gpus("NVIDIA A10, 8.6")
    found = machine.find_device()
    assert found.stdout == "cpu\n"
    assert "Linux aarch64" in found.stderr


def test_the_reader_may_choose_the_other_set(machine):
    machine.add_gpus("NVIDIA A10, 8.6")
    assert machine.find_device(DEVICE="cpu").stdout == "cpu\n"
    assert machine.find_device(DEVICE="gpu").stdout == "gpu\n"


def test_an_unknown_set_is_refused(machine):
    found = machine.find_device(DEVICE="tpu")
    assert (found.returncode, found.stdout) == (1, "")
    assert "DEVICE=tpu: write cpu or gpu" in found.stderr


# The environment


class Checkout:
    """A copy of the set-up in which a script plays Python and pip."""

    #: A Python whose venv, pip and imports can be made to fail by files.
    PYTHON = """
case "$*" in
-I*) echo "3.11 venv Linux-x86_64 {self}" ;;
"-m venv"*) mkdir -p "$3/bin"; cp {self} "$3/bin/python" ;;
*"pip install"*) [ ! -e {root}/fail-pip ] || exit 1; echo "$@" >>{root}/installed ;;
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
        for file in TOOLS.glob("*.sh"):
            shutil.copy(file, root / "tools")
        (machine.path / "cp").symlink_to(shutil.which("cp"))
        python = machine.path / "python3.11"
        machine.add("python3.11", self.PYTHON.format(self=python, root=root))

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
    made = checkout.make()
    assert made.returncode == 0, made.stderr
    packages, library = checkout.installations()
    assert packages.endswith("--require-hashes --no-deps -r requirements/locks/cpu.txt")
    assert library.endswith("--no-deps --no-build-isolation -e .")


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


def test_uv_does_not_replace_the_python_that_the_reader_names(checkout):
    checkout.add_uv()
    checkout.machine.add_python("python3.12", "3.12")
    made = checkout.make(PYTHON="python3.12")
    assert made.returncode == 1
    assert "PYTHON=python3.12 cannot run this book" in made.stderr
    assert checkout.installations() == []


def test_a_second_call_does_nothing_and_says_nothing(checkout):
    checkout.make()
    again = checkout.make()
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert len(checkout.installations()) == 2


def test_a_changed_lock_is_noticed(checkout):
    checkout.make()
    with open(checkout.root / "requirements/locks" / "common.txt", "a") as file:
        file.write("another==1.0\n")
    checkout.make()
    assert len(checkout.installations()) == 4


def test_a_change_of_the_tests_settings_installs_nothing(checkout):
    checkout.make()
    with open(checkout.root / "pyproject.toml", "a") as file:
        file.write("# more\n")
    checkout.make()
    assert len(checkout.installations()) == 2


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


def test_a_missing_system_library_is_named_with_its_package(checkout):
    message = "OSError: libquadmath.so.0: cannot open shared object file"
    (checkout.root / "message").write_text(message)
    made = checkout.make()
    assert made.returncode == 1
    assert made.stderr.splitlines()[-1].endswith(
        "sudo apt-get install libgomp1 libquadmath0"
    )


def test_once_the_library_is_there_nothing_is_installed_again(checkout):
    (checkout.root / "message").write_text("OSError: libgomp.so.1: not found")
    assert checkout.make().returncode == 1
    assert checkout.make().returncode == 1
    (checkout.root / "message").unlink()
    assert checkout.make().returncode == 0
    assert len(checkout.installations()) == 2


def test_a_missing_driver_leads_to_the_cpu_set(checkout):
    (checkout.root / "message").write_text("OSError: libcuda.so.1: not found")
    made = checkout.make(DEVICE="gpu")
    assert made.returncode == 1
    assert "make book DEVICE=cpu" in made.stderr


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


@pytest.mark.parametrize("file", [*REQUIRED, "requirements/bench.txt"])
def test_every_package_that_is_required_is_required_in_one_version(file):
    for line in lines_of(ROOT / file):
        assert "==" in line.split(";")[0], line


@pytest.mark.parametrize(("file", "lock"), REQUIRED.items())
def test_what_is_required_is_locked_in_that_version(file, lock):
    pins = {pin.split(" ;")[0] for pin in locked(lock)}
    for line in lines_of(ROOT / file):
        assert line.split(";")[0].strip() in pins, f"{line}: run make lock"


@pytest.mark.parametrize("lock", REQUIRED.values())
def test_every_locked_package_has_a_version_and_hashes(lock):
    for pin, hashes in locked(lock).items():
        assert "==" in pin
        assert hashes, pin


def test_the_locks_of_both_mxnets_share_all_other_packages():
    for name in ("cpu", "gpu"):
        first = (ROOT / f"requirements/locks/{name}.txt").read_text().splitlines()[1]
        assert first == "-r common.txt"
    assert {pin.split("==")[0] for pin in locked("cpu")} == {"mxnet"}
    assert "mxnet-cu112==1.9.1" in locked("gpu")


def test_the_library_requires_what_the_book_requires():
    root = TOOLS.parent
    required = (root / "requirements.txt").read_text().splitlines()
    project = (root / "pyproject.toml").read_text()
    listed = project.split("dependencies = [")[1].split("]")[0]
    for line in listed.split():
        assert line.strip('",') in required
