"""A release has what a reader runs, and says one version everywhere."""

import re
import subprocess
import zipfile

import pytest
import yaml
from notebook_cells import ROOT, chapters
from played_machine import GIT

import release


@pytest.mark.skipif(not (ROOT / ".git").exists(),
                    reason="no repository here: there is no commit to pack")
def test_it_has_every_chapter_the_locks_and_the_commands(tmp_path):
    with zipfile.ZipFile(release.pack(tmp_path)) as packed:
        names = set(packed.namelist())
    home = f"many-devices-{release.version()}/"
    wanted = {f"{name}.ipynb" for name in chapters()} | {
        "README.md", "LICENSE", "CITATION.cff", "Makefile",
        "requirements/locks/cpu.txt",
    }
    assert {home + name for name in wanted} <= names
    assert not any(name.startswith(f"{home}.github") for name in names)


def test_there_is_none_while_a_tracked_file_differs(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.py").write_text("old\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*GIT, *words], cwd=tmp_path, check=True)
    (tmp_path / "new.py").touch()
    assert release.uncommitted(tmp_path) == ""
    (tmp_path / "a.py").write_text("new\n")
    changes = release.uncommitted(tmp_path)
    assert changes == " M a.py\n"
    monkeypatch.setattr(release, "uncommitted", lambda: changes)
    monkeypatch.setattr(release, "pack", None)
    assert release.main() == 1
    assert "without these changes:\n M a.py" in capsys.readouterr().err


def test_the_version_is_the_same_wherever_it_is_said():
    version = release.version()
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["version"] == version
    config = (ROOT / "_config.yml").read_text("utf-8")
    assert f"<p>Version {version}</p>" in config
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert re.search(r'^version = "(.+)"', project, re.MULTILINE)[1] == version
    assert f"author: {cited['authors'][0]['name']}" in config
