"""What the parser makes of a note's properties and its place: title, id, times, tags, collection, metadata and defects."""

import pytest

from index.model import Link, Node
from syncd.documents.parser import metadata_of
from tests.support.parsed_notes import names, parsed


def test_the_title_is_the_property_then_the_name():
    assert parsed("# H", "a/My note.md").title == "My note"
    assert parsed("---\ntitle: 2024\n---\n").title == "2024"
    assert parsed("---\nTitle: Capital\n---\n").title == "Capital"
    assert parsed("---\ntype: entity\nname: 'a/b'\ntitle: t\n---\n").title == "a/b"
    assert parsed("", "Captures/w/Files/report.pdf.md").title == "report.pdf"


def test_an_id_is_the_text_as_it_is_written():
    assert parsed("---\nid: 007\n---\n").claimed_id == "007"
    assert parsed("---\nid: 12\n---\n").claimed_id == "12"
    for bad in ("a/b", "''", "-x", "[a]", "1.5", "x" * 65, "é"):
        document = parsed(f"---\nid: {bad}\n---\n")
        assert document.claimed_id is None
        assert names(document) == ["bad-id"]
    assert parsed("---\nid:\n---\n").defects == ()


@pytest.mark.parametrize(
    ("written", "time_ms"),
    [
        ("2026-11-20T14:32:05.120Z", 1795185125120),
        ("2026-11-20T14:32:05.120+09:00", 1795152725120),
        ("2026-11-20 14:32", 1795185120000),
        ("2026-11-20", 1795132800000),
        ("1795185125120", 1795185125120),
    ],
)
def test_a_time_is_read_in_every_common_form(written, time_ms):
    document = parsed(f"---\ncreated_at: {written}\nupdated_at: {written}\n---\n")
    assert (document.created_at, document.updated_at) == (time_ms, time_ms)


@pytest.mark.parametrize(
    "written",
    [
        *("2026-13-45", "soon", "2024", "[a]", "true", "9" * 30, "9999-12-31T23:59:59-14:00x"),
        *("9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"),  # in years that no calendar here has
    ],
)
def test_a_time_that_cannot_be_read_is_the_files_and_a_defect(written):
    document = parsed(f"---\ncreated_at: {written}\n---\n")
    assert document.created_at == 1_700_000_000_000
    assert names(document) == ["bad-date"]


@pytest.mark.parametrize(("written", "defects"), [("29/11/2026", ["bad-date"]), ("2026-11-29", []), ("", [])])
def test_an_expiry_that_is_no_date_is_a_defect_of_a_capture(written, defects):
    document = parsed(f"---\nexpires: {written}\n---\n", "Captures/default/a.md")
    assert names(document) == defects
    assert all("`expires`" in defect.detail for defect in document.defects)
    assert parsed(f"---\nexpires: {written}\n---\n", "Own.md").defects == ()  # a property of the owner's own


@pytest.mark.parametrize(
    ("front", "made"),
    [
        pytest.param("created: 2026-11-20\ndate: 2020-01-01", 1795132800000, id="created goes before date"),
        pytest.param("Date: 2026-11-20", 1795132800000, id="date alone, in any letter case"),
        pytest.param("created: yesterday\ndate: 2026-11-20", 1795132800000, id="what is no time is passed over"),
        pytest.param("created_at: 2026-11-20\ncreated: 2020-01-01", 1795132800000, id="created_at goes before all"),
        pytest.param("created: 202011200000", 1605830400000, id="a stamp of minutes is no epoch"),
        pytest.param("created: [a]\ndate:", 1_700_000_000_000, id="else it is the file's"),
    ],
)
def test_a_note_of_the_inbox_may_say_when_it_was_made_as_other_programs_do(front, made):
    document = parsed(f"---\n{front}\n---\n", "Captures/default/a.md")
    assert (document.created_at, document.defects) == (made, ())
    if "created_at" not in front:
        assert parsed(f"---\n{front}\n---\n", "Own.md").created_at == 1_700_000_000_000  # a date of the owner's own


@pytest.mark.parametrize(
    ("front", "collection", "defects"),
    [
        ("collection: memory", "memory", []),
        ("tags: [collection:workspace, a]", "workspace", []),
        ("collection: memory\ntags: [collection:workspace, a]", "workspace", ["two-collections"]),
        ("tags: [collection:workspace, a]\ncollection: memory", "memory", ["two-collections"]),
        ("collection: memory\ntags: [collection:memory]", "memory", []),
        ("collection: elsewhere", "documents", ["unknown-collection"]),
        ("a: b", "documents", []),
    ],
)
def test_a_document_is_in_exactly_one_collection(front, collection, defects):
    document = parsed(f"---\n{front}\n---\n", "Captures/w/a.md")
    assert document.collection == collection
    assert names(document) == defects
    assert not [tag for tag in document.tags if "collection" in tag]


