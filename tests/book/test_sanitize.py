"""What nbval is told to overlook, and that it overlooks nothing else."""

import pytest
from sanitizer import sanitize

EXAMPLES = [
    ("[1. 2.] @cpu(0)", "[1. 2.] @device(0)"),
    ("[cpu(0), ctx=gpu(11)]", "[device(0), ctx=device(11)]"),
    ("gpu/1 worked", "device/1 worked"),
    ("cpu(0) (profile: no GPU found)", "device(0) (profile)"),
    ("<Block at 0x7f3a2c1d9e50>", "<Block at 0xADDRESS>"),
    ("<summary>Library source: f</summary>\n# a comment\n</details>\nb",
     "<summary>Library source</summary></details>\nb"),
    ("<summary>Solution: g</summary>\n# a comment\n</details>\nb",
     "<summary>Solution</summary></details>\nb"),
    ("Source: recorded on 2026-11-21\nb", "Source: (measured or recorded)\nb"),
]


@pytest.mark.parametrize(("stored", "compared"), EXAMPLES)
def test_a_pair_replaces_what_it_should(stored, compared):
    assert sanitize(stored) == compared


@pytest.mark.parametrize(
    "kept",
    ["0.9512", "(256, 1, 28, 28)", "cpu", "try_gpu(1)", "0xff", "profile: 3", "cpu(i)"],
)
def test_other_text_is_compared_as_it_is(kept):
    assert sanitize(kept) == kept


def test_different_devices_stay_different():
    assert sanitize("cpu(0)") == sanitize("gpu(0)") != sanitize("gpu(1)")
