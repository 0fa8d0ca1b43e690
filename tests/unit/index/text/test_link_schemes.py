"""Links that lead elsewhere than to the web, to mail or to a note: which are found, and what is left of them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.text.link_schemes import DEFECT, MOST, drop_forbidden, find_unsafe, link_defects

UNSAFE = {
    "[t](javascript:alert(1))": ("javascript",),
    "[t](JAVA&Tab;script&colon;x) and ![i](data:text/html,x)": ("data", "javascript"),
    "[report](file:///C:/Windows/System32/cmd.exe)": ("file",),
    "[r]: shell:startup": ("shell",),
    "<obsidian://advanced-uri?eval=x>": ("obsidian",),
    "<a href='ms-msdt:/id x'>t</a>": ("ms-msdt",),
    "[t](//host/share) [u](\\\\\\\\host\\share)": ("//",),
    "---\nurl: Obsidian://shell-commands/?execute=x\n---\nsee smb://host/x": ("obsidian", "smb"),
    f"[t]({'x' * 40}:y)": ("?",),
}
SAFE = [
    "[t](https://e.example/a:b) <mailto:a@b.example> [[Note#x:y]] ![[a.png]] [u](a/b.md) [v](#h)",
    "postgres://db, JavaScript: a book, profile://x, obsidian and file: x, std::move, 12:30, call f[i](x: int)",
    "[INFO]: error: the disk is full\n\n[^1]: note: see there",
    "",
]  # fmt: skip


@pytest.mark.parametrize("text", UNSAFE)
def test_the_schemes_of_unsafe_links_are_found(text):
    assert find_unsafe(text) == UNSAFE[text]
    (defect,) = link_defects(text)
    assert str(defect).startswith(f"{DEFECT}: {', '.join(UNSAFE[text])}: the note contains links")


@pytest.mark.parametrize("text", SAFE)
def test_other_links_and_words_are_not_found(text):
    assert (find_unsafe(text), link_defects(text), drop_forbidden(text)) == ((), (), text)


def test_no_more_schemes_are_named_than_a_person_reads():
    assert len(find_unsafe("".join(f"[t](scheme-{number}:x) " for number in range(100)))) == MOST


@given(
    st.lists(st.sampled_from([*UNSAFE, *SAFE, "](", "<", "<a href=", "b:", "[a]: ", " ", "\n", ")"]), max_size=8).map(
        "".join
    )
)
def test_a_text_in_which_nothing_is_found_keeps_every_link(text):
    assert find_unsafe(text) or drop_forbidden(text) == text


def test_no_text_takes_long():
    begun = time.process_time()
    for text in ("file://" * 20_000, "](" * 20_000, "<a:" * 20_000, "<a href=" * 10_000, "[a](b:" * 10_000):
        find_unsafe(text)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("count", [1, 2, 5, 40])
@pytest.mark.parametrize("inner", ["<file:x", "<javascript:y"])
def test_no_autolink_becomes_live_when_the_ones_inside_are_escaped(count, inner):
    text = f"See <javascript:alert(1)//{inner * count}> and <https://example.org/>."
    safe = drop_forbidden(text)
    assert (find_unsafe(safe), drop_forbidden(safe)) == ((), safe)
    assert safe == f"See {text[4:].partition(' ')[0].replace('<', '&lt;')} and <https://example.org/>."


@pytest.mark.parametrize("text", ["<javascript:a<1>", "<file:a<https://b>", "<file:a <b>", "a < file:b > c"])
def test_what_is_no_autolink_stays(text):
    assert drop_forbidden(text) == text
