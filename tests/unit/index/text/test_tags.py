"""index/text/tags.py: the form of tags, and which of them are one."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from index.text.tags import (
    SHORT,
    SPELT,
    are_variants,
    fold_accents,
    key_of,
    may_be_variants,
    to_tag,
    unify_spelling,
    words_of,
)
from syncd.notes.inline_syntax import is_tag

# What a person or an agent may have put among the tags of a note, whatever Obsidian makes of it.
ANYTHING = st.text(st.characters(exclude_categories=()), max_size=40)
ODD = st.text("ab-_/#1٣²8s:.ßİǅ東ー’'", max_size=12)
TAGS = ANYTHING | ODD | st.sampled_from([*SHORT, *SPELT, "a-b--c", "abc", "-", "--", "k8s", "i18n"])
LANGUAGES = st.sampled_from(["en", "de", "es", "pt", "fr", "nl", "ja", ""])
VECTORS = [None, lambda _: None, lambda texts: [[len(text) % 3 / 2, 1.0] for text in texts]]


@given(st.text(st.characters(exclude_categories=()), max_size=80))
def test_a_tag_is_one_that_obsidian_reads_and_stays_itself(text):
    tag = to_tag(text)
    assert tag == "" or (is_tag(tag) and len(tag) <= 40 and to_tag(tag) == tag)


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("Vector Database", "vector-database"),
        ("#snake_case", "snake-case"),
        ("C++", "cpp"),
        ("Ada's", "ada"),
        ("Oxígeno", "oxígeno"),
        ("検索 エンジン", "検索-エンジン"),
        ("データ", "データ"),
        ("2026", ""),
        ("🍀", ""),
        ("x" * 60, ""),
    ],
)
def test_text_becomes_a_tag(text, tag):
    assert to_tag(text) == tag


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("k8s", "kubernetes"), ("vector-db", "vector-database"), ("vectordatabase", "vector-database"), ("backup", "backups"),
        ("i18n", "internationalization"), ("rrf", "reciprocal-rank-fusion"), ("category", "categories"), ("oxigeno", "oxígeno"),
        ("postgres", "postgresql"), ("search-engine", "engine-search"), ("サーバー", "サーバ"), ("colour", "color"),
    ],
)  # fmt: skip
def test_variants_are_one(one, other):
    assert are_variants(one, other)
    assert are_variants(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("python-2", "python-3"), ("java", "javascript"), ("ai", "apple-inc"), ("monday", "tuesday"), ("frontend", "backend"),
        ("news", "new"), ("class", "clas"), ("が", "か"), ("バス", "ハス"), ("database", "vector-database"),
    ],
)  # fmt: skip
def test_others_are_not(one, other):
    assert not are_variants(one, other)


def test_german_plurals_are_one_in_german_only():
    assert are_variants("datenbank", "datenbanken", "de")
    assert not are_variants("datenbank", "datenbanken", "en")


def test_meaning_decides_between_tags_that_begin_alike_and_no_others():
    near = {
        "deployment": [1.0, 0.0],
        "deploying": [0.95, 0.31],
        "depleted": [0.0, 1.0],
        "python 2": [1.0, 0.0],
        "python 3": [1.0, 0.0],
    }

    def vectors(texts):
        return [near[text] for text in texts]

    assert unify_spelling(["deployment"], {"deploying": 3}, vectors=vectors) == ["deploying"]
    assert unify_spelling(["deployment"], {"depleted": 3}, vectors=vectors) == ["deployment"]
    assert unify_spelling(["python-2"], {"python-3": 3}, vectors=vectors) == ["python-2"]
    assert unify_spelling(["deployment"], {"deploying": 3}, vectors=lambda _: None) == ["deployment"]
    assert not may_be_variants("monday", "tuesday")


def test_the_spelling_in_use_wins_and_nothing_is_said_twice():
    assert unify_spelling(
        ["vector-database", "vector-databases", "new-thing"], {"vector-db": 5, "vector-databases": 2}
    ) == [
        "vector-db",
        "new-thing",
    ]
    assert key_of("vector-db") == key_of("VectorDatabases")


@given(TAGS, TAGS, LANGUAGES)
@example("x", "a-b--c", "en")
@example("abc", "a-b--c", "en")
@example("", "-", "en")
def test_any_two_texts_can_be_compared_in_either_order(one, other, language):
    assert are_variants(one, other, language) == are_variants(other, one, language)
    assert may_be_variants(one, other) == may_be_variants(other, one)
    assert are_variants(one, one, language)
    assert "".join(words_of(one)) == key_of(one)
    assert fold_accents(fold_accents(one)) == fold_accents(one)


@given(
    st.lists(TAGS, max_size=6),
    st.dictionaries(TAGS, st.integers(0, 9), max_size=6),
    LANGUAGES,
    st.sampled_from(VECTORS),
)
@example(["x"], {"a-b--c": 1}, "en", None)
def test_any_tags_are_spelt_as_any_vocabulary_has_them_each_once(wanted, vocabulary, language, vectors):
    spelt = unify_spelling(wanted, vocabulary, language=language, vectors=vectors)
    assert set(spelt) <= {*wanted, *vocabulary}
    assert len({key_of(tag) for tag in spelt}) == len(spelt) == len({key_of(tag) for tag in spelt})
    assert bool(spelt) == bool(wanted)
