"""Whatever is moved: every link leads where it led, and no byte but those of paths changes."""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syncd.notes.front_matter import decode, encode
from syncd.promotion.link_updates import plan_link_updates
from syncd.vault.vault import Vault
from tests.support.example_counts import examples
from tests.support.link_oracle import Oracle, blank, links_of
from tests.support.paths import DATA

NAMES = ["Note", "note two", "Ünder", "v1.2", "x(1)", "it's", "100% sure", "日本 語", "a~b", "Note.md", "e\u0301"]
FILES = ["pic.png", "doc (2).pdf", "Note.canvas"]
FOLDERS = ["", "a/", "a/b/", "b/", "Deep er/(x)/", "ä ö/"]
WAYS = [
    "[[{wiki}]]", "![[{wiki}#H|7]]", "[[{wiki}|shown]]", "[t](<{md}>)", '![t](<{md}#H> "t")', "[t]({bare})", "[t]({bare}#H 't')",
]  # fmt: skip
PLACES = [
    "A line with {} in it.\r\n\r\n", "- item\n  - {} ^b1\n\n", "> [!note] T\n> {}\n\n", "| a | b |\n| --- | --- |\n| x | {} |\n\n",
    "key:: {}\n\n", "%%{}%%\n\n", "## Head {}\n\n", "[^1]: foot {}\n\n", "`{}` code\n\n", "```\n{}\n```\n\n", "$x$ {} \\[\\[no\\]\\]\n\n",
    "[outer {} text](https://example.org)\n\n", "<!-- {} -->\n\n", "- [ ] task {} 📅 2026-01-01\n\n",
]  # fmt: skip


@st.composite
def vaults(draw):
    paths = st.builds(
        lambda folder, name: folder + name,
        st.sampled_from(FOLDERS),
        st.sampled_from([f"{n}.md" for n in NAMES] + FILES),
    )
    files = draw(st.lists(paths, min_size=3, max_size=9, unique_by=lambda path: path.casefold()))
    taken = {path.casefold() for path in files}
    moves = {}
    for path in draw(st.lists(st.sampled_from(files), min_size=1, max_size=3, unique=True)):
        to = draw(paths)
        if to.casefold() not in taken and to.rpartition(".")[2] == path.rpartition(".")[2]:
            taken.add(to.casefold())
            moves[path] = to
    return files, moves, {path: draw(content(files, path)) for path in files}


@st.composite
def targets(draw, files, source):
    path = draw(st.sampled_from(files))
    bare = path.removesuffix(".md")
    up = "../" * source.count("/")
    return draw(
        st.sampled_from(
            [bare, path, bare.rpartition("/")[2], "/" + bare, "./" + bare.rpartition("/")[2], up + bare, bare.upper()]
        )
    )


def link(draw, files, source):
    target = draw(targets(files, source))
    way = draw(st.sampled_from(WAYS))
    encoded = target.replace("%", "%25")
    bare = (
        encoded.replace(" ", "%20")
        .replace("(", draw(st.sampled_from(["%28", "\\("])))
        .replace(")", draw(st.sampled_from(["%29", "\\)"])))
    )
    return way.format(wiki=target, md=encoded, bare=bare)


@st.composite
def content(draw, files, source):
    if source.endswith(".canvas"):
        nodes = [{"id": "1", "type": "file", "file": draw(st.sampled_from(files))}]
        nodes.append({"id": "2", "type": "group", "background": draw(st.sampled_from(files)), "label": "[[Note]]"})
        nodes.append(
            {"id": "3", "type": "text", "text": f"« {link(draw, files, source)} »\n{link(draw, files, source)}"}
        )
        return json.dumps(
            {"nodes": nodes, "edges": []}, indent=draw(st.sampled_from([None, "\t"])), ensure_ascii=draw(st.booleans())
        )
    if not source.endswith(".md"):
        return ""
    lines = []
    for number in range(draw(st.integers(0, 2))):
        target = draw(targets(files, source))
        shape = draw(
            st.sampled_from(
                [
                    'k{n}: "[[{d}]]" # c\n',
                    "k{n}: '[[{s}|x]]'\n",
                    'k{n}:\n  - "a [[{d}]]"\n',
                    "k{n}: see [[{p}]]\n",
                    "k{n}: |\n  [[{p}]]\n",
                ]
            )
        )
        lines.append(shape.format(n=number, d=target.replace('"', '\\"'), s=target.replace("'", "''"), p=target))
    front = f"---\n{''.join(lines)}---\n" if lines else ""
    body = "".join(
        draw(st.sampled_from(PLACES)).format(link(draw, files, source)) for _ in range(draw(st.integers(0, 4)))
    )
    return draw(st.sampled_from(["", "\ufeff"])) + front + body


def followed(text, source, oracle, files):
    """Where everything in a file leads, and how it is written beside its path."""
    if not source.endswith(".canvas"):
        return [
            (each.kind, each.subpath, each.display, oracle.follow(each.target, source), each.target)
            for each in links_of(text)
        ]
    found = []
    for node in json.loads(text).get("nodes", []):
        path = node.get("file", node.get("background"))
        if path is not None:
            found.append(("card", "", "", path if path in files else None, path))
        found += (
            followed(node.get("text", ""), source.removesuffix(".canvas") + ".md", oracle, files)
            if "text" in node
            else []
        )
    return found


def compared(before, after, moves):
    """That each link leads to the same file, and that one which led nowhere or does still is untouched."""
    assert len(before) == len(after)
    for was, now in zip(before, after, strict=True):
        assert was[:3] == now[:3]
        if was[3] is None:
            assert was[4] == now[4]
        else:
            assert now[3] == moves.get(was[3], was[3]), (was, now)


