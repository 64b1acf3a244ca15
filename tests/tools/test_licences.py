"""The list of licences is that of the packages that the locks install."""

import re
import sys
from email.message import Message

import pytest

import licences

PAGE = licences.read((licences.ROOT / "reference/licences.md").read_text())


def test_every_package_of_the_locks_has_a_licence_and_no_other_has():
    assert set(PAGE) == licences.locked()
    assert "not declared" not in PAGE.values()


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11),
    reason="the list has the licences of the versions that Python 3.11 gets",
)
def test_the_packages_installed_here_declare_what_the_list_says():
    here = licences.declared()
    installed = set(PAGE) & set(here)
    assert len(installed) > 100
    assert {name: PAGE[name] for name in installed} == {
        name: here[name] for name in installed
    }


def test_the_table_of_known_defects_is_about_the_locked_versions():
    page = (licences.ROOT / "reference/supply_chain.md").read_text()
    locks = "".join(
        (licences.ROOT / f"requirements/locks/{lock}.txt").read_text()
        for lock in licences.LOCKS
    )
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ")]
    named = re.findall(r"([\w-]+) (\d+\.\d+\.\d[\w.]*)", "\n".join(rows))
    assert len(named) > 10
    for name, version in named:
        assert f"{name.lower()}=={version} " in locks, (name, version)


@pytest.mark.parametrize(("fields", "licence"), [
    ([("License-Expression", "MIT"), ("License", "a text")], "MIT"),
    ([("Classifier", "License :: OSI Approved :: MIT License")], "MIT License"),
    ([("Classifier", "License :: OSI Approved"), ("License", "BSD")], "BSD"),
    ([
         ("Classifier", "License :: Other/Proprietary License"),
         ("License", "NVIDIA Proprietary Software"),
     ],
     "NVIDIA Proprietary Software"),
    ([("License", "A licence of a hundred lines\n" * 100)],
     "A licence of a hundred lines"),
    ([("License", "x" * 100)], "not declared"),
    ([], "not declared"),
])
def test_a_licence_is_what_the_package_declares(fields, licence):
    about = Message()
    for name, value in fields:
        about[name] = value
    assert licences.licence(about) == licence