def test_a_persons_own_word_collection_is_no_defect():
    assert parsed("---\ncollection: stamps\n---\n").defects == ()


def test_tags_are_gathered_without_repeats_and_tolerantly():
    assert parsed("---\ntags: [B, '#a', b/c]\n---\n#A #d #b").tags == ("B", "a", "b/c", "d")
    assert parsed("---\ntags: journal\n---\n").tags == ("journal",)
    assert parsed("---\nTAGS: x\n---\n").tags == ("x",)
    many = parsed("---\ntags: a, b c\n---\n")
    assert (many.tags, names(many)) == (("a", "b", "c"), ["tags-as-text"])
    odd = parsed("---\ntags: [two words, 1984]\n---\n")
    assert (odd.tags, names(odd)) == (("two words", "1984"), ["bad-tag", "bad-tag"])
    assert names(parsed("---\ntags: #x\n---\n")) == ["bad-tag"]


def test_old_names_of_tags_and_aliases_are_read_in_the_vault_only():
    front = "---\ntag: a\nalias: b\n---\n"
    old = parsed(front)
    assert (old.tags, old.aliases, names(old)) == (("a",), ("b",), ["deprecated-property"] * 2)
    capture = parsed(front, "Captures/w/a.md")
    assert (capture.tags, capture.aliases, capture.defects) == ((), (), ())


def test_metadata_is_what_memex_does_not_own_in_any_letter_case():
    front = "id: a\nPromote: true\nreview: x\nproject: alpha\naliases: [b]\nn: 1.10\ndeep: {a: [1]}"
    document = parsed(f"---\n{front}\n---\n", "Captures/w/a.md")
    assert document.metadata == {"project": "alpha", "aliases": ["b"], "n": "1.10", "deep": {"a": [1]}}


def test_links_in_properties_are_links():
    document = parsed('---\nup: "[[A]]"\nlist: ["[[B|b]]", "see [[C]]"]\nraw: [[D]]\n---\n[[E]]')
    assert document.links[:3] == (
        Link("wikilink", "A", "", None, -1),
        Link("wikilink", "B", "", "b", -1),
        Link("wikilink", "C", "", None, -1),
    )
    assert [link.target for link in document.links[3:]] == ["E"]


@pytest.mark.parametrize(
    ("raw", "defects", "writable"),
    [
        pytest.param(b"---\na: b: c\n---\nword", ["bad-frontmatter"], False, id="broken properties"),
        pytest.param(b"---\na: {{date}}\n---\nword", ["bad-frontmatter", "template"], False, id="a template"),
        pytest.param(
            b"---\na: " + b"x" * 70_000 + b"\n---\nword",
            ["bad-frontmatter", "frontmatter-too-large"],
            False,
            id="too large",
        ),
        pytest.param(b"---\na: 1\na: 2\n---\nword", ["duplicate-keys"], False, id="a repeated key"),
        pytest.param(b"---\nid: 1\nword", ["unclosed-frontmatter"], False, id="unclosed properties"),
        pytest.param(b"---\n\nword", [], True, id="a rule"),
        pytest.param(b"caf\xe9 word", ["not-utf8"], False, id="Latin-1"),
        pytest.param("word".encode("utf-16"), ["nul-bytes", "not-utf8", "hidden-text"], False, id="UTF-16"),
        pytest.param(b"\xef\xbb\xbf---\na: 1\n---\nword", ["bom"], True, id="a byte order mark"),
        pytest.param(b"wo\0rd word", ["nul-bytes", "hidden-text"], True, id="NUL"),
        pytest.param("---\na: \u202e\n---\nword".encode(), ["hidden-text"], True, id="hidden characters"),
        pytest.param(b"--- \na: 1\n---\nword", ["loose-fence"], True, id="blanks behind the fence"),
        pytest.param(b"---\ra: 1\r---\rword", ["cr-line-ends"], True, id="bare CR"),
        pytest.param(b"<<<<<<< a\nword\n=======\n>>>>>>> b\n", ["merge-conflict"], True, id="a merge conflict"),
        pytest.param(b"word\n```\nopen", ["unclosed-fence"], True, id="an open fence"),
        pytest.param(b"---\nversion: x\n---\nword", ["bad-version"], True, id="a bad version"),
    ],
)
def test_a_defect_is_listed_and_the_body_is_kept(raw, defects, writable):
    document = parsed(raw, "Captures/w/a.md")
    assert names(document) == defects
    assert document.writable is writable
    assert "word" in document.text.replace("\0", "")


