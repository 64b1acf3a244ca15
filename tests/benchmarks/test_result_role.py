"""Figures on a page come from the recorded result, or the page says what is wrong."""

import re

import benchmark_results as ext  # it lives beside the other extensions
import pytest
from notebook_cells import ROOT

from bookkit import stored

RESULT = {
    "rows": [
        {"id": "one", "ms": {"median": 1234.567}, "reached": False},
        {"id": "two", "ms": {"median": None}, "missing": "no such library"},
    ],
    "rounds": 15,
}


def test_an_entry_of_a_list_is_found_by_its_id_and_by_its_number():
    assert ext.look_up(RESULT, "rows.one.ms.median") == 1234.567
    assert ext.look_up(RESULT, "rows.0.ms.median") == 1234.567
    assert ext.look_up(RESULT, "rounds") == 15


def test_what_was_not_measured_is_a_dash():
    assert ext.text_of(ext.look_up(RESULT, "rows.two.ms.median"), 2) == "—"


def test_a_path_that_is_not_there_is_an_error_that_names_what_is():
    with pytest.raises(KeyError, match="no 'three'.*one, two"):
        ext.look_up(RESULT, "rows.three.ms")


@pytest.mark.parametrize("path", ["rounds.first", "rows.one.id.name", "figures.0.ms"])
def test_below_a_figure_there_is_nothing(path):
    result = {**RESULT, "figures": [1.5, 2]}
    assert ext.look_up(result, "figures.0") == 1.5
    with pytest.raises(KeyError, match="has no entries"):
        ext.look_up(result, path)


@pytest.mark.parametrize(
    "value, text",
    [(1234.567, "1,234.57"), (1.8449, "1.84"), (31562, "31,562"), (True, "yes"),
     (False, "no"), ("≥", "≥"), (-0.0004, "0.00"), (-0.0, "0.00"), (-0.12, "-0.12"),],
)
def test_a_figure_is_rounded_for_the_reader(value, text):
    assert ext.text_of(value, 2) == text


def test_rows_are_numbered_and_compared_by_their_numbers():
    rows = ext.numbered([{"id": "a", "against": ""}, {"id": "b", "against": "a"}])
    assert [(row["row"], row["against"]) for row in rows] == [(1, None), (2, 1)]


def test_a_row_without_a_name_is_named_by_what_it_does():
    entry = {"what": "20 MB", "on_store": True, "env": {"DMLC_LOCAL": "1"}}
    assert ext.name_of(entry) == "20 MB, servers update, Unix sockets"
    assert ext.numbered([{"name": "LeNet"}])[0]["name"] == "LeNet"


def test_a_column_with_figures_is_one_of_figures():
    one, two = RESULT["rows"]
    assert ext.is_figure(one, "ms.median") and not ext.is_figure(two, "ms.median")
    assert not ext.is_figure(one, "reached") and not ext.is_figure(one, "id")


def test_every_result_says_when_where_and_at_which_commit():
    for name in stored.names():
        line = ext.provenance(stored.read(name))
        assert line.startswith("Measured on") and "commit" in line, name


def test_a_result_names_its_versions_where_it_has_them():
    result = stored.Record("", "", "2026-11-21T13:57:00+00:00", "95d40f6",
                           {"cores": 2, "processor": "P"}, {}, 1.0, None)
    end = "21 November 2026, commit 95d40f6."
    assert ext.provenance(result) == (
        "Measured on 2 cores (P) with the versions in requirements/locks/cpu.txt, "
        + end
    )
    result.versions = {"MXNet": "1.9.1", "Python": "3.11.7"}
    assert ext.provenance(result) == (
        f"Measured on 2 cores (P) with MXNet 1.9.1, Python 3.11.7, {end}"
    )


def test_the_second_device_is_the_second_core_in_the_recorded_steps_of_lenet():
    """What the ledger's S10 says: memory is kept, and faults are no part of it."""
    result = stored.read("data_parallel").data
    rows = {row["id"]: row for row in result["rows"]}
    gain = {id: row["speed_up"]["median"] for id, row in rows.items()}
    ours = [row for id, row in rows.items() if id.startswith(("scr", "fl", "re", "gl"))]
    assert result["settings"]["keep_memory"] and result["settings"]["batch_size"] == 256
    assert max(row["page_faults"] for row in ours) <= 50
    for one, two in (("scratch-1", "scratch-2"), ("flat-1", "flat-2"),
                     ("replay-1", "replay-2"), ("gluon-1", "gluon-2-device")):
        assert rows[two]["baseline"] == one and 1.4 < gain[two] < 2.05
    assert max(gain["scratch-2"], gain["flat-2"], 1.7) < gain["replay-2"]
    assert rows["flat-2"]["step_ms"]["median"] < rows["scratch-2"]["step_ms"]["median"]


PAGES = sorted(ROOT.glob("reference/*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_that_takes_figures_from_a_result_says_where_it_comes_from(page):
    """The line of provenance stands below each table of a result."""
    text = page.read_text(encoding="utf-8")
    taken = set(re.findall(r"\{result\}`(\w+) ", text))
    assert taken <= set(re.findall(r"(?m)^```\{results-table\} (\w+) ", text))


@pytest.mark.parametrize("case, name", [
    ("ring, 4, 5 MB", "ring allreduce: 4 devices, 5 MB"),
    ("gradient, 16", "LeNet's gradient: 16 images"),
    ("step, naive, 2, 96", "LeNet's step, allreduce: naive, 2 devices, 96 images"),
    ("pipeline, 4+4, 64, 4", "a pipeline: 4+4 blocks, 64 rows, 4 micro-batches"),
    ("dist, 2, 1, 8, 8 MB", "dist_sync: 2 workers, 1 server, 8 arrays, 8 MB"),
])
def test_a_case_of_the_cost_model_has_a_name(case, name):
    assert ext.name_of({"id": case}) == name


def test_a_job_is_named_by_its_store_and_by_who_takes_part():
    job = {"kind": "dist_sync", "workers": 2, "servers": 2, "on_store": True}
    assert ext.job_of(job) == "dist_sync, 2 workers, 2 servers, servers update"
    assert ext.job_of({"kind": "", "workers": 0}) == "without a store"


def bars(html):
    """(kind, left, width) of each thing drawn, in percent."""
    found = re.findall(r'class="(\w+)" style="left: ([\d.]+)%; width: ([\d.]+)%"', html)
    return [(kind, float(left), float(width)) for kind, left, width in found]


def test_bars_begin_at_zero_and_share_a_scale():
    html = ext.chart([("<a>", 1.0, 0.5, 2.0), ("b", 4.0, 3.0, 5.0)], "ms")
    assert bars(html) == [("bar", 0, 20), ("range", 10, 30),
                          ("bar", 0, 80), ("range", 60, 40)]
    assert "&lt;a&gt;" in html and ">4.00<" in html


def test_figures_below_zero_go_to_the_left_of_it():
    assert bars(ext.chart([("a", -0.1), ("b", 0.05)], "error")) == [
        ("bar", 0, 50), ("bar", 50, 25)]
