"""index/topics/sentence_shortening.py: where a long sentence is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.text.sentences import SUMMARY
from index.topics.sentence_shortening import lacks_main_clause, shorten_sentence

REST = "wet windy stormy " * 8


@pytest.mark.parametrize(
    ("language", "kept", "left_out"),
    [
        pytest.param("en", "The boat that we bought last year has a heavy keel", f" ({REST}), of lead.", id="a remark"),
        pytest.param("en", "The boat that we bought last year has a heavy keel of lead and a long mast", f"; {REST}.", id="a semicolon"),
        pytest.param("en", "The boat that we bought last year has a heavy keel of lead", f" because everybody fears {REST}.", id="a clause"),
        pytest.param("en", "If the boat has a heavy keel of lead, it is very steady", f" when others fear {REST}.", id="behind the main clause"),
        pytest.param("en", "The boat that we bought last year has a heavy keel of heavy lead plus a quiet place", f" between lines and {REST}.", id="a phrase with two parts"),
        pytest.param("de", "Das Boot, das wir im letzten Jahr gekauft haben, hat einen schweren Kiel aus Blei", ", weil wir damit ohne jede Angst vor dem Sturm über alle Meere segeln wollen.", id="German"),
        pytest.param("es", "El barco que compramos el año pasado tiene una quilla pesada de plomo", f" porque queremos {REST}.", id="Spanish"),
        pytest.param("fr", "Le bateau de la famille a une lourde quille de plomb et un long mât", f" : elle est {REST}.", id="French: a colon"),
        pytest.param("fr", "Le bateau que nous avons acheté l'année dernière possède une lourde quille de plomb", f" pour naviguer {REST}.", id="French"),
    ],
)  # fmt: skip
def test_a_long_sentence_is_cut_behind_a_clause_or_a_phrase(language, kept, left_out):
    shown = shorten_sentence(kept + left_out, language)
    assert shown in (kept + "…", kept + ", of lead.")


@pytest.mark.parametrize(
    "end", ["so that the", "which is", "and to", "(of the", "“of lead", "with any", "because", "parce"]
)
def test_no_sentence_is_cut_behind_a_word_that_announces_another(end):
    text = f"The boat that we bought last year has a heavy keel and a long mast, {end} {REST}."
    assert not shorten_sentence(text, "en").removesuffix("…").endswith(end)


@pytest.mark.parametrize(
    ("language", "text", "short"),
    [
        pytest.param("en", f"With the {REST}for a year, the boat with its keel of lead is the best of the harbour.", "The boat with its keel of lead is the best of the harbour.", id="a phrase"),
        pytest.param("es", f"Aunque hay {REST}muy largo, es una buena idea comprar un barco con una quilla.", "Es una buena idea comprar un barco con una quilla.", id="a concession"),
        pytest.param("es", f"El barco de la familia, como una concesión {REST[:50]}hoy, ha llegado al puerto con una quilla de plomo.", "El barco de la familia ha llegado al puerto con una quilla de plomo.", id="a remark behind the subject"),
        pytest.param("de", "Über das Programm - vom Terminal aus gestartet - können Sie das Protokoll für jede andere Anwendung, die auf diesem Rechner läuft, getrennt kontrollieren.", "Über das Programm können Sie das Protokoll für jede andere Anwendung, die auf diesem Rechner läuft, getrennt kontrollieren.", id="a remark between dashes"),
    ],
)  # fmt: skip
def test_what_keeps_a_main_clause_from_fitting_is_left_out(language, text, short):
    assert shorten_sentence(text, language) == short


def test_no_sentence_ends_with_the_first_of_two_halves():
    text = f"Mit der Maske haben Sie nicht nur die Möglichkeit, den Bereich zu sehen, sondern auch, ihn zu bearbeiten {REST}."
    assert not shorten_sentence(text, "de").endswith("sehen…")


def test_an_article_that_is_a_preposition_elsewhere_begins_no_condition():
    text = f"A boat that we have never seen before lies in the harbour of the town, but nobody has any {REST}."
    assert shorten_sentence(text, "en") == "A boat that we have never seen before lies in the harbour of the town…"


def test_a_condition_without_its_main_clause_is_told_from_a_sentence():
    assert lacks_main_clause("If the boat has a keel…")
    assert not lacks_main_clause("If the boat has a keel, it is steady…")
    assert not lacks_main_clause("The boat has a keel…")


def test_a_sentence_loses_what_announces_a_list():
    assert shorten_sentence("Select the boat from a menu with:", "en") == "Select the boat from a menu…"
    assert shorten_sentence("There are three boats:", "en") == "There are three boats"


@given(
    st.text("the and, which; (boat) “keel” ", max_size=400) | st.text(max_size=400),
    st.sampled_from(["en", "de", "es", "fr", "it", "pt", "nl"]),
)
def test_a_short_sentence_fits_in_a_summary(text, language):
    assert len(shorten_sentence(text, language)) <= SUMMARY