@pytest.mark.parametrize(
    "name",
    [
        "Note.sync-conflict-20261120-143205-ABC1234.md",
        "Note (conflicted copy 2026-11-20).md",
        "Note (Conflicted copy phone 202611201432).md",
        "Note (Ada's laptop's conflicted copy 2026-11-20).md",
    ],
)
def test_a_conflict_copy_is_told_by_its_name(name):
    assert names(parsed("x", f"Dir/{name}")) == ["conflict-copy"]
    assert parsed("x", "Dir/Note (1).md").defects == ()


@pytest.mark.parametrize(
    ("written", "file"),
    [
        ('"[[Captures/work/Files/report.pdf]]"', "Captures/work/Files/report.pdf"),
        ('"[[report.pdf]]"', "Captures/work/Files/report.pdf"),
        ('"[[Captures/work/a/report.pdf|the report]]"', "Captures/work/a/report.pdf"),
        ('"[[../a/report.pdf]]"', "Captures/work/a/report.pdf"),
        ('"[[./report.pdf]]"', "Captures/work/Files/report.pdf"),
        ('"[[../../other/report.pdf]]"', None),
        ('"[[../../../Private/report.pdf]]"', None),
        ('"[[../../../../../../etc/passwd]]"', None),
        ('"[[..]]"', None),
        ('"[[.]]"', None),
        ('"[[./]]"', None),
        ('"[[Captures/other/Files/report.pdf]]"', None),
        ('"[[Captures/work/../other/report.pdf]]"', None),
        ('"[[Private/report.pdf]]"', None),
        ('"[[Captures/work/Plan.md]]"', None),
        ("report.pdf", None),
        ("12", None),
    ],
)
def test_the_note_of_a_file_names_a_file_of_its_own_workspace_or_none(written, file):
    text = f"---\ntype: file\nfile: {written}\npages: 3\ntags: [mine]\n---\nwords #include"
    document = parsed(text, "Captures/work/Files/report.pdf.md")
    assert document.file == file
    assert dict(document.metadata) == {"pages": 3}
    assert document.tags == ("mine", *(() if file else ("include",)))
    assert ("bad-file" in names(document)) == (file is None)


def test_a_property_called_file_means_nothing_elsewhere():
    text = '---\nfile: "[[Captures/work/Files/report.pdf]]"\n---\nwords'
    for path in ("Captures/work/Note.md", "Garden/Files/Note.md"):
        document = parsed(text, path)
        assert document.file is None
        assert document.metadata["file"] == "[[Captures/work/Files/report.pdf]]"
        assert "bad-file" not in names(document)


NODE = Node("Ada", "person", (), (), 0, False, None, None)


@pytest.mark.parametrize(
    ("values", "node", "aliases", "stored", "left"),
    [
        pytest.param(
            {"id": "x", "Title": "y", "mood": "calm"}, None, (), False, {"mood": "calm"}, id="what Memex keeps"
        ),
        pytest.param(
            {"name": "Ada", "File": "x"}, None, (), False, {"name": "Ada", "File": "x"}, id="of a note, neither"
        ),
        pytest.param({"name": "Ada", "Observed_at": 1, "born": 1815}, NODE, (), False, {"born": 1815}, id="a node's"),
        pytest.param({"Aliases": ["Ada"]}, NODE, ("Ada",), False, {}, id="an alias that repeats the name"),
        pytest.param({"aliases": ["A"]}, NODE, ("A",), False, {"aliases": ["A"]}, id="an alias besides the name"),
        pytest.param({"File": "[[x.pdf]]", "name": "x"}, None, (), True, {"name": "x"}, id="a stored file's"),
    ],
)
def test_metadata_are_the_properties_that_the_writer_owns(values, node, aliases, stored, left):
    assert metadata_of(values, node, aliases=aliases, stored=stored) == left


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("word\n```\nopen", "the code fence in line 6"),
        ("word\n\n%% open", "the comment %% in line 7"),
        ("word\n\n<!-- open", "the comment <!-- in line 7"),
        (">" * 60 + " deep", "line 5 is nested"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_defect_names_the_line_of_the_file(body, said, end):
    text = f"---\nsource: me\nproject: x\n---\n{body}".replace("\n", end)
    (defect,) = parsed(text.encode(), "Captures/default/A.md").defects
    assert defect.detail.startswith(said)
