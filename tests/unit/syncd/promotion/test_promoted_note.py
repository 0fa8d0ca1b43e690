"""What a capture becomes in the vault proper: folder, name and text; and that the way back is exact."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from syncd.documents.owner_marks import read_marks
from syncd.notes.front_matter import FrontmatterError, decode, encode, read_properties, split
from syncd.promotion.promoted_note import (
    INBOX_ONLY,
    Problem,
    PromotionRule,
    candidate_names,
    check_folder,
    choose_folder,
    promote_text,
    promoted_name,
    refusal_reason,
    remove_mark,
    restore_capture,
    spell_like_existing,
    take_suggestions,
)
from tests.support.parsed_notes import parse

AT = 1_795_608_725_000  # 2026-11-25T12:12:05Z
GONE = {*INBOX_ONLY, "promoted_at"}
CAPTURE = (
    "---\nid: a1\ncreated_at: 2026-11-20T14:32:05.120Z\nsource: claude-code\ncollection: documents\n"
    "tags: [search, a/b]\n# mine\nversion: 3\npromote: true\npromote_to: 'Projects/Ideas'  # here\n"
    'suggested_links:\n  - "[[A]]"\n  - "[[B]]"\nproject: alpha\n---\nThe content, exactly.\n'
)


def note(text, path="Captures/default/Search notes.md"):
    return parse(encode(text), path, mtime_ms=0)


def test_only_the_documented_lines_change():
    assert promote_text(CAPTURE, AT) == (
        "---\nid: a1\ncreated_at: 2026-11-20T14:32:05.120Z\nsource: claude-code\n"
        "tags: [search, a/b]\n# mine\nproject: alpha\npromoted_at: 2026-11-25T12:12:05.000Z\n---\nThe content, exactly.\n"
    )


SUGGESTING = (
    "---\nid: a1\ntags: [search, a/b]\nsuggested_tags:\n  - heron\n  - Search\n  - pond\n"
    'suggested_links:\n  - "[[A]]"\n  - "[[Folder/B]]"\n---\nThe content.\n'
)


def test_only_the_suggestions_that_were_taken_are_in_the_note():
    text = promote_text(take_suggestions(SUGGESTING, ["pond", "Search", "[[Folder/B]]"]), AT)
    front, body = split(text)
    assert read_properties(front)["tags"] == ["search", "a/b", "pond"]
    assert body == "The content.\n\n[[Folder/B]]\n"
    assert "suggested" not in front
    assert "heron" not in text
    assert "[[A]]" not in text


def test_without_a_suggestion_no_byte_changes():
    assert take_suggestions(SUGGESTING, []) == SUGGESTING


@pytest.mark.parametrize(
    ("body", "becomes"),
    [
        ("", "[[A]] · [[Folder/B]]\n"),
        ("One.", "One.\n\n[[A]] · [[Folder/B]]\n"),
        ("One.\n\n", "One.\n\n[[A]] · [[Folder/B]]\n"),
        ("One.\r\nTwo.\r\n", "One.\r\nTwo.\r\n\r\n[[A]] · [[Folder/B]]\r\n"),
    ],
    ids=["no text", "no line end", "a blank line", "line ends of Windows"],
)
def test_links_become_the_last_line(body, becomes):
    text = SUGGESTING.replace("The content.\n", body)
    assert split(take_suggestions(text, ["[[A]]", "[[Folder/B]]"]))[1] == becomes


@pytest.mark.parametrize("taken", ["birds", "[[C]]", "", "[[A]]\n"])
def test_a_suggestion_that_the_capture_does_not_have_is_refused(taken):
    with pytest.raises(Problem, match="has no suggestion"):
        take_suggestions(SUGGESTING, [taken])


@pytest.mark.parametrize(
    "end",
    [
        "```\ncode\n",
        "<script>\nrun()\n",
        "<pre>\na\n\nb\n",
        "<!-- a\n",
        "%%\na\n",
        "$$\nx\n",
        "<div>\n<!-- a\n\n",
        "<?a\n",
        "added\n\n<script>\n",
    ],
)
def test_links_are_not_put_into_a_block_that_is_open(end):
    with pytest.raises(Problem, match="unclosed"):
        take_suggestions(f"{SUGGESTING}\n{end}", ["[[A]]"])


@pytest.mark.parametrize(
    "end",
    [
        "```\na\n```",
        "<script>\na\n</script>",
        "<div>\na",
        "<!-- a -->",
        "%% a %%",
        "$$\nx\n$$",
        "$$x$$",
        "- a",
        "> a",
        "costs $$ a lot",
        "added",
    ],
)
def test_links_follow_a_block_that_is_closed(end):
    assert split(take_suggestions(f"{SUGGESTING}\n{end}", ["[[A]]"]))[1].endswith(f"{end}\n\n[[A]]\n")


@pytest.mark.parametrize("value", ["x", '["[[A]]\\n---", "[[B|c]]", 3, "[[[D]]"]', "{a: 1}"])
def test_a_suggested_link_is_a_link_and_nothing_else(value):
    with pytest.raises(Problem):
        take_suggestions(f"---\nid: a1\nsuggested_links: {value}\n---\n", ["[[A]]\n---"])
    with pytest.raises(Problem):
        take_suggestions(f"---\nid: a1\nsuggested_links: {value}\n---\n", ["[[B|c]]"])


@pytest.mark.parametrize("end", ["\r", "\t", "\x1b", "\x85", "\u2028", "\u202e"])
def test_a_suggested_link_has_no_character_that_ends_its_line_or_turns_the_text(end):
    link = f"[[A{end}# B]]"
    text = f"---\nid: a1\nsuggested_links: [{json.dumps(link)}]\n---\n"
    with pytest.raises(Problem, match="has no suggestion"):
        take_suggestions(text, [link])


def test_the_way_back_leaves_the_tick_off():
    after = promote_text(CAPTURE, AT)
    assert (
        restore_capture(after, CAPTURE, after)
        == CAPTURE.replace("promote: true", "promote: false")
        == remove_mark(CAPTURE)
    )


def test_an_edited_note_keeps_its_edits_on_the_way_back():
    after = promote_text(CAPTURE, AT)
    edited = after.replace("exactly.", "and more.").replace("project: alpha", "project: beta")
    back = restore_capture(edited, CAPTURE, after)
    assert back.endswith("---\nThe content, and more.\n")
    said = read_properties(split(back)[0])
    assert said == read_properties(split(CAPTURE)[0]) | {"promote": False, "project": "beta"}


LINES = st.sampled_from(
    [
        "# a comment",
        "",
        "title:   'odd  quoting'   # kept",
        'summary: "a: b"',
        "tags: [ b , a ]",
        "tags:\n- one\n-   two # here",
        "n: 007",
        "aliases: >-\n  folded\n  text",
        'relations:\n  - target: "[[X]]"\n    tag: t',
        "collection: memory",
        "Collection: memory",
        "VERSION: 4",
        "promote: true",
        "Promote: true # tick",
        "promote:",
        "promoted: yes",
        "promote_to: Projects/A B",
        "Promote_To: >\n  Projects",
        "promoted_at: 2020-01-01",
        "promote_tomorrow: never",
        "review: later",
        "REVIEW:",
        "suggested_tags:\n    - a\n    # between\n    - b",
        "suggested_links: ['[[A]]',\n  '[[B]]']",
        "suggested_folder: |\n  Notes\n",
        "expires: 2027-01-01",
        "updated_at: 2026-11-20T14:32:05.120Z",
        'superseded_by: "[[New]]"',
        "x: {collection: memory, promote: true}",
        "text: |\n  promote: true\n  version: 2",
        "'version': 3",
        "café: ü",
    ]
)  # fmt: skip


@st.composite
def captures(draw):
    """Front matters as people write them, with every kind of line end, and a body."""
    lines = draw(st.lists(LINES, max_size=9))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    body = draw(st.sampled_from(["", "body", "body\n", "---\npromote: true\n---\n", "a\r\nb", "\n\n# x  "]))
    front = "\n".join(["---", "id: a1", *lines, "---"]) + draw(
        st.sampled_from(["", "\n"]) if not body else st.just("\n")
    )
    return draw(st.sampled_from(["", "\ufeff"])) + front.replace("\n", end) + body.replace("\n", end)


@given(captures())
@example(CAPTURE)
@example("---\nid: a\n---")
@example("---\nid: a\ncollection: memory\n# b\nCollection: memory\n# b\n# b\n---")
def test_a_promotion_changes_no_other_byte_and_is_undone_to_the_byte(text):
    try:
        after = promote_text(text, AT)
    except FrontmatterError:
        assume(False)
    front, body = split(text)
    assert split(after)[1] == body
    was, now = read_properties(front), read_properties(split(after)[0])
    kept = {key: value for key, value in was.items() if key.casefold() not in GONE}
    assert [(key, value) for key, value in now.items() if key.casefold() != "promoted_at"] == list(kept.items())
    # What is left are lines that were there, in their order, and one came: the time.
    left = [
        one for one in after.splitlines(keepends=True) if "promoted_at" not in one.casefold() and one.strip() != "---"
    ]
    there = iter(text.splitlines(keepends=True))
    assert all(one in there for one in left)
    remarks = [[one for one in said.splitlines() if one.startswith("#")] for said in (text, after)]
    assert remarks[0] == remarks[1]
    back = restore_capture(after, text, after)
    if any(key.casefold() == "promote" and value is True for key, value in was.items()):
        assert back == remove_mark(text)
        assert not read_marks(back).promote
        assert len(back.splitlines()) == len(text.splitlines())
    else:
        assert encode(back) == encode(text)


@given(st.binary(max_size=200))
def test_no_bytes_are_changed_without_a_word(raw):
    text = decode(raw)
    try:
        after = promote_text(text, AT)
    except FrontmatterError:
        return
    assert split(after)[1] == split(text)[1]
    assert encode(restore_capture(after, text, after)) == raw or read_marks(text).promote


@pytest.mark.parametrize(
    ("folder", "inbox"),
    [
        (one, "Captures")
        for one in ("/", "/etc", "..", "../x", "a/../b", "a//b", ".obsidian", "a/.git", ".trash/x", "a\\b", "a\nb")
    ]
    + [("Captures", "Captures"), ("captures/Reports", "Captures"), ("CAPTURES/x", "Captures"), ("A/b/c", "a/B")]
    + [("[[Projects]]", "Captures"), ("Projects/Note.md", "Captures"), ("-x", "Captures"), ("con", "Captures")]
    + [("a/\u202eb", "Captures"), ("a\0", "Captures"), ("x" * 300, "Captures"), (".g\u200cit", "Captures")],
)
def test_a_folder_that_can_not_be_is_refused(folder, inbox):
    with pytest.raises(Problem):
        check_folder(folder, inbox)


def test_folders_as_people_write_them():
    assert check_folder(" Projects/Ideas/ ", "Captures") == "Projects/Ideas"
    assert check_folder("", "Captures") == ""
    assert check_folder("Captures2", "Captures") == "Captures2"
    assert spell_like_existing("projects", ["Daily", "Projects"]) == "Projects"
    assert spell_like_existing("projects", ["Projects", "projects"]) == "projects"
    assert spell_like_existing("new", ["Projects"]) == "new"


RULES = [
    PromotionRule("Search", tag="search", source="codex"),
    PromotionRule("Tagged", tag="#A", name="{date} {title}"),
    PromotionRule("All"),
]


@pytest.mark.parametrize(
    ("front", "to", "rules", "found"),
    [
        pytest.param("promote_to: Ideas\ntags: [a/b]", None, RULES, ("Ideas", "X", "you"), id="the person's word"),
        pytest.param("promote_to: Ideas", "There", RULES, ("There", "X", "you"), id="a command before it"),
        pytest.param("tags: [a/b]", None, RULES, ("Tagged", "1970-01-01 X", "rule"), id="a rule, by a tag above"),
        pytest.param("tags: [search]\nsource: Codex", None, RULES, ("Search", "X", "rule"), id="all of a rule's words"),
        pytest.param("tags: [search]", None, RULES[:2], ("Notes", "X", "setting"), id="not all of them"),
        pytest.param("suggested_folder: Guess", None, RULES, ("All", "X", "rule"), id="a rule before a suggestion"),
        pytest.param("suggested_folder: Guess", None, RULES[:2], ("Guess", "X", "suggestion"), id="a suggestion"),
        pytest.param("x: 1", None, (), ("Notes", "X", "setting"), id="the setting"),
        pytest.param("collection: memory", None, [PromotionRule("M", collection="Memory")], ("M", "X", "rule"), id="a collection"),
        pytest.param("x: 1", None, [PromotionRule("W", workspace="work")], ("Notes", "X", "setting"), id="another workspace"),
    ],
)  # fmt: skip
def test_where_a_capture_goes(front, to, rules, found):
    text = f"---\nid: a\n{front}\n---\nbody\n"
    capture = note(text, "Captures/default/X.md")
    folder, by, template = choose_folder(capture, read_marks(text), rules, folder="Notes", inbox="Captures", to=to)
    assert (folder, promoted_name(capture, template or "{title}"), by) == found


@pytest.mark.parametrize(
    ("path", "title", "template", "found"),
    [
        ("Captures/default/Deploy checklist.md", "Deploy: checklist", "{title}", "Deploy checklist"),
        ("Captures/default/Deploy checklist 2.md", "Deploy checklist", "{title}", "Deploy checklist"),
        ("Captures/default/What a person calls it.md", "Deploy checklist", "{title}", "What a person calls it"),
        ("Captures/default/X.md", None, "{date} {source} {title}", "1970-01-01 X"),
        ("Captures/default/X.md", None, "{source}", "X"),
        ("Captures/default/" + "long " * 30 + "end.md", None, "{title}", "long " * 30 + "end"),
        ("Captures/default/X.md", "a/b: [c] #d", "{title}", "X"),
        ("Captures/default/CLAUDE note.md", "CLAUDE", "{title}", "CLAUDE note"),
        ("Captures/default/CLAUDE.md", "CLAUDE", "{title}", "CLAUDE note"),
        ("Captures/default/agents.md", None, "{title}", "agents note"),
        ("Captures/default/X.md", "X", "x.prompt", "x.prompt note"),
    ],
)
def test_the_name_of_the_note(path, title, template, found):
    text = "---\nid: a\n" + (f'title: "{title}"\n' if title else "") + "---\nbody\n"
    assert promoted_name(note(text, path), template) == found


def test_a_name_with_a_date_of_the_first_years_has_all_digits_of_the_year():
    text = "---\nid: a\ncreated_at: 0001-01-01\n---\nbody\n"
    assert promoted_name(note(text, "Captures/default/X.md"), "{date} {title}") == "0001-01-01 X"


def test_a_taken_name_gives_way():
    made = candidate_names("A", "A 2")
    assert [next(made) for _ in range(4)] == ["A", "A 2", "A 2", "A 3"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("---\nid: a\ntype: entity\n---\n", "graph"),
        ("---\nid: ''\n---\n", "`id`"),
        ("---\nid: a\nid: a\n---\n", "twice"),
        ("---\nid: a\nx: [\n---\n", "properties"),
        ("---\nid: a\nx\nbody", "closing"),
        ("---\nid: a\n---\n<<<<<<< a\n=======\n>>>>>>> b\n", "markers"),
        ("---\nid: a\n---\nthe key is ghp_a8Fk29dKq0Zx7Vb3Nm5Lp1Rt6Ys4Wc2Eh9Uj\n", "secret"),
        ("---\nid: a\nreview: a\nReview: b\n---\n", "spellings"),
        ("---\nid: a\n---\ncaf\udce9\n", "UTF-8"),
    ],
)
def test_what_stays_in_the_inbox(text, word):
    document = note(text)
    assert word in refusal_reason(document, read_marks(text))


def test_what_does_not_stay():
    document = note(CAPTURE)
    assert refusal_reason(document, read_marks(CAPTURE)) == ""
    assert refusal_reason(replace(document, writable=False), read_marks(CAPTURE))


@pytest.mark.parametrize(
    "given", [{"folder": "../x"}, {"folder": "a", "name": "{titel}"}, {"folder": "a", "name": "a/b"}]
)
def test_a_rule_that_can_not_be_is_refused(given):
    with pytest.raises(ValueError, match=r"folder|name"):
        PromotionRule(**given)
