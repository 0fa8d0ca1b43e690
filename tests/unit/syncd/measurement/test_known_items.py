"""syncd/measurement/known_items.py: questions come from names, and no note keeps a name that answers one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from index.text.chunking import chunk_sizes, split_document
from syncd.measurement.known_items import hide_names, make_questions
from tests.support.parsed_notes import parse

BODY = (
    "Clay is fired twice, first to make it hard and then to melt the glaze, and the second fire decides its colour. "
    * 2
)


def note(path, text):
    return parse(text.encode(), path, mtime_ms=0)


def questions(*notes, most=100):
    return make_questions(notes, most)


def passages(document):
    return split_document(document, chunk_sizes(256), lambda texts: [len(text.split()) for text in texts])


def test_each_kind_of_name_is_a_question_to_its_note():
    kiln = note("Firing pottery.md", f"---\naliases: [Baking of clay]\n---\n## Glaze and colour\n\n{BODY}")
    index = note("Index.md", f"See [[Firing pottery|how pots become hard]] and [[Firing pottery]].\n\n{BODY}")
    found = {(question.kind, question.text): question for question in questions(kiln, index)}
    assert {key: question.target for key, question in found.items()} == {
        ("title", "Firing pottery"): "Firing pottery.md",
        ("alias", "Baking of clay"): "Firing pottery.md",
        ("heading", "Glaze and colour"): "Firing pottery.md",
        ("link", "how pots become hard"): "Firing pottery.md",
    }
    assert found["link", "how pots become hard"].without == {"Index.md"}
    assert found["title", "Firing pottery"].without == frozenset()


def test_a_text_that_could_mean_several_notes_is_no_question():
    assert questions(note("a/Weekly review.md", BODY), note("b/Weekly review.md", BODY)) == []
    one, two = note("One.md", f"# Open questions\n\n{BODY}"), note("Two.md", f"# Open questions\n\n{BODY}")
    assert questions(one, two) == []


def test_a_date_a_single_word_and_a_note_without_text_give_no_question():
    assert questions(note("2026-01-01.md", BODY), note("Kiln.md", BODY), note("Firing pottery.md", "short")) == []
    template = note("Meeting notes.md", f"---\ndate: {{{{date}}}}\n---\n{BODY}")
    assert questions(template) == []


def test_a_long_note_gives_one_question_of_each_kind():
    long = note("Firing pottery.md", "".join(f"# Heading number x{n} here\n\n{BODY}\n\n" for n in range(20)))
    assert sorted(question.kind for question in questions(long)) == ["heading", "title"]


def test_questions_are_the_same_whatever_the_order_of_the_notes_and_at_most_as_many_as_wanted():
    notes = [
        note(f"Note about {word} things.md", f"# More on {word}\n\n{BODY}") for word in ("red", "blue", "green", "grey")
    ]
    assert sorted(questions(*notes, most=5), key=str) == sorted(questions(*reversed(notes), most=5), key=str)
    kinds = [question.kind for question in questions(*notes, most=5)]
    assert (kinds.count("title"), kinds.count("heading")) == (3, 2)


def test_names_are_hidden_and_the_text_below_them_stays():
    kiln = note("Firing pottery.md", f"---\naliases: [Baking of clay]\n---\nIntro.\n\n## Glaze and colour\n\n{BODY}")
    (passage,) = passages(hide_names(kiln))
    assert "Intro." in passage.embedded and "Clay is fired" in passage.embedded
    for name in ("Firing pottery", "Baking of clay", "Glaze and colour"):
        assert name not in passage.embedded


@given(
    st.lists(
        st.sampled_from(["# A\n", "## B *c*\n", "text\n", "- item\n", "\n", "```\n# no heading\n```\n", "%% x %%\n"])
    )
)
def test_blocks_of_a_note_without_names_are_where_they_say(lines):
    document = note("a.md", "".join(lines))
    hidden = hide_names(document)
    kept = [document.text[block.start : block.end] for block in document.blocks if block.kind != "heading"]
    assert [hidden.text[block.start : block.end] for block in hidden.blocks] == kept
    assert not any(block.trail for block in hidden.blocks)
