"""syncd/clients/entry_editor.py: an entry in TOML and in JSON; what would change other parts is refused."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import InvalidArgument
from syncd.clients.entry_editor import put_entry, read_entry, remove_entry

PATH = ("mcp_servers", "memex")
ENTRY = {"url": "http://127.0.0.1:8765/mcp/core", "http_headers": {"Authorization": "Bearer k"}}
FILE = """\
# my settings
model = "o9"   # the big one

[mcp_servers.docs]  # do not touch
command = "npx"
args = ["-y", "docs"]

[profiles.work]
model = "o9-mini"
"""


def test_a_toml_table_is_added_and_removed_with_every_comment_kept():
    added = put_entry(FILE, "toml", PATH, ENTRY)
    assert tomllib.loads(added) == tomllib.loads(FILE) | {
        "mcp_servers": {"docs": {"command": "npx", "args": ["-y", "docs"]}, "memex": ENTRY}
    }
    assert all(line in added for line in FILE.splitlines())
    assert read_entry(added, "toml", PATH) == ENTRY
    assert put_entry(added, "toml", PATH, ENTRY) == added
    assert tomllib.loads(remove_entry(added, "toml", PATH)) == tomllib.loads(FILE)
    assert remove_entry(FILE, "toml", PATH) == FILE


def test_toml_keeps_its_line_ends():
    text = FILE.replace("\n", "\r\n")
    added = put_entry(text, "toml", PATH, ENTRY)
    assert added == put_entry(FILE, "toml", PATH, ENTRY).replace("\n", "\r\n")
    assert "\n" not in remove_entry(added, "toml", PATH).replace("\r\n", "")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("[mcp_servers]\n", id="an empty table"),
        pytest.param('[mcp_servers]\nmemex = { url = "old", http_headers = {} }  # inline\n', id="inline"),
        pytest.param('mcp_servers = { docs = { url = "x" } }\n', id="all inline"),
        pytest.param('mcp_servers.docs.url = "x"\n', id="dotted"),
        pytest.param('[mcp_servers.a]\nurl = "1"\n[other]\nx = 1\n[mcp_servers.b]\nurl = "2"\n', id="out of order"),
        pytest.param(
            '[mcp_servers.memex]\nurl = "old"\n[mcp_servers.memex.http_headers]\nA = "b"\n[z]\ny = 1\n', id="nested"
        ),
        pytest.param("a = 1\r\n[mcp_servers.x]\r\nurl = 'y'\r\n", id="CRLF"),
    ],
)
def test_every_way_to_write_toml_is_edited_or_refused_and_never_spoilt(text):
    wanted = tomllib.loads(text)
    wanted.setdefault("mcp_servers", {})["memex"] = ENTRY
    try:
        edited = put_entry(text, "toml", PATH, ENTRY)
    except InvalidArgument as refusal:
        assert "can't edit" in refusal.message
        return
    assert tomllib.loads(edited) == wanted
    del wanted["mcp_servers"]["memex"]
    assert tomllib.loads(remove_entry(edited, "toml", PATH)).get("mcp_servers", {}) == wanted["mcp_servers"]


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        ("[mcp_servers", "toml"),
        (f"x = {'[' * 3000}{']' * 3000}", "toml"),
        ("x = 1\nx = 2\n", "toml"),
        ("{", "json"),
        ("[]", "json"),
    ],
)
def test_a_malformed_file_is_refused(text, syntax):
    for edit in (
        lambda: read_entry(text, syntax, PATH),
        lambda: put_entry(text, syntax, PATH, ENTRY),
        lambda: remove_entry(text, syntax, PATH),
    ):
        with pytest.raises(InvalidArgument):
            edit()


@pytest.mark.parametrize(("text", "syntax"), [("mcp_servers = 3\n", "toml"), ('{"mcp_servers": [1]}', "json")])
def test_something_else_in_the_place_of_the_servers_is_refused(text, syntax):
    with pytest.raises(InvalidArgument, match="mcp_servers"):
        put_entry(text, syntax, PATH, ENTRY)


@given(
    st.dictionaries(st.text(max_size=5), st.text(max_size=8) | st.lists(st.text(max_size=4), max_size=3), max_size=4)
)
def test_any_entry_reads_back_in_both_syntaxes(entry):
    for syntax in ("toml", "json"):
        text = put_entry("", syntax, PATH, entry)
        assert read_entry(text, syntax, PATH) == entry


FOLLOWED = """[mcp_servers.memex]
url = "http://127.0.0.1:1/mcp"

# [mcp_servers.old]
# url = "http://example.org"

[profiles.x]
model = "m"
"""


def test_comments_between_the_entry_and_what_follows_stay():
    edited = put_entry(FOLLOWED, "toml", PATH, ENTRY)
    assert [line for line in edited.splitlines() if line.startswith("#")] == [
        "# [mcp_servers.old]",
        '# url = "http://example.org"',
    ]
    assert read_entry(edited, "toml", PATH) == ENTRY and tomllib.loads(edited)["profiles"] == {"x": {"model": "m"}}
    with pytest.raises(InvalidArgument):
        remove_entry(FOLLOWED, "toml", PATH)
