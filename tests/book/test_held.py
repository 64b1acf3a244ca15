"""Every sentence that compares, every caption and formula, is held by something."""

import json

import pytest
from notebook_cells import ROOT, chapters

import held

CELL = "sent = count(4)\nprint(sent)\nassert sent[0] == 3 * sent[1]"


def notebook(page):
    return json.loads(chapters()[page].read_text("utf-8"))


@pytest.mark.parametrize("page", chapters())
def test_nothing_that_a_chapter_says_is_open(page):
    found = held.open_sentences(notebook(page), held.register(page))
    assert not found, "\n".join(f"{text} ({why})" for text, why in found)


@pytest.mark.parametrize("page", chapters())
def test_each_entry_holds_a_sentence_by_something_that_is_there(page):
    problems = held.stale(notebook(page), held.register(page))
    assert not problems, "\n".join(problems)


def test_every_register_is_a_chapters():
    names = {path.stem for path in chapters().values()}
    registers = {path.stem for path in (ROOT / held.HELD).glob("*.yml")}
    pages = {path.removesuffix(".md") for path in held.PAGES}
    assert registers - names - pages - {"claims", "drawings"} == set()


def test_no_finding_of_the_ledger_is_open():
    found = held.open_findings(*held.ledger(), held.register("claims"))
    assert not found, "\n".join(f"{id}: {text} ({why})" for id, text, why in found)


def test_each_entry_holds_a_finding_of_the_ledger():
    problems = held.stale_findings(*held.ledger(), held.register("claims"))
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", held.PAGES)
def test_what_the_readme_and_the_opening_page_say_is_held(name):
    text, entries = (ROOT / name).read_text("utf-8"), held.register(name)
    problems = held.stale_on_page(text, entries)
    found = [f"open: {sentence}" for sentence in held.open_on_page(text, entries)]
    assert not problems + found, "\n".join(problems + found)


# Below: what the check finds, on a chapter made here.


def chapter(text, caption=None, tags=(), output="[6, 2, 2, 2]"):
    figure = {"mystnb": {"figure": {"caption": caption}}} if caption else {}
    stored = [{"output_type": "stream", "name": "stdout", "text": output}]
    return {
        "cells": [
            {"cell_type": "markdown", "source": text, "metadata": {}},
            {
                "cell_type": "code", "source": CELL, "outputs": stored,
                "metadata": {"tags": [*tags], **figure},
            },
            {
                "cell_type": "markdown", "metadata": {},
                "source": "## Exercises\nMore than 99?",
            },
        ]
    }  # fmt: skip


@pytest.mark.parametrize("text", [
    "Device 0 sends more than the others.",
    "They are equally fast, and as large as before.",
    "It sends 7 arrays.",
    "It sends eight arrays.",
    "| ring | $2(k-1)$ |",
    "$$\nT = 2k\n$$",
    "- Its time grows with k.",
    "## Two devices are slower",
])  # fmt: skip
def test_what_must_be_held_is_open_without_an_entry(text):
    nb = chapter(text)
    ((sentence, _),) = held.open_sentences(nb, [])
    entry = {"says": sentence, "by": "assert sent[0] == 3 * sent[1]"}
    assert held.open_sentences(nb, [entry]) == held.stale(nb, [entry]) == []


@pytest.mark.parametrize("text", [
    "Device 0 sends 6 arrays, device 1 sends 2.",
    "All 3 of them, or all three.",  # as in the code
    "Which one sends more?",
    "Two devices are two contexts.",
    "See [this](more-than-7.md), `7 > 6`, and MXNet 1.9.1 of 2022.",
    "```\nmore than 7\n```",
    "<details>\nmore than 7\n</details>",
])  # fmt: skip
def test_what_need_not_be_held_is_not_open(text):
    assert held.open_sentences(chapter(text), []) == []


def test_a_number_is_looked_for_in_its_own_section():
    nb = chapter("## One\nIt sends 6.\n## Two")
    assert [text for text, _ in held.open_sentences(nb, [])] == ["It sends 6."]


