"""What an agent may propose for a note: its text and its own properties, and nothing that Memex or the owner decides about."""

from __future__ import annotations

import pytest

from index.errors import InvalidArgument, ResourceExhausted
from syncd.changes.proposed_text import ChangeRequest, decided_properties, propose_text

NOTE = "---\nid: x\nstatus: open # for now\nshare: true\n---\n# Plan\n\nOne\nTwo\n"
BODY = "# Plan\n\nOne\nTwo\n"


@pytest.mark.parametrize(
    ("current", "request_", "proposed"),
    [
        pytest.param(NOTE, ChangeRequest(text=f"{BODY}Three\n"), f"{NOTE}Three\n", id="a text"),
        pytest.param(NOTE, ChangeRequest(patch="@@ -3 +3 @@\n-One\n+1\n"), NOTE.replace("One", "1"), id="a patch"),
        pytest.param(NOTE, ChangeRequest(properties={"status": "done"}), NOTE.replace("open", "done"), id="a property"),
        pytest.param(
            NOTE,
            ChangeRequest(properties={"status": None}),
            NOTE.replace("status: open # for now\n", ""),
            id="one removed",
        ),
        pytest.param(
            BODY, ChangeRequest(properties={"tags": ["a"]}), f"---\ntags:\n  - a\n---\n{BODY}", id="the first one"
        ),
        pytest.param(
            NOTE.replace("\n", "\r\n"),
            ChangeRequest(text=f"{BODY}Three\n"),
            f"{NOTE}Three\n".replace("\n", "\r\n"),
            id="line ends of Windows",
        ),
        pytest.param(
            BODY,
            ChangeRequest(text="# Plan\rOne\r\nTwo\r"),
            "# Plan\nOne\nTwo\n",
            id="line ends of old Macs in the new text",
        ),
        pytest.param("\ufeffone\n", ChangeRequest(text="two\n"), "\ufefftwo\n", id="a byte order mark"),
        pytest.param("---\na: 1\n---", ChangeRequest(text="x\n"), "---\na: 1\n---\nx\n", id="a note without text"),
    ],
)
def test_what_is_not_named_keeps_its_bytes(current, request_, proposed):
    assert propose_text(current, request_) == proposed


@pytest.mark.parametrize(
    "key", ["share", "Share", "s\u200bhare", "id", "type", "created_at", "promote", "publish", "dg-publish"]
)
def test_an_agent_proposes_no_property_that_others_decide_about(key):
    with pytest.raises(InvalidArgument, match="not yours to propose"):
        propose_text(NOTE, ChangeRequest(properties={key: True}))


@pytest.mark.parametrize("current", [NOTE, BODY, ""])
@pytest.mark.parametrize("way", ["text", "patch"])
def test_no_text_brings_properties_of_its_own(current, way):
    front = "---\nshare: true\n---\n"
    text = f"{front}mine\n"
    if way == "patch":
        text = "".join(["@@ -0,0 +1,3 @@\n", *(f"+{line}\n" for line in front.splitlines())])
    with pytest.raises(InvalidArgument, match="must not begin with properties"):
        propose_text(current, ChangeRequest(**{way: text}))


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (ChangeRequest(), "nothing to change"),
        (ChangeRequest(text=BODY), "nothing to change"),
        (ChangeRequest(text=BODY.replace("\n", "\r\n")), "nothing to change"),
        (ChangeRequest(properties={"status": "open"}), "nothing to change"),
        (ChangeRequest(text="a", patch="b"), "not both"),
        (ChangeRequest(patch="@@ -1 +1 @@\n-One\n+Two\n-no\n"), "can't be applied"),
        (ChangeRequest(text="a\0"), "NUL"),
        (ChangeRequest(patch="@@ -3 +3 @@\n-One\n+1\r-Two\n"), "CR"),
        (ChangeRequest(text="\ud800"), "surrogate"),
        (ChangeRequest(properties={" ": 1}), "printable"),
        (ChangeRequest(properties={"a\nb": 1}), "printable"),
    ],
)
def test_a_change_that_can_not_be_proposed_is_refused_with_the_reason(request_, words):
    with pytest.raises(InvalidArgument, match=words):
        propose_text(NOTE, request_)


def test_a_huge_text_is_refused():
    with pytest.raises(ResourceExhausted):
        propose_text(NOTE, ChangeRequest(text="x" * 1_000_001))
    with pytest.raises(ResourceExhausted):
        propose_text(f"{NOTE}{'y' * 999_990}\n", ChangeRequest(patch=f"@@ -3 +3,2 @@\n One\n+{'x' * 100}\n"))


@pytest.mark.parametrize("current", ["a\0b", "a\rb\n", "a\r\r\n", b"\xff".decode("utf-8", "surrogateescape")])
def test_a_note_that_is_no_text_has_no_changes(current):
    with pytest.raises(InvalidArgument, match="not valid text"):
        propose_text(current, ChangeRequest(text="x"))


@pytest.mark.parametrize("front", ["---\na: [\n---\n", "---\na: 1\na: 2\n---\n", "---\n{a: 1}\n---\n"])
def test_properties_that_can_not_be_edited_are_refused(front):
    with pytest.raises(InvalidArgument, match="can't be changed so"):
        propose_text(f"{front}x\n", ChangeRequest(properties={"b": 1}))


def test_the_decided_properties_of_a_note():
    assert decided_properties(NOTE + "x") == {"id": "x", "share": True}
