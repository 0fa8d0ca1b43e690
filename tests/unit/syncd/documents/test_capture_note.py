"""syncd/documents/capture_note.py: what a capture becomes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import InvalidArgument
from index.names import fold
from index.query import tag_of
from syncd.documents.capture_note import automatic_title, split_metadata, title_of
from syncd.documents.file_names import free_name
from syncd.notes.front_matter import OWNED
from syncd.notes.timestamps import iso
from syncd.vault.location import check_workspace_name, namespace_path
from syncd.vault.path_rules import file_name, objection


@pytest.mark.parametrize(
    ("title", "name"),
    [
        pytest.param("Deploy checklist", "Deploy checklist", id="as it is"),
        pytest.param("a/b\\c: d? [[e]] #f ^g|h", "a b c d e f g h", id="nothing that breaks a path or a link"),
        pytest.param("../../.git/hooks/post-commit", "git hooks post-commit", id="no way out"),
        pytest.param(".hidden", "hidden", id="not hidden"),
        pytest.param("-rf", "rf", id="not an option"),
        pytest.param("CON", "CON note", id="a device"),
        pytest.param("con.txt", "con note.txt", id="a device with an ending"),
        pytest.param("com0", "com0 note", id="one that only new Windows knows"),
        pytest.param("LPT\u00b9.x", "LPT\u00b9 note.x", id="one by another digit"),
        pytest.param("conin$", "conin$ note", id="a console"),
        pytest.param("a\u202egnp.exe", "a gnp.exe", id="no bidi control"),
        pytest.param("会議メモ 2026年", "会議メモ 2026年", id="Japanese"),
        pytest.param("🍀 luck", "🍀 luck", id="emoji"),
        pytest.param("Cafe\u0301", "Café", id="composed"),
        pytest.param("Sync at 15:00: plan 1:1", "Sync at 15.00 plan 1 1", id="a time"),
        pytest.param("a\u00a0b", "a b", id="no-break space"),
        pytest.param("...", "", id="nothing left"),
    ],
)
def test_a_title_becomes_a_name_that_every_file_system_holds(title, name):
    assert file_name(title) == name


@given(st.text(st.characters(exclude_categories=()), max_size=300))
def test_no_text_escapes_through_a_name(title):
    name = file_name(title)
    assert len(name.encode()) <= 210
    assert name == name.strip()
    assert not set(name) & set('\\/:*?"<>|#^[]\n\r\0')
    assert not name.startswith((".", "-", "~"))
    assert file_name(name) == name
    device = file_name(f"com{len(title) % 10}.{title}")
    assert objection(f"{device}.md", new=True) == ""
    assert not name or objection(f"Captures/default/{name}.md", new=True) == ""


@pytest.mark.parametrize(
    ("content", "title"),
    [
        pytest.param("# Hybrid search\n\ntext", "Hybrid search", id="a heading"),
        pytest.param("\n\n- [ ] call the bank", "call the bank", id="a task"),
        pytest.param("> [!note] Weather\n> rain", "Weather", id="a callout"),
        pytest.param("see [[Projects/Rover|the rover]] today", "see the rover today", id="a link"),
        pytest.param("---\n***\nreal", "real", id="rules say nothing"),
        pytest.param("", "", id="empty"),
        pytest.param("???", "", id="punctuation only"),
        pytest.param("今日は雨。", "今日は雨。", id="Japanese"),
        pytest.param("## Summary\n\nThe west box needs a vent.", "The west box needs a vent.", id="no generic heading"),
        pytest.param("**Decision:**\n- use pnpm", "use pnpm", id="no generic label"),
        pytest.param("# Notes", "Notes", id="a generic heading alone"),
        pytest.param(
            "---\ndate: 2026-01-01\ntitle: West vent\n---\n# Intro", "West vent", id="a title among properties"
        ),
        pytest.param("---\ndate: 2026-01-01\n---\n# Intro", "Intro", id="no other properties"),
        pytest.param("[the manual](https://x.org/a) and `x`", "the manual and x", id="what a link shows"),
        pytest.param("https://x.org/a?b=c — two scans of the table;", "two scans of the table", id="no address"),
        pytest.param("https://www.x.org/docs/index.html", "x.org/docs/index.html", id="an address alone"),
        pytest.param("![logo](logo.png)\n\nThe Rover", "The Rover", id="no image"),
        pytest.param(
            '<p align="center">\n<!-- top -->\n%%draft%%\n# Rover', "Rover", id="no tag of HTML and no comment"
        ),
        pytest.param("```python\nimport os\n```", "import os", id="no fence"),
        pytest.param("#todo #work\nCall the bank", "Call the bank", id="no line of tags"),
        pytest.param("https://x.org/a\n#later", "x.org/a", id="an address before a line of tags"),
        pytest.param("![[scan.png]]", "scan.png", id="an image alone"),
        pytest.param("#todo #work", "todo #work", id="tags alone"),
        pytest.param(
            "Bob's birthday is on March 3rd. He likes dark chocolate and board games (Root, Brass Birmingham).",
            "Bob's birthday is on March 3rd.",
            id="the first sentence of a long line",
        ),
        pytest.param(
            "Decided to use PostgreSQL for the billing service because of its row-level locking and our experience.",
            "Decided to use PostgreSQL for the billing service",
            id="a long sentence up to a clause",
        ),
        pytest.param(
            "Wir haben beschlossen, den Abrechnungsdienst umzustellen, weil das Team damit mehr Erfahrung hat.",
            "Wir haben beschlossen, den Abrechnungsdienst umzustellen",
            id="a long sentence in German",
        ),
        pytest.param(
            "昨天我们决定在新的计费服务中使用关系数据库，因为它支持行级锁定，并且我们的团队对它有更多的经验，同时也因为它的许可证比较宽松，而且社区非常活跃。",
            "昨天我们决定在新的计费服务中使用关系数据库，因为它支持行级锁定，并且我们的团队对它有更多的经验，同时也因为它的许可证比较宽松",
            id="a long sentence whose characters take three bytes",
        ),
    ],
)
def test_the_first_line_that_says_something_is_the_title(content, title):
    assert title_of(content) == title


@pytest.mark.parametrize("joint", ["\\_", "&#95;", "_\u00ad", "_\u200b"])
def test_a_secret_that_markup_interrupts_is_in_no_title(joint):
    token = f"ghp{joint}aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5"
    assert automatic_title(f"# The *key* {token} & more", 0) == "The key github-token & more"


@pytest.mark.parametrize(
    "token", ["ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5", "ghp_**aB3dE5gH7jK9**mN1pQ3sT5vW7yZ9bC1dF3hJ5"]
)
@pytest.mark.parametrize("long", [1950, 1960, 1970, 1980])
def test_no_part_of_a_secret_at_the_end_of_what_is_read_is_in_a_title(token, long):
    title = title_of(f"Report https://x.org/{'a' * long} {token}")
    assert title.startswith("Report")
    assert "ghp_" not in title


def test_a_name_in_use_gets_a_number():
    taken = {fold("Rover"), fold("Rover 2")}
    assert free_name("rover", 0, taken.__contains__) == "rover 3"
    assert free_name("", 1_700_000_000_123, lambda _: False) == "Capture 2023-11-14 22.13.20"


@pytest.mark.parametrize(
    "key", [*sorted(OWNED - {"title", "tags"}), "Promote", "PROMOTE_TO", " review ", "\uff49\uff44"]
)
def test_a_key_that_memex_owns_is_refused_in_any_spelling(key):
    with pytest.raises(InvalidArgument, match="belongs to Memex"):
        split_metadata({key: "x"})


@pytest.mark.parametrize(
    "key", ["pro\u200bmote", "id\ufe0f", "\U000e0070review", "re\u00adview", "sugges\u2060ted_tags"]
)
def test_a_key_that_only_looks_like_one_that_memex_owns_is_refused(key):
    with pytest.raises(InvalidArgument, match="belongs to Memex"):
        split_metadata({key: "x"})


@pytest.mark.parametrize(
    "key", ["publish", "Publish", "pub\u200blish", "ｐｕｂｌｉｓｈ", "permalink", "dg-publish", "DG-Home", " dg-path "]
)
def test_a_key_that_says_what_is_published_is_refused_by_its_name(key):
    with pytest.raises(InvalidArgument, match="decides about publishing") as refused:
        split_metadata({"project": "x", key: True})
    assert refused.value.details["key"] == key


def test_keys_that_publish_nothing_are_taken():
    given_ = {"published": "2026-01-01", "publisher": "x", "cssclasses": ["wide"], "dgram": 1}
    assert split_metadata(given_)[0] == given_


def test_title_and_tags_may_come_in_metadata():
    rest, title, tags = split_metadata({"title": "T", "tags": ["#a b", "c", "c", ""], "project": "alpha"})
    assert (rest, title, tags) == ({"project": "alpha"}, "T", ("a-b", "c"))


def test_tags_in_one_text_are_parted_at_the_commas():
    assert split_metadata({"tags": "one, two words,,#three"})[2] == ("one", "two-words", "three")


@pytest.mark.parametrize("keys", [("Kind", "kind"), ("é", "e\u0301"), ("Straße", "STRASSE")])
def test_two_keys_for_one_property_are_refused(keys):
    with pytest.raises(InvalidArgument, match="one property in Obsidian"):
        split_metadata(dict.fromkeys(keys, "x"))
    assert split_metadata(dict.fromkeys(keys, "x"), twins=True)[0].keys() == set(keys)
    assert split_metadata({keys[0]: None, keys[1]: "x"})[0][keys[1]] == "x", "null removes a property"


@pytest.mark.parametrize("given_", [{"title": 3}, {"tags": [1]}, {"": 1}, {"a\nb": 1}, {"x" * 129: 1}])
def test_bad_metadata_is_refused(given_):
    with pytest.raises(InvalidArgument):
        split_metadata(given_)


@pytest.mark.parametrize(
    "name", ["", ".git", "../x", "a/b", "Reports", "archive", "entities", "FILES", "a\nb", "x" * 300, "CON"]
)
def test_a_workspace_can_not_have_such_a_name(name):
    with pytest.raises(InvalidArgument):
        check_workspace_name(name)


def test_namespaces_are_folders():
    assert namespace_path("default") == ""
    assert namespace_path("alpha/beta") == "alpha/beta"
    with pytest.raises(InvalidArgument):
        namespace_path("alpha/../beta")
    with pytest.raises(InvalidArgument):
        namespace_path("/".join("abcdefghi"))


def test_a_time_is_written_in_utc_with_milliseconds():
    assert iso(1_763_649_125_120) == "2025-11-20T14:32:05.120Z"


def test_a_tag_is_one_word():
    assert tag_of(" #machine learning, x ") == "machine-learning-x"
