"""syncd/page/web/templates.py: text of notes is never markup, and hides nothing."""

from __future__ import annotations

import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import TemplateNotFound, UndefinedError

from index.text.hidden_characters import find_hidden
from syncd.page.web.templates import (
    clock_time,
    excerpt,
    link,
    make_templates,
    mark_code,
    pack_path,
    time_taken,
    unpack_path,
)

TEMPLATES = make_templates()


def rendered(source, **values):
    return TEMPLATES.from_string(source).render(values)


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, attrs))

    def handle_data(self, data):
        self.text += data


@given(st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=60))
def test_any_text_stays_text(text):
    shown = rendered('<p title="{{ text }}">{{ text }}</p>', text=text)
    shown.encode()
    (tag,) = Tags(shown).tags
    assert tag[0] == "p"
    assert [name for name, _ in tag[1]] == ["title"]
    assert find_hidden(shown) == ()


def test_a_right_to_left_override_is_made_visible():
    assert "\u202e" not in rendered("{{ name }}", name="invoice\u202efdp.exe")


def test_the_templates_leave_no_value_out():
    with pytest.raises(UndefinedError):
        rendered("{{ missing }}")


def test_no_template_of_another_folder_is_read():
    with pytest.raises(TemplateNotFound):
        TEMPLATES.get_template("../static/style.css")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("run `memex serve` now", "run <code>memex serve</code> now"),
        ("`<b>` and <b>", "<code>&lt;b&gt;</code> and &lt;b&gt;"),
        ("one ` alone", "one ` alone"),
        ("", ""),
    ],
)
def test_backticks_mark_code(text, shown):
    assert str(mark_code(text)) == shown


@pytest.mark.parametrize(
    ("query", "address"),
    [
        ({"path": "a b/ü&x=1#y.md"}, "/note?path=a+b%2F%C3%BC%26x%3D1%23y.md"),
        ({"path": "x\udcff.md"}, "/note?path=x%FF.md"),
        ({"tag": ["a", "b"], "folder": "", "agent": None}, "/note?tag=a&tag=b"),
        ({}, "/note"),
    ],
)
def test_addresses_are_encoded(query, address):
    assert link("/note", **query) == address


def test_a_time_of_today_is_short_and_another_has_its_date():
    assert len(Tags(str(clock_time(time.time_ns() // 1_000_000))).text) == len("12:34")
    assert Tags(str(clock_time(1_700_000_000_000))).text.startswith("2023-11-1")


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize(("at", "shown"), [(-62_135_596_800_000, "0001-01-01"), (253_402_300_799_999, "9999-12-31")])
def test_a_date_at_the_end_of_the_calendar_is_shown_in_every_zone(monkeypatch, zone, at, shown):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert Tags(str(clock_time(at))).text.startswith(shown)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_time_taken_has_tenths_of_a_second_below_a_minute():
    assert [time_taken(seconds) for seconds in (0, 0.04, 0.05, 12, 59.9, 60, 3_700)] == [
        "< 0.1 s", "< 0.1 s", "0.1 s", "12.0 s", "59.9 s", "1 min", "1 h",
    ]  # fmt: skip


def test_an_excerpt_is_one_line():
    assert excerpt("a\n  b  c", 10) == "a b c"
    assert excerpt("abcdefghij", 5) == "abcd…"


@pytest.mark.parametrize("path", ["a b/ü.md", "Zero\u200bwidth \u202e.md", "bad\udcff.md", "50% + {x}.md"])
def test_a_path_survives_a_form_field(path):
    packed = pack_path(path)
    assert packed.isascii()
    assert " " not in packed
    assert unpack_path(packed) == path


def test_a_verbatim_text_is_escaped_and_keeps_its_hidden_characters():
    shown = rendered("{{ text | verbatim }}", text="<b>\u200b")
    assert shown == "&lt;b&gt;\u200b"


def test_a_cut_list_of_withheld_notes_says_how_many_follow():
    source = '{% from "share_lists.html" import withheld %}{{ withheld(reasons, 2) }}'
    shown = rendered(source, reasons=dict.fromkeys(["a.md", "b.md", "c.md"], "private"))
    assert ("b.md" in shown, "c.md" in shown, "and 1 more note" in shown) == (True, False, True)
