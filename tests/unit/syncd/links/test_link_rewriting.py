"""Where links lead, and how they go on leading there when files move."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.links.link_resolution import Paths
from syncd.links.link_rewriting import Move, rewrite_links
from syncd.notes.front_matter import read_properties, split
from syncd.notes.markdown_outline import parse_outline
from tests.support.example_counts import examples
from tests.support.paths import DATA

FILES = [
    "Note.md",
    "a/Note.md",
    "a/b/Note.md",
    "b/Ünder.md",
    "a/pic.png",
    "v1.2.md",
    "deep/er/Only here.md",
    "a/x(1).md",
]


@pytest.mark.parametrize(
    ("target", "source", "leads"),
    [
        ("", "a/Note.md", "a/Note.md"),
        ("Note", "Other.md", "Note.md"),
        ("note.MD", "Other.md", "Note.md"),
        ("b/Note", "Other.md", "a/b/Note.md"),
        ("./Note", "a/Other.md", "a/Note.md"),
        ("../Note", "a/b/Other.md", "a/Note.md"),
        ("../../../Note", "a/Other.md", "Note.md"),
        ("/a/Note", "Other.md", "a/Note.md"),
        ("/b/Note", "Other.md", None),
        ("U\u0308nder", "Other.md", "b/Ünder.md"),
        ("v1.2", "Other.md", "v1.2.md"),
        ("pic", "Other.md", None),
        ("pic.png", "Other.md", "a/pic.png"),
        ("only here", "Other.md", "deep/er/Only here.md"),
        ("nothing", "Other.md", None),
    ],
)
def test_a_link_leads_where_obsidian_follows_it(target, source, leads):
    assert Paths(FILES).resolve(target, source) == leads


def test_of_several_candidates_one_below_the_source_wins_and_then_the_shortest():
    files = ["z/Twin.md", "a/sub/Twin.md", "bb/Twin.md"]
    assert Paths(files).resolve("Twin", "a/Source.md") == "a/sub/Twin.md"
    assert Paths(files).resolve("Twin", "Source.md") == "z/Twin.md"
    assert Paths(reversed(files)).resolve("Twin", "Source.md") == "z/Twin.md"


def moved(text, old="Home.md", new=None, **renamed):
    files = [*FILES, old]
    moves = {**renamed, **({old: new} if new else {})}
    after = [moves.get(path, path) for path in files]
    return rewrite_links(text, old, new or old, Move(moves, Paths(files), Paths(after)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[[Only here]]", "[[Only here]]"),
        ("[[deep/er/Only here|x]]", "[[Kept/Only here|x]]"),
        ("![[deep/er/Only here#A#B|100]]", "![[Kept/Only here#A#B|100]]"),
        ("| a |\n| --- |\n| [[deep/er/Only here\\|x]] |", "| a |\n| --- |\n| [[Kept/Only here\\|x]] |"),
        ("[x](deep/er/Only%20here.md#A)", "[x](Kept/Only%20here.md#A)"),
        ('[x](<deep/er/Only here.md> "t")', '[x](<Kept/Only here.md> "t")'),
        ("[x]: deep/er/Only%20here.md", "[x]: Kept/Only%20here.md"),
        ("[[./deep/er/Only here]]", "[[./Kept/Only here]]"),
        ("[[/deep/er/Only here.md]]", "[[/Kept/Only here.md]]"),
        ("> - [[deep/er/Only here]] and [[Note]]", "> - [[Kept/Only here]] and [[Note]]"),
        ("`[[deep/er/Only here]]` [[deep/er/Only here]]", "`[[deep/er/Only here]]` [[Kept/Only here]]"),
        ("```\n[[deep/er/Only here]]\n```", "```\n[[deep/er/Only here]]\n```"),
        ("<!-- [[deep/er/Only here]] -->", "<!-- [[deep/er/Only here]] -->"),
        ("%%[[deep/er/Only here]]%%", "%%[[Kept/Only here]]%%"),
        ("[[nothing/here]]\r\n[[deep/er/Only here]]\r\n", "[[nothing/here]]\r\n[[Kept/Only here]]\r\n"),
        ('---\nup: "[[deep/er/Only here]]"  # why\n---\n', '---\nup: "[[Kept/Only here]]"  # why\n---\n'),
        ("---\nup:\n  - '[[deep/er/Only here|x]]'\n---\n", "---\nup:\n  - '[[Kept/Only here|x]]'\n---\n"),
    ],
)
def test_only_the_path_of_a_link_changes_and_only_where_it_must(before, after):
    written, lost = moved(before, **{"deep/er/Only here.md": "Kept/Only here.md"})
    assert (written, lost) == (after, [])


def test_a_name_that_needs_quoting_is_quoted_where_it_stands():
    text = "---\na: '[[deep/er/Only here]]'\nb: \"[[deep/er/Only here]]\"\n---\n[x](deep/er/Only%20here.md)"
    name = 'It\'s (so) 100% "new" ü'
    written, lost = moved(text, **{"deep/er/Only here.md": f"Kept/{name}.md"})
    assert lost == []
    assert read_properties(split(written)[0]) == {"a": f"[[Kept/{name}]]", "b": f"[[Kept/{name}]]"}
    assert [link.target for link in parse_outline(split(written)[1]).links] == [f"Kept/{name}.md"]


def test_links_of_a_note_that_moves_itself_are_kept_too():
    written, lost = moved("[[./Note]] [[../Note]] [[Note]] ![[pic.png]]", old="a/Home.md", new="b/Home.md")
    assert (written, lost) == ("[[../a/Note]] [[../Note]] [[Note]] ![[pic.png]]", [])


def test_the_text_of_a_markdown_link_that_is_the_old_name_becomes_the_new_one():
    text = "[Only here](deep/er/Only%20here.md) [Only here.md](deep/er/Only%20here.md) [other](deep/er/Only%20here.md) ![Only here](deep/er/Only%20here.md) [[deep/er/Only here|Only here]]"
    written, _ = moved(text, **{"deep/er/Only here.md": "Kept/New.md"})
    assert (
        written
        == "[New](Kept/New.md) [New.md](Kept/New.md) [other](Kept/New.md) ![Only here](Kept/New.md) [[Kept/New|Only here]]"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[![[deep/er/Only here]]](deep/er/Only%20here.md)", "[![[K/Only here]]](K/Only%20here.md)"),
        ("[[a] b](deep/er/Only%20here.md)", "[[a] b](K/Only%20here.md)"),
        ("[[  deep/er/Only here  |x]]", "[[  K/Only here  |x]]"),
        ("> [x](deep/er/Only%20here.md#A\n> 't')", "> [x](K/Only%20here.md#A\n> 't')"),
        ("[x](deep\\/er/Only%20here.md)", "[x](K/Only%20here.md)"),
        ("[x](deep/er/Only%20here.md%23A)", "[x](K/Only%20here.md%23A)"),
        ("---\nup: [[deep/er/Only here]]\n---\n", "---\nup: [[K/Only here]]\n---\n"),
        ('---\nup: "[[deep\\/er/Only\\x20here]]"\n---\n', '---\nup: "[[K/Only here]]"\n---\n'),
        ("---\na: {b: ['[[deep/er/Only here]]']}\n---\n", "---\na: {b: ['[[K/Only here]]']}\n---\n"),
        ("---\na: >\n  x [[deep/er/Only here]]\n  y\n---\n", "---\na: >\n  x [[K/Only here]]\n  y\n---\n"),
        ('---\na: "[x](deep/er/Only%20here.md)"\n---\n', '---\na: "[x](K/Only%20here.md)"\n---\n'),
        (
            "\ufeff---\r\na: '[[deep/er/Only here]]'\r\n---\r\n\udcff",
            "\ufeff---\r\na: '[[K/Only here]]'\r\n---\r\n\udcff",
        ),
        ("key:: [[deep/er/ONLY HERE]]", "key:: [[K/Only here]]"),
    ],
)
def test_links_are_found_where_others_are_around_them(before, after):
    assert moved(before, **{"deep/er/Only here.md": "K/Only here.md"}) == (after, [])


@pytest.mark.parametrize("name", ["a#b", "a[[b", "a]]b", "a ", "a|b", "a\\"])
def test_a_name_that_no_wikilink_can_hold_is_told_and_left(name):
    text = "[[deep/er/Only here]]"
    assert moved(text, **{"deep/er/Only here.md": f"K/{name}.md"}) == (text, ["deep/er/Only here"])


def test_properties_that_can_not_be_read_are_left_and_told():
    text = "---\na: '[[deep/er/Only here]]\n---\n"
    assert moved(text, **{"deep/er/Only here.md": "K/X.md"}) == (text, ["deep/er/Only here"])


def test_a_name_that_would_change_how_properties_are_built_is_not_put_there():
    text = "---\na: see [[deep/er/Only here]]\nb: '[[deep/er/Only here]]'\n---\n[[deep/er/Only here]]"
    written, lost = moved(text, **{"deep/er/Only here.md": "K/x: y.md"})
    assert (written, lost) == (text.replace("---\n[[deep/er/Only here]]", "---\n[[K/x: y]]"), ["deep/er/Only here"] * 2)


@pytest.mark.parametrize(
    ("relative", "before", "after"),
    [
        (False, "[[Twin]]", "[[K/Twin]]"),
        (True, "[[Twin]]", "[[../K/Twin]]"),
        (False, "[[a/Home2]]", "[[K/Home2]]"),
        (True, "[[./Home2]]", "[[../K/Home2]]"),
    ],
)
def test_where_a_link_leaves_the_choice_the_setting_of_the_vault_is_followed(relative, before, after):
    files = ["a/Twin.md", "b/Twin.md", "a/Home.md", "a/Home2.md"]
    moves = {"a/Twin.md": "K/Twin.md", "a/Home2.md": "K/Home2.md"}
    move = Move(moves, Paths(files), Paths(moves.get(path, path) for path in files), relative)
    assert rewrite_links(before, "a/Home.md", "a/Home.md", move) == (after, [])


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["[[", "[", "](", "[](", "[a](", "[[a|", "![", "\\(", "> ", "$a", "`a", "<!--", "%%", "[a]: ", "%23", "[x](a"],
)
def test_a_text_of_nothing_but_marks_is_read_in_linear_time(piece):
    short, long = (piece * (size // len(piece)) for size in (20_000, 200_000))

    def took(text):
        begun = time.process_time()
        moved(text, **{"deep/er/Only here.md": "K/X.md"})
        return time.process_time() - begun

    times = [
        min(took(text) for _ in range(3)) for text in (short, long)
    ]  # garbage of other tests may be collected in one
    assert times[1] < 60 * times[0] + 0.5


NAMES = st.sampled_from(["Note", "note 2", "Ünder", "pic.png", "v1.2", "x(1)", "a'b", "100%", "日本"])
FOLDERS = st.sampled_from(["", "a/", "a/b/", "b/", "Captures/default/", "ä ö/"])
PATHS = st.builds(
    lambda folder, name: folder + (name if "." in name[-4:] and name != "v1.2" else f"{name}.md"), FOLDERS, NAMES
)


@st.composite
def vaults(draw):
    files = draw(st.lists(PATHS, min_size=2, max_size=12, unique_by=str.casefold))
    notes = [path for path in files if path.endswith(".md")]
    moves = {}
    taken = {path.casefold() for path in files}
    for path in draw(st.lists(st.sampled_from(files), max_size=3, unique=True)):
        to = draw(PATHS)
        if to.casefold() not in taken and to.endswith(".md") == path.endswith(".md"):
            taken.add(to.casefold())
            moves[path] = to
    return files, notes, moves


def spelled(draw, path):
    bare = path.removesuffix(".md")
    base = bare.rpartition("/")[2]
    text = draw(st.sampled_from([bare, path, base, f"/{bare}", f"./{base}", f"../{bare}", bare.upper()]))
    style = draw(st.sampled_from(["[[{}]]", "![[{}#H|7]]", "[[{}|shown]]", "[t](<{}>)", "[t](<{}#H>)"]))
    return style.format(text if style[0] != "[" or "<" not in style else text.replace("%", "%25"))


@examples(60)
@given(st.data())
def test_every_link_of_every_note_leads_where_it_led(data):
    files, notes, moves = data.draw(vaults())
    after = [moves.get(path, path) for path in files]
    move = Move(moves, Paths(files), Paths(after))
    for note in notes:
        links = [spelled(data.draw, data.draw(st.sampled_from(files))) for _ in range(data.draw(st.integers(0, 4)))]
        text = "".join(f"- {link} and `[[code]]`\n" for link in links)
        new = moves.get(note, note)
        written, lost = rewrite_links(text, note, new, move)
        was, now = parse_outline(text).links, parse_outline(written).links
        assert len(was) == len(now)
        assert lost == []
        for one, other in zip(was, now, strict=True):
            led = move.before.resolve(one.target, note)
            assert (one.kind, one.subpath, one.display) == (other.kind, other.subpath, other.display)
            if led is not None:
                assert move.after.resolve(other.target, new) == moves.get(led, led)
        if not moves:
            assert written == text
        assert rewrite_links(written, new, new, Move({}, move.after, move.after))[0] == written


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the real vaults")
@pytest.mark.parametrize(
    "vault", ["vault_kepano", "vault_tasks_demo", pytest.param("vault_oldwinter_md", marks=pytest.mark.slow)]
)
def test_a_folder_of_a_real_vault_moves_and_every_link_goes_along(vault):
    root = DATA / vault
    files = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    folder = max(
        {path.partition("/")[0] for path in files if "/" in path},
        key=lambda top: sum(p.startswith(f"{top}/") for p in files),
    )
    moves = {path: f"Archive of 2026/{path}" for path in files if path.startswith(f"{folder}/")}
    move = Move(moves, Paths(files), Paths(moves.get(path, path) for path in files))
    checked = 0
    for path in (path for path in files if path.endswith(".md")):
        text = (root / path).read_bytes().decode("utf-8", "surrogateescape")
        new = moves.get(path, path)
        written, lost = rewrite_links(text, path, new, move)
        assert lost == []
        was, now = parse_outline(split(text)[1]).links, parse_outline(split(written)[1]).links
        assert len(was) == len(now), path
        for one, other in zip(was, now, strict=True):
            led = move.before.resolve(one.target, path)
            if led is not None:
                checked += 1
                assert move.after.resolve(other.target, new) == moves.get(led, led), (path, one, other)
            else:
                assert one == other
    assert checked > 20
