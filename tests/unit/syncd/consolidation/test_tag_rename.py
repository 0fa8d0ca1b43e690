"""One tag in place of another: each where it stands, and no other byte."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from index.names import fold
from syncd.consolidation.tag_rename import rename_tag
from syncd.notes.front_matter import FrontmatterError, read_properties, split
from tests.support.example_counts import examples
from tests.support.parsed_notes import parse


def done(text, old="k8s", new="kubernetes", path="Captures/default/a.md"):
    return rename_tag(text, parse(text.encode(), path, mtime_ms=0), old, new)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("---\ntags: [k8s, db] # k8s\n---\n", "---\ntags: [kubernetes, db] # k8s\nversion: 2\n---\n", id="in brackets"),
        pytest.param('---\ntags: ["#K8S", \'db\']\n---\n', '---\ntags: ["#kubernetes", \'db\']\nversion: 2\n---\n', id="in quotes, with #"),
        pytest.param("---\ntags:\n- a\n# k8s\n- k8s  # mine\n---\n", "---\ntags:\n- a\n# k8s\n- kubernetes  # mine\nversion: 2\n---\n", id="an item a line"),
        pytest.param("---\r\ntags:\r\n  - k8s/ops\r\n---\r\n", "---\r\ntags:\r\n  - kubernetes/ops\r\nversion: 2\r\n---\r\n", id="nested"),
        pytest.param("---\ntags: k8s, db\n---\n", "---\ntags: kubernetes, db\nversion: 2\n---\n", id="as text"),
        pytest.param("---\nTags: k8s\nversion: 4\n---\n", "---\nTags: kubernetes\nversion: 5\n---\n", id="one, its key in capitals"),
        pytest.param("---\ntags:\n  - k8s\n  - x # c\n  - Kubernetes\n---\n", "---\ntags:\n  - kubernetes\n  - x # c\nversion: 2\n---\n", id="there already"),
        pytest.param("---\ntags: [a]\nabout: k8s\n---\nk8s #k8sx\n", None, id="no tag of that name"),
        pytest.param("---\na: 1\n---\n#k8s, (#k8s) #k8s/a\n", "---\na: 1\nversion: 2\n---\n#kubernetes, (#k8s) #kubernetes/a\n", id="in the text"),
        pytest.param("---\na: 1\n---\n# A #k8s\n`#k8s` [a](#k8s) https://x/#k8s <a href='#k8s'>\n```\n#k8s\n```\n    #k8s\n", None, id="where it is none, and in a heading"),
        pytest.param("---\na: 1\n---\n> #k8s\n\n- [ ] #k8s ^o1\n\n%%\n#k8s\n%%\n", "---\na: 1\nversion: 2\n---\n> #kubernetes\n\n- [ ] #kubernetes ^o1\n\n%%\n#kubernetes\n%%\n", id="in quotes, lists and comments"),
    ],
)  # fmt: skip
def test_a_tag_is_changed_where_it_is_one(text, told):
    assert done(text) == (text if told is None else told)


def test_the_text_of_a_node_and_of_a_file_is_left_alone():
    node = "---\nid: n1\ntype: entity\nentity_type: t\ntags: [k8s]\n---\n## Observations\n- runs #k8s ^o1\n"
    assert done(node, path="Captures/default/Entities/N.md") == node.replace("[k8s]", "[kubernetes]").replace(
        "---\n##", "version: 2\n---\n##"
    )


def test_what_can_not_be_changed_is_refused():
    for text in ("---\n{tags: [k8s]}\n---\n", "---\ntags: [a]\ntags: [k8s]\n---\n", "---\ntags: [k8s\n---\n"):
        with pytest.raises(FrontmatterError):
            done(text)
    with pytest.raises(FrontmatterError, match="is not a tag"):
        done("---\ntags: [k8s]\n---\n", new="a b")


tags = st.sampled_from(["k8s", "K8s", "k8s/ops", "kubernetes", "db", "k8sx", "a/k8s", "über"])
styles = st.sampled_from(["[{}]", "block", "text", "quoted"])
pieces = st.one_of(
    tags.map(lambda tag: f"#{tag}"),
    st.sampled_from(
        ["word", "`#k8s`", "# head #k8s", "```\n#k8s\n```", "[x](#k8s)", "", "- item", "> q #k8s", "%% #k8s %%", "k8s"]
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=8),
)


@examples(80)
@given(
    st.lists(tags, min_size=1, max_size=5),
    styles,
    st.lists(pieces, max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", " # k8s"]),
)
def test_the_note_has_the_new_tag_and_every_other_line_as_it_was(held, style, body, end, comment):
    own = {
        "[{}]": [f"tags: [{', '.join(held)}]{comment}"],
        "block": ["tags:", *(f"  - {tag}{comment}" for tag in held)],
        "text": [f"tags: {', '.join(held)}"],
        "quoted": [f"tags: [{', '.join(f'{chr(34)}#{tag}{chr(34)}' for tag in held)}]{comment}"],
    }[style]
    text = end.join(["---", "title: k8s", *own, "note: '#k8s' # k8s", "---", *" ".join(body).split("\n")])
    before = parse(text.encode(), "Captures/default/a.md", mtime_ms=0)
    assume(before.writable)
    told = done(text)
    after = parse(told.encode(), "Captures/default/a.md", mtime_ms=0)

    def renamed(tag):
        return "kubernetes" + tag[3:] if fold(tag) == "k8s" or fold(tag).startswith("k8s/") else tag

    left = {fold(tag) for tag in after.tags if renamed(tag) != tag}
    headings = {
        fold(tag)
        for line in text.replace("\r\n", "\n").split("\n")
        if re.match(r" {0,3}# ", line)
        for tag in ("k8s", "k8s/ops")
        if tag in fold(line)
    }
    assert left <= headings
    assert {fold(renamed(tag)) for tag in before.tags} - headings <= {fold(renamed(tag)) for tag in after.tags}
    assert after.title == "k8s"
    assert read_properties(split(told)[0])["note"] == "#k8s"
    assert (told == text) == (after.version == before.version)
    assert _others(told.split(end)) == _others(text.split(end))
    assert done(told) == told


def _others(lines):
    """The lines that neither hold the tag nor are those of the property in another form."""
    about = [line for line in lines if "k8s" not in fold(line) and "kubernetes" not in fold(line)]
    return [line for line in about if line not in ("version: 2", "tags:") and not line.startswith("  - ")]
