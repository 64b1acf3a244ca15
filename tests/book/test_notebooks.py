"""Every chapter keeps the rules, and each rule finds what breaks it."""

import pytest
import rules_chapter
import rules_form
import rules_learning
import rules_stored
from doctored_chapters import BROKEN, good, text
from notebook_cells import PUZZLES, chapters, read, taking

MODULES = rules_stored, rules_chapter, rules_learning, rules_form
RULES = [rule for module in MODULES for rule in taking(module, "nb", "page")]
PAGE = "chapters/example"
#: What is asked of a chapter that teaches something; the page of puzzles does not.
TEACHING = {
    rules_chapter.ends_with_summary_and_exercises, rules_learning.asks_to_predict,
    rules_learning.sums_up_in_points,
}


@pytest.mark.parametrize("page", chapters())
def test_a_chapter_keeps_the_rules(page):
    nb = read(chapters()[page])
    problems = [
        f"{rule.__name__}: {problem}"
        for rule in RULES if not (page == PUZZLES and rule in TEACHING)
        for problem in rule(nb, page)
    ]
    assert not problems, "\n".join(problems)


# Below: each rule finds what breaks it, on a chapter made in memory.


def test_a_good_chapter_keeps_every_rule():
    assert broken(good()) == []


@pytest.mark.parametrize("rule", [rule.__name__ for rule in RULES])
def test_exactly_one_rule_finds_what_breaks_it(rule):
    nb = good()
    BROKEN[rule](nb)
    assert broken(nb) == [rule]


@pytest.mark.parametrize("start", ["\n", "\t", "file://"])
def test_a_path_of_a_machine_is_found_wherever_it_begins(start):
    nb = good()
    nb.cells[3].outputs = [text(f"read{start}/Users/ann/data.gz")]
    assert broken(nb) == ["names_no_path_of_a_machine"]


def broken(nb):
    """The names of the rules that a chapter breaks."""
    return [rule.__name__ for rule in RULES if [*rule(nb, PAGE)]]
