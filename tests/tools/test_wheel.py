"""The library as a wheel: whole, and at work where there is no checkout."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from packages import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
BUILD = "import sys; from setuptools import build_meta as b; b.build_wheel(sys.argv[1])"
#: Every module is asked where it comes from: the checkout may be installed as well.
FROM_THE_WHEEL = """
import sys
from pathlib import Path
import d2l_ext
{code}
own = [m for name, m in sys.modules.items() if name.split(".")[0] in {packages}]
for module in own:
    assert Path(module.__file__).is_relative_to({site!r}), module.__file__
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The sources, and nothing that an earlier build left beside them."""
    folder = tmp_path_factory.mktemp("copy")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package,
                        ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.fixture(scope="module")
def site(copy, tmp_path_factory):
    """A folder with the unpacked wheel, which is what pip makes of it."""
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-c", BUILD, folder], cwd=copy)
    (wheel,) = folder.glob("d2l_ext-*-py3-none-any.whl")
    site = folder / "site"
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    return site


def run(command, cwd, **env):
    """What `command` prints on standard output."""
    env = {**os.environ, **env}
    ran = subprocess.run([*map(str, command)], cwd=cwd, env=env, timeout=300,
                         capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def script(code, site):
    return FROM_THE_WHEEL.format(code=code, site=str(site), packages=PACKAGES)


def files(folder):
    found = (path for package in PACKAGES for path in (folder / package).rglob("*"))
    return {str(path.relative_to(folder)) for path in found if path.is_file()}


def test_the_wheel_holds_every_file_of_the_library_and_the_command(copy, site):
    assert files(site) == files(copy)
    (words,) = site.glob("d2l_ext-*.dist-info/entry_points.txt")
    assert "d2l-ext-train = trainkit.command:command" in words.read_text()


def test_a_chapter_finds_the_stored_results_beside_it(site):
    code = "from bookkit import stored; print(*stored.names())"
    told = run([sys.executable, "-c", script(code, site)], ROOT / "chapters/clusters",
               PYTHONPATH=site)
    names = sorted(path.stem for path in (ROOT / "benchmarks/results").glob("*.json"))
    assert told.split() == names


def test_the_trainer_and_a_local_job_run(site, tmp_path):
    def train(*flags):
        flags = "--network", "mlp", "--num-examples", "320", "--num-epochs", "1", *flags
        code = f"from trainkit.command import main\nassert main({list(flags)}) == 0"
        return [sys.executable, "-c", script(code, site)]

    result = json.loads(run(train(), tmp_path, PYTHONPATH=site))
    assert (result["steps"], result["dataset"]) == (5, "digits")
    launch = [sys.executable, "-m", "pslaunch", "-n", "1", "-s", "1", "--json"]
    command = [*launch, *train("--kv-store", "dist_sync")]
    job = json.loads(run(command, tmp_path, PYTHONPATH=site).splitlines()[-1])
    assert job["returncode"] == 0
    assert (job["workers"][0]["steps"], job["workers"][0]["num_workers"]) == (5, 1)
