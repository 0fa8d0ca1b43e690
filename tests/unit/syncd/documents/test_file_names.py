"""What stored files are called, and which files of the inbox are read without having been uploaded."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.names import fold
from syncd.documents.file_names import (
    CONFLICT_COPY,
    free_name,
    known_ending,
    last_name,
    link_to,
    node_name,
    note_folder,
    numbered_names,
    rename_instruction_file,
    stored_name,
    uploaded_note_name,
    why_not_imported,
)
from syncd.documents.file_types import SUFFIXES
from syncd.vault.path_rules import is_note, objection
from tests.support.sample_secrets import SECRETS

PDF, TEXT, MARKDOWN = SUFFIXES[".pdf"], "text/plain", "text/markdown"
PIECES = st.sampled_from(
    ["report", " ", ".", "..", "/", "\\", "con", "aux.pdf", ".pdf", ".PDF", ".md", ".tar.gz", "~", "#", "[[x]]", "|", "^", ":",
     "\u202e", "\0", "\n", "\ud800", "é", "e\u0301", "日本語", "🙂" * 30, "x" * 90, " 2", ".sync-conflict-20261120-101010-ABCDEFG",
     "..%2f", "C:\\x\\", "-", "_conflict-20261120-101010", " (conflicted copy)", "\u00a0", "\ufeff", "AKIA", "$", "%"]
)  # fmt: skip
NAMES = st.one_of(st.lists(PIECES, max_size=8).map("".join), st.text(max_size=60))


@given(NAMES, st.sampled_from([*SUFFIXES.values(), ""]))
def test_every_given_name_becomes_one_that_everything_can_hold(given_name, media_type):
    name = stored_name(given_name, media_type)
    path = f"Captures/default/Files/{name}"
    assert objection(path, new=True) == ""
    assert objection(f"{path}.md", new=True) == ""
    assert not is_note(name)
    assert known_ending(name)
    assert link_to(path) == f"[[{path}]]"
    assert not CONFLICT_COPY.search(name)
    assert not CONFLICT_COPY.search(f"{name}.md")
    assert stored_name(name, media_type) == name
    assert why_not_imported(path, 1, most=10, inbox="Captures") == ""


@given(NAMES)
def test_every_given_name_of_a_note_becomes_one_that_a_link_can_name(given_name):
    name = uploaded_note_name(given_name)
    path = f"Captures/default/Files/{name}.md"
    assert objection(path, new=True) == ""
    assert link_to(path) == f"[[{path}]]"
    assert not name.lower().endswith(".md")
    assert not CONFLICT_COPY.search(f"{name}.md")


@given(NAMES, st.sampled_from([*SUFFIXES.values()]))
def test_the_names_to_choose_from_are_all_different_and_all_good(given_name, media_type):
    name = stored_name(given_name, media_type)
    found = list(itertools.islice(numbered_names(name, known_ending(name)), 1200))
    assert len({fold(one) for one in found}) == 1200
    assert found[0] == name
    for one in (found[1], found[-1]):
        assert objection(f"Files/{one}.md", new=True) == ""
        assert known_ending(one) == known_ending(name)


@pytest.mark.parametrize(
    ("given_name", "media_type", "stored"),
    [
        ("report.pdf", PDF, "report.pdf"),
        ("C:\\Users\\Ada\\report.PDF", PDF, "report.PDF"),
        ("../../../etc/passwd", TEXT, "passwd.txt"),
        ("Files/", TEXT, "Files.txt"),
        ("", TEXT, "File.txt"),
        ("..", PDF, "File.pdf"),
        (".pdf", PDF, "pdf.pdf"),
        ("README", TEXT, "README.txt"),
        ("report", PDF, "report.pdf"),
        ("report.final.v2.pdf", PDF, "report.final.v2.pdf"),
        ("invoice.pdf.exe", PDF, "invoice.pdf.exe.pdf"),
        ("long.md", MARKDOWN, "long.md.txt"),
        ("notes.markdown", MARKDOWN, "notes.markdown.txt"),
        ("CON.pdf", PDF, "CON note.pdf"),
        ("opencode.json", "application/json", "opencode note.json"),
        ("llms.txt", "text/plain", "llms note.txt"),
        (".mcp.json", "application/json", "mcp.json"),
        ("a#b|c[d].pdf", PDF, "a b c d.pdf"),
        ("e\u0301t\u00e9.pdf", PDF, "\u00e9t\u00e9.pdf"),
        ("x" * 300 + ".pdf", PDF, "x" * 80 + ".pdf"),
        ("plan.sync-conflict-20261120-101010-ABCDEFG.pdf", PDF, "plan.pdf"),
        ("fdp\u202e.pdf", PDF, "fdp.pdf"),
    ],
)  # fmt: skip
def test_what_a_file_is_called(given_name, media_type, stored):
    assert stored_name(given_name, media_type) == stored


@pytest.mark.parametrize(
    ("name", "renamed"),
    [("opencode.json", "opencode note.json"), ("CLAUDE.md", "CLAUDE note.md"), ("plan [1].pdf", "plan [1].pdf")],
)
def test_an_instruction_file_is_renamed_and_no_other(name, renamed):
    assert rename_instruction_file(name) == renamed


@given(st.sets(st.integers(2, 40)), st.integers(0, 5_000))
def test_a_free_name_is_new_and_found_with_few_looks_among_many_taken_names(others, many):
    taken = {"rover", *(f"rover {number}" for number in (*others, *range(2, many)))}
    looks = []
    name = free_name("Rover", 0, lambda folded: looks.append(folded) or folded in taken)
    assert name.casefold() not in taken
    number = int(name.partition(" ")[2])
    assert number == 2 or f"rover {number - 1}" in taken
    assert len(looks) < 40


def test_a_secret_in_a_name_does_not_go_where_names_go():
    secret = next(iter(SECRETS.values())) if isinstance(SECRETS, dict) else SECRETS[0][1]
    assert secret not in stored_name(f"key {secret}.pdf", PDF)
    assert secret not in uploaded_note_name(f"key {secret}.md")


@pytest.mark.parametrize("name", ["password: {}", "AWS_SECRET_ACCESS_KEY={}", 'api_key="{}"'])
def test_a_name_is_judged_with_the_signs_that_no_file_name_has(name):
    value = "ymwgnKR5BLmFg8Qys+FbuN3z5sbkm2uZKYivBnrR"
    for stored in (
        stored_name(name.format(value), PDF),
        uploaded_note_name(name.format(value)),
        node_name(name.format(value)),
    ):
        assert value[:12] not in stored


@pytest.mark.parametrize(
    ("given_name", "stem"),
    [("x.md", "x"), ("x.MD", "x"), ("x.markdown", "x"), ("x", "x"), ("x.md.md", "x"), ("a/b\\c d.md", "c d"), (".md", "md"), ("", "Note")],
)  # fmt: skip
def test_what_an_uploaded_note_is_called(given_name, stem):
    assert uploaded_note_name(given_name) == stem


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("a/b/report.pdf", "report.pdf"),
        ("C:\\x\\report 2.pdf", "report 2.pdf"),
        ("tab\there\n.pdf", "tab here .pdf"),
        ("x" * 400, "x" * 300),
    ],
)
def test_a_title_is_the_last_name_in_a_line(given_name, name):
    assert last_name(given_name) == name


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("Captures/default/a.pdf", "Captures/default/Files"),
        ("Captures/default/x/y/a.pdf", "Captures/default/x/y/Files"),
        ("Captures/default/Files/a.pdf", "Captures/default/Files"),
        ("Captures/default/Files/2026/Q3/a.pdf", "Captures/default/Files"),
        ("Captures/default/x/Files/y/a.pdf", "Captures/default/x/Files"),
        ("Captures/default/Entities/a.pdf", "Captures/default/Files"),
        ("Captures/Files/a.pdf", "Captures/Files/Files"),
        ("Captures/default/Old: notes/[x]/a.pdf", "Captures/default/Old: notes/[x]/Files"),
    ],
)
def test_where_the_note_of_a_dropped_file_goes(path, folder):
    assert note_folder(path, "Captures") == folder
    assert note_folder(f"Deep/{path}", "Deep/Captures") == f"Deep/{folder}"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("Captures/default/a.pdf", ""),
        ("Captures/default/Files/a.pdf", ""),
        ("Captures/default/Entities/a.docx", ""),
        ("Captures/work/alpha/x/a.CSV", ""),
        ("Captures/default/a.zip", None),
        ("Captures/default/a", None),
        ("Captures/default/.pdf", None),
        ("Captures/a.pdf", None),
        ("Captures/Reports/a.pdf", None),
        ("Projects/a.pdf", None),
        ("Captures/default/a.pdf.part", None),
        ("Captures/default/a.pdf.crdownload", None),
        ("Captures/default/a.pdf.tmp", None),
        ("Captures/default/~$a.docx", None),
        ("Captures/default/a.pdf.download/a.pdf", None),
        ("Captures/default/a.sync-conflict-20261120-101010-ABCDEFG.pdf", "sync program"),
        ("Captures/default/a#1.pdf", "a link can't contain"),
        ("Captures/default/[old]/a|b.pdf", "a link can't contain"),
        ("Captures/default/big.pdf", "too large"),
    ],
)
def test_which_files_of_the_inbox_become_documents(path, why):
    found = why_not_imported(path, 11 if "big" in path else 10, most=10, inbox="Captures")
    assert found is why or (why and why in found)
