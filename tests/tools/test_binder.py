"""A BinderHub builds what the locks say, and its button leads to the chapter."""

import re
import shlex
import subprocess

import nbformat
import pytest
import yaml
from nbformat import v4
from notebook_cells import ROOT

import sources

HUB, CODE = "https://hub.example", "https://github.com/somebody/some-book"


def test_it_installs_the_locks_as_make_does(tmp_path):
    python = tmp_path / "python"
    python.write_text(
        '#!/bin/sh\nif [ "$2" = pip ]; then echo "$@" >>"$0.said"\n'
        f'else echo "{tmp_path}"; fi\n'
    )
    python.chmod(0o755)
    script = ROOT / ".binder/postBuild"
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run([script], cwd=ROOT, env=path, check=True, capture_output=True)
    installs = [
        shlex.split(line)
        for line in (tmp_path / "python.said").read_text().splitlines()
    ]
    made = (ROOT / "tools/make_venv.sh").read_text("utf-8")
    for said, ours in zip(
        re.findall(r"\$pip install (?:-q+ )(.*)", made)[-2:], installs
    ):
        wanted = said.replace('"$requirements"', "requirements/locks/cpu.txt")
        assert set(shlex.split(wanted)) <= set(ours)
    assert len(installs) == 2
    assert (tmp_path / "checkout.pth").read_text().strip() == str(ROOT)


def test_its_python_is_one_of_the_book_s():
    version = (ROOT / ".binder/runtime.txt").read_text().strip()
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    least, below = re.search(
        r'requires-python = ">=3\.(\d+),\s*<3\.(\d+)"', project
    ).groups()
    assert version in [f"python-3.{minor}" for minor in range(int(least), int(below))]


def test_it_has_the_system_s_libraries_that_the_containers_have():
    needed = set((ROOT / ".binder/apt.txt").read_text().split())
    container = (ROOT / "containers/Containerfile").read_text("utf-8")
    (base,) = re.findall(r"--no-install-recommends \\\n\s+(git .*) \\", container)
    assert needed == {name for name in base.split() if name.startswith("lib")}


@pytest.mark.parametrize("hub", ["", HUB])
def test_a_chapter_has_a_button_once_an_address_is_given(tmp_path, hub):
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    options = config["sphinx"]["config"]["html_theme_options"]
    assert (
        not options["repository_url"] and not options["launch_buttons"]["binderhub_url"]
    )
    options["launch_buttons"]["binderhub_url"] = hub
    options["repository_url"] = CODE if hub else ""
    sphinx = {"config": {"html_theme_options": options}}
    (tmp_path / "_config.yml").write_text(
        yaml.safe_dump({"title": "A", "sphinx": sphinx})
    )
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: intro\nchapters:\n"
                                       "- file: chapters/one/ants\n")  # fmt: skip
    (tmp_path / "intro.md").write_text("# A\n")
    (tmp_path / "chapters/one").mkdir(parents=True)
    chapter = v4.new_notebook(cells=[v4.new_markdown_cell("# Ants")])
    nbformat.write(chapter, tmp_path / "chapters/one/ants.ipynb")
    page = sources.build(tmp_path, "html", strict=False) / "chapters/one/ants.html"
    links = re.findall(r'href="([^"]*/v2/[^"]*)"', page.read_text("utf-8"))
    there = (
        f"{HUB}/v2/gh/somebody/some-book/main?urlpath=lab/tree/chapters/one/ants.ipynb"
    )
    assert set(links) == ({there} if hub else set())