MISREAD = ["note two.md", "Note.md", "a/Note.md"], {"note two.md": "Note.md.md"}
"""Without its ending, the new name is that of another note."""


@example((*MISREAD, {"note two.md": "", "Note.md": "", "a/Note.md": "[[note two]]"}))
@examples(40)
@given(vaults())
def test_every_link_leads_where_it_led_and_nothing_else_changes(drawn):
    files, moves, texts = drawn
    with tempfile.TemporaryDirectory() as folder:
        for path, text in texts.items():
            place = Path(folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(encode(text))
        vault = Vault(Path(folder))
        found = plan_link_updates(vault, moves, inbox="None")
        vault.close()
    assert found.lost == ()
    came = [moves.get(path, path) for path in files]
    before, after = Oracle(files), Oracle(came)
    for path, text in texts.items():
        was, now = found.changes.get(path, (encode(text), encode(text)))
        assert was == encode(text)
        new = moves.get(path, path)
        compared(followed(text, path, before, files), followed(decode(now), new, after, came), moves)
        if path.endswith(".md"):
            assert blank(decode(now)) == blank(text)


def plain(source, path, *, stays):
    """The plain forms of a link: those that any way back writes again, unless it goes by the root, where a path is a name."""
    bare = path.removesuffix(".md")
    near = os.path.relpath(bare, str(Path(source).parent))
    near = near if near.startswith("../") else f"./{near}"
    forms = [f"[[{bare.rpartition('/')[2]}]]", f"[[{bare}|x]]", f"![[/{path}]]", f"[t](<{path}#H>)"]
    return [*forms, f"[[{near}]]"] if stays else forms  # else a way by many folders up may lead there still


@examples(25)
@given(st.randoms(use_true_random=False))
def test_the_way_back_gives_the_same_bytes_where_links_are_plain(dice):
    files = [f"{dice.choice(['', 'a/', 'a/b/', 'c d/'])}N{number}.md" for number in range(6)]
    moves = {
        path: f"{dice.choice(['a/', 'new/x/', 'c d/'])}{path.rpartition('/')[2]}" for path in dice.sample(files, 3)
    }
    moves = {old: new for old, new in moves.items() if old != new}
    texts = {
        path: "\n".join(form for other in files for form in dice.sample(plain(path, other, stays=path not in moves), 2))
        for path in files
    }
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, text in texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(encode(text))
        vault = Vault(root)
        for going in (moves, {new: old for old, new in moves.items()}):
            found = plan_link_updates(vault, going, inbox="Captures")
            for path, (_, now) in found.changes.items():
                (root / path).write_bytes(now)
            for old, new in going.items():
                (root / new).parent.mkdir(parents=True, exist_ok=True)
                (root / old).rename(root / new)
        vault.close()
        assert {path: decode((root / path).read_bytes()) for path in files} == texts


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the real vaults")
@pytest.mark.parametrize(
    "name",
    [
        "vault_kepano",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("vault_tasks_demo", "vault_oldwinter_md")),
    ],
)
def test_200_notes_of_a_real_vault_move_and_every_link_goes_along(name, tmp_path):
    root = tmp_path / "vault"
    shutil.copytree(DATA / name, root, ignore=shutil.ignore_patterns(".git"))
    vault = Vault(root)
    files = list(vault.walk_files())
    notes = [path for path in files if path.endswith(".md")]
    dice = random.Random(name)
    folders = sorted({path.rpartition("/")[0] for path in files} | {"New folder", "新/Deep"})
    taken = {path.casefold() for path in files}
    moves = {}
    for path in dice.sample(notes, min(200, len(notes))):
        base = (
            path.rpartition("/")[2] if dice.random() < 0.7 else f"Renamed {len(moves)} (x)!.md"
        )  # "!": so that no text of a link becomes the new name
        to = f"{dice.choice(folders)}/{base}".lstrip("/")
        if to.casefold() not in taken:
            taken.add(to.casefold())
            moves[path] = to
    texts = {path: decode((root / path).read_bytes()) for path in files if path.endswith((".md", ".canvas"))}
    came = [moves.get(path, path) for path in files]
    before, after = Oracle(files), Oracle(came)
    found = plan_link_updates(vault, moves, inbox="Captures")
    seen = 0
    for path, text in texts.items():
        now = decode(found.changes.get(path, (b"", encode(text)))[1])
        new = moves.get(path, path)
        if path.endswith(".canvas") and not text.strip():
            continue
        was = followed(text, path, before, files)
        seen += sum(each[3] is not None for each in was)
        labelled = [(*each[:2], None, *each[3:]) for each in was]
        compared(labelled, [(*each[:2], None, *each[3:]) for each in followed(now, new, after, came)], moves)
        if path.endswith(".md"):
            assert blank(now) == blank(text), path
    assert found.lost == ()
    assert found.unread == ()
    assert len(moves) > 50
    assert seen > 20
    back = {new: old for old, new in moves.items()}
    for path, (_, now) in found.changes.items():
        (root / path).write_bytes(now)
    for old, new in moves.items():
        (root / new).parent.mkdir(parents=True, exist_ok=True)
        (root / old).rename(root / new)
    again = plan_link_updates(vault, back, inbox="Captures")
    assert again.lost == ()
    vault.close()
    restored = Oracle(files)
    for path, text in texts.items():
        new = moves.get(path, path)
        now = again.changes.get(new, (b"", (root / new).read_bytes()))[1]
        if text.strip():
            compared(followed(text, path, before, files), followed(decode(now), path, restored, files), {})
