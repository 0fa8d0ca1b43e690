"""Files are moved, and every link of the vault still leads where it led."""

from __future__ import annotations

import json
import random

import pytest

from syncd.promotion.link_updates import MoveSeries, plan_link_updates
from syncd.vault.vault import Vault


@pytest.fixture
def filled(tmp_path):
    def fill(**files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        return Vault(tmp_path)

    return fill


def after(found):
    return {path: new.decode() for path, (_, new) in found.changes.items()}


def test_a_note_that_moves_keeps_its_links_and_those_to_it(filled):
    vault = filled(
        **{
            "Captures/default/Foo.md": "[[./Bar]] and ![[pic.png]]",
            "Captures/default/Bar.md": "[[Foo]] [[Captures/default/Foo|x]] [f](Foo.md)",
            "Captures/default/pic.png": "",
            "Home.md": "[[Captures/default/Foo#H]] `[[Captures/default/Foo]]` [x](Captures/default/Foo.md)",
            "Other.md": "nothing",
        }
    )
    found = plan_link_updates(vault, {"Captures/default/Foo.md": "Notes/Foo.md"}, inbox="Captures")
    assert after(found) == {
        "Captures/default/Foo.md": "[[../Captures/default/Bar]] and ![[pic.png]]",
        "Captures/default/Bar.md": "[[Foo]] [[Foo|x]] [f](Foo.md)",
        "Home.md": "[[Notes/Foo#H]] `[[Captures/default/Foo]]` [x](Notes/Foo.md)",
    }
    assert (found.lost, found.unread) == ((), ())


@pytest.mark.parametrize(
    ("value", "then"), [("4", "5"), ("1.0.3", "1.0.3"), ("draft", "draft"), ('"4"', '"4"'), ("0", "0"), ("", "2")]
)
def test_a_version_of_a_person_stays_when_a_link_is_updated(filled, value, then):
    vault = filled(
        **{
            "Captures/default/Foo.md": "",
            "Captures/default/Bar.md": f"---\nid: b\nversion: {value}\n---\n[[Foo]]\n",
        }
    )
    found = plan_link_updates(vault, {"Captures/default/Foo.md": "Captures/default/Boo.md"}, inbox="Captures")
    assert after(found) == {"Captures/default/Bar.md": f"---\nid: b\nversion: {then}\n---\n[[Boo]]\n"}


def test_what_changes_is_in_order_of_path(filled):
    names = [f"{name}.md" for name in random.Random(1).sample(range(100_000), 60)]
    vault = filled(**{"a/Foo.md": "", **dict.fromkeys(names, "[[a/Foo]] and [[a/Gone]]")})
    found = plan_link_updates(vault, {"a/Foo.md": "b/Foo.md"}, inbox="Captures")
    assert list(found.changes) == sorted(names)


def test_a_capture_never_learns_the_folder_of_a_note_of_the_vault(filled):
    vault = filled(
        **{
            "Captures/default/Foo.md": "",
            "Captures/default/Bar.md": "[[Captures/default/Foo]] [[./Foo]]",
            "Plans/Foo.md": "",
        }
    )
    found = plan_link_updates(vault, {"Captures/default/Foo.md": "Secret/Foo.md"}, inbox="Captures")
    assert after(found) == {}
    assert found.lost == (("Captures/default/Bar.md", "Captures/default/Foo"), ("Captures/default/Bar.md", "./Foo"))


def test_links_that_the_new_place_would_take_over_are_rewritten(filled):
    vault = filled(**{"a/Twin.md": "", "b/Old.md": "", "Home.md": "[[Twin]]", "Rest.md": "[[Old]]"})
    found = plan_link_updates(vault, {"b/Old.md": "Twin.md"}, inbox="Captures")
    assert after(found) == {"Home.md": "[[a/Twin]]", "Rest.md": "[[Twin]]"}


def test_a_given_text_counts_in_place_of_what_is_on_disk(filled):
    vault = filled(**{"a/Note.md": "old", "b/Other.md": ""})
    found = plan_link_updates(vault, {"a/Note.md": "Note.md"}, texts={"a/Note.md": b"[[../b/Other]]"}, inbox="Captures")
    assert found.changes == {"a/Note.md": (b"[[../b/Other]]", b"[[./b/Other]]")}


CANVAS = """{
\t"nodes":[
\t\t{"id":"g","type":"group","x":0,"y":0,"width":9,"height":9,"background":"a\\/Pic.png","extra":{"file":"a/Foo.md"}},
\t\t{"id":"f","type":"file","file":"a/Foo.md","x":0,"y":0,"width":9,"height":9,"subpath":"#H"},
\t\t{"id":"t","type":"text","text":"\\u00fc [[a/Foo|say \\"x\\"]] \\ud83d\\ude00 and [p](a/Pic.png)","x":0.0,"y":0,"width":9,"height":9}
\t],
\t"edges":[]
}"""


def test_cards_of_a_canvas_follow_and_all_other_bytes_stay(filled):
    vault = filled(**{"a/Foo.md": "", "a/Pic.png": "", "c/Board.canvas": CANVAS})
    found = plan_link_updates(vault, {"a/Foo.md": 'b/F"oo.md', "a/Pic.png": "b/Pic.png"}, inbox="Captures")
    written = after(found)["c/Board.canvas"]
    assert written == CANVAS.replace("a\\/Pic", "b/Pic").replace(
        '"file":"a/Foo.md","x"', '"file":"b/F\\"oo.md","x"'
    ).replace("a/Foo|", 'b/F\\"oo|').replace("(a/Pic.png)", "(b/Pic.png)")
    assert json.loads(written)["nodes"][2]["text"] == 'ü [[b/F"oo|say "x"]] 😀 and [p](b/Pic.png)'


def test_what_only_names_a_moved_file_is_told_and_left(filled):
    vault = filled(
        **{
            "a/Foo.md": "",
            "Q.md": "```dataview\nLIST FROM [[Foo]]\n```\n\n[o](obsidian://open?vault=v&file=a%2FFoo)\n",
            "T.base": "filters: 'file.hasLink(\"a/Foo\")'\n",
            "Broken.canvas": '{"nodes":[{"type":"file","file":"a/Foo.md"',
            ".obsidian/bookmarks.json": '{"items":[{"type":"file","path":"a/Foo.md"}]}',
        }
    )
    found = plan_link_updates(vault, {"a/Foo.md": "b/Bar.md"}, inbox="Captures")
    assert found.changes == {}
    assert sorted(found.mentions) == [
        (".obsidian/bookmarks.json", "a bookmark"),
        ("Broken.canvas", "it is not a valid canvas, so Memex leaves it unchanged"),
        ("Q.md", "a Dataview query"),
        ("Q.md", "an obsidian:// address"),
        ("T.base", "an expression of the Base"),
    ]


def test_once_moved_only_links_that_lead_nowhere_are_mended(filled):
    vault = filled(
        **{
            "Notes/Foo.md": "[[../x/Bar]] [[./Near]]",  # the first one was mended by whoever moved it
            "x/Bar.md": "",
            "Captures/default/Near.md": "",
            "Home.md": "[[Captures/default/Foo]] [[Notes/Foo]]",
        }
    )
    found = plan_link_updates(vault, {"Captures/default/Foo.md": "Notes/Foo.md"}, moved=True, inbox="Captures")
    assert after(found) == {"Home.md": "[[Notes/Foo]] [[Notes/Foo]]"}


def test_a_word_of_a_query_that_happens_to_be_a_name_is_not_told(filled):
    vault = filled(
        **{
            "a/Task.md": "",
            "Q.md": '```dataview\nTASK FROM "b"\n```\n',
            "R.md": "```dataview\nLIST FROM [[Task]]\n```\n",
        }
    )
    moved, renamed = (
        plan_link_updates(vault, {"a/Task.md": new}, inbox="Captures") for new in ("b/Task.md", "b/Chore.md")
    )
    assert moved.mentions == (), "its name still leads there"
    assert renamed.mentions == (("R.md", "a Dataview query"),)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_a_step_of_a_walk_is_what_would_be_said_of_it_alone(filled, tmp_path, seed):
    chance = random.Random(seed)
    paths = [f"{folder}/{name}.md" for folder in ("Captures/w", "a", "a/b", "c") for name in ("One", "Two", "Three")]
    paths = chance.sample(paths, 9)

    def link(source):
        target = chance.choice(paths)
        short, up = target.rpartition("/")[2][:-3], "../" * source.count("/")
        forms = (f"[[{short}]]", f"[[{target[:-3]}|x]]", f"![[{target}#h]]", f"[x]({up}{target})", f"[[{up}{target}]]")
        return chance.choice(forms)

    vault = filled(**{path: " ".join(link(path) for _ in range(4)) + "\n" for path in paths})
    moves = {old: f"new/{number}/{old.rpartition('/')[2]}" for number, old in enumerate(chance.sample(paths, 4))}
    walk = MoveSeries(vault, moves, inbox="Captures")
    for old, new in moves.items():
        text = (tmp_path / old).read_bytes().replace(b"\n", b" edited\n")
        walk.plan_step({old: f"{new}.md"}, {old: text})  # which comes to nothing
        step = walk.plan_step({old: new}, {old: text})
        alone = plan_link_updates(vault, {old: new}, texts={old: text}, inbox="Captures")
        assert (dict(step.changes), sorted(step.lost)) == (dict(alone.changes), sorted(alone.lost))
        for path, (_, raw) in step.changes.items():
            (tmp_path / path).write_bytes(raw)
        (tmp_path / new).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / old).rename(tmp_path / new)
        walk.record_moves({old: new})