def test_the_summary_may_take_its_numbers_from_the_whole_chapter():
    nb = chapter("It begins.")
    summary = {**nb["cells"][2], "source": "## Summary\n- It is 6."}
    nb["cells"].insert(2, summary)
    assert held.open_sentences(nb, []) == []


@pytest.mark.parametrize("wrong", ["less", "Device 1 sends more than the others."])
def test_a_changed_sentence_is_open_and_its_entry_stale(wrong):
    entry = {"says": "Device 0 sends more than the others.", "by": "print(sent)"}
    changed = chapter(wrong if " " in wrong else entry["says"].replace("more", wrong))
    assert held.open_sentences(changed, [entry])
    assert "no such sentence" in held.stale(changed, [entry])[0]


def test_a_caption_is_held_too():
    nb = chapter("A picture.", caption="Six bars.")
    assert held.open_sentences(nb, []) == [("Six bars.", "a caption")]


@pytest.mark.parametrize("entry, problem", [
    ({"by": "assert sent[0] == 4 * sent[1]"}, "no cell has"),
    ({"by": ""}, "no cell has"),
    ({"why": "so"}, "no reason"),
    ({}, "either by or why"),
    ({"by": "print(sent)", "why": "It is printed."}, "either by or why"),
])  # fmt: skip
def test_an_entry_that_holds_nothing_is_stale(entry, problem):
    nb = chapter("It is more than 2.")
    assert problem in held.stale(nb, [{"says": "It is more than 2.", **entry}])[0]


def test_an_output_holds_a_sentence_if_it_is_compared():
    entry = {"says": "It is more than 2.", "by": "[6, 2, 2, 2]"}
    assert held.stale(chapter(entry["says"]), [entry]) == []
    ignored = chapter(entry["says"], tags=["nbval-ignore-output"])
    assert held.stale(ignored, [entry])


def claim(finding):
    return [{"id": "S1", "verdict": "qualified", "chapter": "a", "finding": finding}]


@pytest.mark.parametrize("finding", ["It sends more.", "It sends 7."])
def test_a_finding_of_the_ledger_is_held_by_the_cells_of_its_claim(finding):
    notebooks = {"a": chapter("Text.", tags=["claim-S1"])}
    assert held.open_findings(claim("It sends 6."), notebooks, []) == []
    ((_, sentence, _),) = held.open_findings(claim(finding), notebooks, [])
    entry = {"claim": "S1", "says": sentence, "by": "[6, 2, 2, 2]"}
    assert held.open_findings(claim(finding), notebooks, [entry]) == []
    assert held.stale_findings(claim(finding), notebooks, [entry]) == []


def test_an_entry_for_the_ledger_can_be_stale():
    notebooks = {"a": chapter("Text.", tags=["claim-S1"])}
    good = {"claim": "S1", "says": "It sends more.", "by": "print(sent)"}
    for change in ({"by": "print(8)"}, {"why": "so"}, {"says": "It sends less."}):
        entries = [{**good, **change}]
        assert len(held.stale_findings(claim(good["says"]), notebooks, entries)) == 1


def test_the_words_in_the_drawings_are_those_that_were_read_with_their_chapters():
    assert held.register("drawings") == held.words_drawn()


def test_a_page_without_cells_is_held_by_a_piece_of_a_file():
    text = "It is faster.\n\n```bash\nless\n```\n<!-- The map: x -->\nmore\n"
    text += "<!-- The map ends. -->\n"
    good = {"says": "It is faster.", "by": "README.md: # Many Devices, One Model"}
    assert held.open_on_page(text, []) == ["It is faster."]
    assert held.open_on_page(text, [good]) == held.stale_on_page(text, [good]) == []
    for wrong in ({"by": "README.md: # No Device"}, {"by": "README.md: "},
                  {"by": "NO.md: # Many"}, {"why": "so"}, {"says": "It is slower."}):
        entry = {k: v for k, v in good.items() if k != "by" or "why" not in wrong}
        assert len(held.stale_on_page(text, [{**entry, **wrong}])) == 1
