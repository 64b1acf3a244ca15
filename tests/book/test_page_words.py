"""What a page says about itself to search engines and messengers."""

from pathlib import Path

import pages
import pytest

SENTENCE = "Sixty letters are the least that a description of a page has here."


@pytest.mark.parametrize("text, description", [
    ("One page.", "One page."),
    (f"{SENTENCE} " * 5, f"{SENTENCE} {SENTENCE}"),
    ("word, " * 60, "word, " * 32 + "word…"),
])
def test_a_long_text_is_cut_after_a_sentence_or_else_a_word(text, description):
    assert pages.shortened(text) == description


def test_without_a_published_address_there_is_no_picture():
    tags = pages.metatags('A "page"', "Book", "About it.", "a.html", "")
    assert 'og:title" content="A &quot;page&quot;"' in tags
    assert "og:image" not in tags and "og:url" not in tags


@pytest.mark.parametrize("base", ["https://a.org/book", "https://a.org/book/"])
def test_a_published_page_has_a_picture_by_its_full_address(base):
    tags = pages.metatags("A", "Book", "About it.", "chapters/a.html", base)
    assert 'og:url" content="https://a.org/book/chapters/a.html"' in tags
    assert 'og:image" content="https://a.org/book/_static/card.png"' in tags
    assert 'twitter:card" content="summary_large_image"' in tags


def test_the_picture_has_the_size_that_is_said():
    size = (Path(__file__).parents[2] / "_sphinx/static/card.png").read_bytes()[16:24]
    assert [int.from_bytes(size[i : i + 4], "big") for i in (0, 4)] == [1200, 630]


def test_a_heading_cell_without_words_is_no_heading():
    html = '<th class="head"><p></p></th><th class="head"><p>A</p></th>'
    for pattern, replacement in pages.MENDED:
        html = pattern.sub(replacement, html)
    assert html == '<td></td><th class="head"><p>A</p></th>'


def test_what_a_cell_prints_may_wrap_on_a_phone_unless_it_is_a_table():
    def printed(text):
        return f'<div class="output stream hl"><div><pre>{text}</pre></div></div>'

    words = printed("one  line\nand <b>another</b>")
    table = printed("a  1\nbb <b> 2</b>")
    both = pages.with_prose(words + table + words)
    assert both.count('stream hl prose"') == 2
    assert pages.with_prose(table) == table


def test_a_badge_above_a_result_says_when_it_was_recorded():
    printed = '<div class="output stream hl"><pre><span></span>{}</pre></div>'
    line = "Source: recorded on 2026-11-22 at commit ed643e9, 2 cores (too long)"
    both = pages.with_badges(printed.format(f"a\n{line}\nb\n") + printed.format("c\n"))
    assert both == (
        '<p class="recorded"><b>Recorded</b> on 2026-11-22 at commit ed643e9, 2 cores '
        "(too long)</p>" + printed.format("a\nb\n") + printed.format("c\n")
    )
