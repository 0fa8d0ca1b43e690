"""index/topics/noun_phrases.py: the phrases of a sentence that may be terms."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.encoders.word_frequency import word_ranks
from index.text.words import TextLanguage, detect_language, tokenize
from index.topics.noun_phrases import LONGEST, marked_phrase, noun_phrases
from index.topics.word_roles import Role, word_roles


def read(text):
    language = detect_language(text, word_ranks())
    return list(tokenize(text, language)), language


def phrases(text):
    return {" ".join(token.text for token in phrase.tokens) for phrase in noun_phrases(*read(text))}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("The regular expression of the search string.", {"expression", "regular expression", "search", "string", "search string"}, id="English: the noun is last"),
        pytest.param("La copia nocturna está en la base de datos.", {"copia", "copia nocturna", "base", "datos", "base de datos"}, id="Spanish: the noun is first"),
        pytest.param("Un calque actif sur les captures d’écran.", {"calque", "calque actif", "captures", "écran", "captures d' écran"}, id="French"),
        pytest.param("Der schnelle Server und das Netz.", {"server", "netz"}, id="German: without adjectives"),
        pytest.param("백업은 매일 암호화", {"백업", "매일", "암호화"}, id="Korean: single words"),
        pytest.param("The due date of the unit test.", {"due date", "due", "date", "unit test", "test", "unit"}, id="English: compounds of frequent words"),
        pytest.param("La Boîte à outils.", {"boîte", "outils", "boîte à outils"}, id="French: a preposition inside"),
        pytest.param("And so it was.", set(), id="none"),
    ],
)  # fmt: skip
def test_phrases_are_nouns_with_the_words_that_belong_to_them(text, expected):
    assert phrases(text) == expected


def test_a_phrase_knows_whether_more_of_it_follows():
    by_text = {" ".join(token.text for token in one.tokens): one for one in noun_phrases(*read("the search string"))}
    assert (by_text["search string"].whole, by_text["search string"].head, by_text["search string"].compound) == (
        True,
    ) * 3
    assert (by_text["search"].whole, by_text["search"].head) == (False, False)
    assert (by_text["string"].whole, by_text["string"].head) == (False, True)


@pytest.mark.parametrize(
    ("text", "phrase", "kept"),
    [
        ("La codificación con la precisión de coma flotante.", "precisión de coma", False),
        ("La codificación con la precisión de coma flotante.", "precisión de coma flotante", True),
        ("Les sommes de contrôle stockées sont dans la base.", "sommes de contrôle", True),
    ],
)
def test_a_romance_phrase_is_whole_with_its_adjective_but_not_its_participle(text, phrase, kept):
    by_text = {" ".join(token.text for token in one.tokens): one for one in noun_phrases(*read(text))}
    assert by_text[phrase].whole == kept


def test_words_with_a_capital_are_a_name_as_a_whole():
    names = [phrase for phrase in noun_phrases(*read("This is how Query File Defaults help us")) if phrase.named]
    assert [[token.text for token in name.tokens] for name in names] == [["query", "file", "defaults"]]


@pytest.mark.parametrize(
    ("text", "times", "kept"),
    [
        ("cost per use", 2, True),
        ("cost per use", 1, False),
        ("heat pump", 1, True),
        ("buy it for life", 2, False),
        ("one, two", 1, False),
        ("a phrase that is much too long", 2, False),
    ],
)
def test_a_marked_phrase_is_kept_whole_if_it_can_be_a_term(text, times, kept):
    english = TextLanguage("en", japanese=False, places=word_ranks())
    assert (marked_phrase(list(tokenize(text, english)), english, times) is not None) == kept


@settings(deadline=None)  # the first Chinese word loads a dictionary
@given(
    st.text(st.characters(exclude_categories=()), max_size=200)
    | st.text("the of la de Datei 東アgrün s'-. ", max_size=200)
)
def test_every_phrase_is_a_part_of_one_run(text):
    line, language = read(text)
    roles = word_roles(line, language)
    parts = {
        tuple(id(token) for token in line[start:end])
        for start in range(len(line))
        for end in range(start + 1, start + LONGEST + 1)
        if Role.OTHER not in roles[start:end]
    }
    assert all(tuple(map(id, phrase.tokens)) in parts for phrase in noun_phrases(line, language))
