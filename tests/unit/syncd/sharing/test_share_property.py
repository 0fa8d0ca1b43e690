"""The property `share`: which notes it withholds, and that everything unclear withholds too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.sharing.share_property import why_withheld
from tests.support.example_counts import examples


@pytest.mark.parametrize(
    "text",
    [
        "no properties\n",
        "",
        "---\ntags: [a]\n---\nshare: false\n",
        "---\nshare: true\n---\n",
        "---\nSHARE: true\n---\n",
        "---\nshare_link: https://example.org\n---\n",
        "\n---\nshare: false\n---\nBefore the first fence stands a line, so these are no properties.\n",
        "```\n---\nshare: false\n---\n```\n",
    ],
)
def test_a_note_that_says_nothing_against_it_is_not_withheld(text):
    assert why_withheld(text) == ""


@pytest.mark.parametrize(
    "front",
    [
        "share: false", "Share: false", "SHARE: False", "share: no", "share: off", "share: 0", "share:", "share: ''",
        "share: 'true'", "share: yes", "share: [true]", "share: {a: true}", "share: never", "'share': false",
        '"share\\u200b": false', "ｓhare: false", "share : false", "share: false\nshare: true", "share: true\nshare: true",
        "share: true\nSHARE: true", "share: true\nbroken: [", "broken: [", "{share: false}", "a: 1\n  share: false",
        "<<<<<<< ours\nshare: false\n=======\n>>>>>>> theirs", "share: !!bool true", "x: &a 1\ny: *a",
    ],
)  # fmt: skip
def test_everything_else_withholds_the_note(front):
    assert why_withheld(f"---\n{front}\n---\nbody\n")
    assert why_withheld(f"\ufeff---\r\n{front}\r\n---\r\nbody\r\n".replace("\n\n", "\n"))


@pytest.mark.parametrize(
    "text", ["---\nshare: false\nbody\n", "---\nother: 1\nbody without an end", "---\nx: \udce9\n---\n"]
)
def test_properties_that_cannot_be_read_withhold_the_note(text):
    assert why_withheld(text)


@pytest.mark.parametrize(
    "text",
    [
        "<<<<<<< ours\n---\nshare: false\n---\nbody\n=======\nbody\n>>>>>>> theirs\n",
        "<<<<<<< ours\n=======\n---\nshare: false\n---\n>>>>>>> theirs\nbody\n",
        "---\na: 1\n---\n<<<<<<< ours\nbody\n=======\nother\n>>>>>>> theirs\n",
    ],
)
def test_an_unfinished_merge_withholds_the_note(text):
    """One side of it may have the property where it counts as text."""
    assert why_withheld(text) == "it has an unfinished merge"


@given(st.text(), st.sampled_from(["share: false", "share: 0", "share:"]))
@examples(200)
def test_no_body_and_no_other_property_undoes_it(text, line):
    assert why_withheld(f"---\nother: 1\n{line}\nmore: 2\n---\n{text}")
