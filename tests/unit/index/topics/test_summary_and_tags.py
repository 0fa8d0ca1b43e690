"""index/topics/summary_and_tags.py and its parts: the summary and the tags of a note, in any script."""

import dataclasses

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from index.encoders.word_frequency import word_ranks
from index.text.sentences import plain_text, read_prose, shorten
from index.text.words import detect_language, tokenize
from index.topics.summary_and_tags import enrich, normalize_answer
from syncd.notes.inline_syntax import is_tag
from tests.support.fakes import FakeEncoder
from tests.support.parsed_notes import parse

GERMAN = "Die Datenbank läuft seit gestern auf dem neuen Server. Die Sicherung der Datenbank dauert jetzt vier Minuten."
SPANISH = (
    "El oxígeno disuelto en el estanque baja por la noche. Una bomba de aire mantiene el oxígeno durante el verano."
)
JAPANESE = "深海熱水孔の発見は学者を驚かせた。太陽エネルギーの存在しない深海で、生物が生態系を形成している。太陽エネルギーに依存しない生態系である。"
CHINESE = "双向链接让笔记软件更有用。笔记软件的插件很多，数据库也可以放在里面。选择笔记软件时先看数据格式。"


def note(text, path="Captures/default/Untitled.md"):
    return parse(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text, path, mtime_ms=0)


def found(text, vocabulary=(), **given):
    known = dict.fromkeys(vocabulary, 3) if not isinstance(vocabulary, dict) else vocabulary
    return enrich(note(text), vocabulary=known, places=word_ranks(), **given)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        pytest.param(
            "# Heat pump\n\nThe filter of the heat pump is due in May.", {"heat-pump", "filter"}, id="English"
        ),
        pytest.param(
            "The reference date is a date. Drag the reference date to the settings dialog.",
            {"reference-date", "settings-dialog"},
            id="English: rather the phrase than its main word",
        ),
        pytest.param(GERMAN, {"datenbank", "server", "sicherung"}, id="German"),
        pytest.param(SPANISH, {"oxígeno", "estanque"}, id="Spanish, with its accents"),
        pytest.param(JAPANESE, {"太陽エネルギー", "生態系", "深海熱水孔"}, id="Japanese, without blanks"),
        pytest.param(CHINESE, {"笔记软件", "数据库"}, id="Chinese, without blanks"),
        pytest.param("데이터베이스의 백업은 매일 합니다. 백업을 암호화합니다.", {"백업", "데이터베이스"}, id="Korean"),
        pytest.param("C++ and C# talk to Node.js through LanceDB.", {"csharp", "node-js", "lancedb"}, id="names"),
        pytest.param("The parser is written in C++.", {"parser", "cpp"}, id="a name with signs"),
    ],
)
def test_tags_are_what_a_note_is_about(text, tags):
    assert tags <= set(found(text).tags)


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        pytest.param(
            "Las páginas del sitio están en el extremo del servidor con el teclado y la pantalla.",
            {"extremo", "extremo-del-servidor"},
            id="vague",
        ),
        pytest.param("El archivo /usr/share/doc/readme es de la red.", {"usr", "share", "doc"}, id="a path"),
        pytest.param("北京大学刘明兴的著作也需要自己造太多轮子了。", {"北京大学刘明兴", "造太多"}, id="Chinese"),
        pytest.param("ゼネラル・モータースはSPEARを定めた。", {"ゼネラル-モータースspear"}, id="Japanese"),
    ],
)
def test_a_word_that_is_beside_the_topic_is_no_tag(text, absent):
    assert not absent & set(found(text).tags)


@pytest.mark.parametrize(
    ("text", "last"),
    [
        pytest.param("The server (or the printer in the old office) needs a router.", "printer", id="a remark"),
        pytest.param("Les bateaux, par exemple ceux du pilote, ont une quille.", "pilote", id="an example"),
        pytest.param("Our boat needs a keel, ropes, sails, oars and anchors for the harbour.", "oar", id="a list"),
    ],
)
def test_what_stands_beside_the_main_part_of_a_sentence_comes_last(text, last):
    assert found(text).tags
    assert last not in found(text).tags[:2]


def test_a_name_with_a_slash_is_no_part_of_a_phrase():
    assert "debian-gnu" not in found("当安装 Debian GNU/Linux 时，数据库很大。Debian GNU/Linux 的数据库。").tags


def test_a_noun_with_sans_is_one_tag():
    assert "réseau-sans-fil" in found("Le réseau sans fil de la maison est lent. Ouvrez le réseau sans fil.").tags


def test_a_reference_to_a_section_gives_no_tag():
    text = "The printer needs a driver, as said in Section 6.7, “Debian Archive Names”. See the page about the router."
    assert found(text).tags[:2] == ("printer", "driver")
    assert "debian-archive-names" not in found(text).tags


def test_a_part_of_a_name_is_no_tag_beside_it():
    text = "当安装 Debian Edu 时，数据库很大。使用 Debian Edu 的软件包。"
    assert "debian-edu" in found(text).tags
    assert not {"edu", "debian"} & set(found(text).tags)


def test_a_third_tag_that_is_in_doubt_is_left_out():
    assert found("Der Absatz nennt die Datenbank und den Server.").tags == ("datenbank", "server")


def test_a_paragraph_gets_three_tags_and_more_only_if_they_are_as_sure():
    text = "The heat pump needs a filter. A neighbour brought a ladder, a hammer, a bucket and a rope for the roof."
    assert len(found(text).tags) == 3
    assert len(found("# Heat pump\n\n" + "The filter, the boiler, the valve and the pump of the heater. " * 3).tags) > 3


def test_no_tag_says_a_word_twice():
    assert found("Der Absatz steht im Kapitel Kapitel 7 des Buches.").tags == ("buch", "kapitel")


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("Remember the milk.", {"milk"}),
        ("Buy milk and bread.", {"milk", "bread"}),
        ("Ask Anna about the invoice.", {"anna", "invoice"}),
        ("Meeting moved to Friday 3pm", {"meeting"}),
        ("Milch kaufen", {"milch-kaufen"}),  # nothing in it shows the language
        ("牛乳を買う", {"牛乳"}),
        ("And so it was.", set()),
    ],
)
def test_a_short_note_gets_the_tags_that_its_words_bear_and_no_filler(text, tags):
    assert set(found(text).tags) == tags


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        pytest.param("# A\n\nThe keel is **lead**.", "The keel is lead.", id="no markup"),
        pytest.param(
            "See [the plan](http://x.test/a_b) by [[People/Ada|Ada]] `now`.", "See the plan by Ada now.", id="links"
        ),
        pytest.param(
            "---\nid: x\nsecret: y\n---\n```\ncode here\n```\n| a | b |\n|---|---|\n\nPlain words.",
            "Plain words.",
            id="no code, table, property",
        ),
        pytest.param("%%hidden thoughts about pumps%% Pumps are shown.", "Pumps are shown.", id="no comment"),
        pytest.param("# Only a heading", "Only a heading", id="a heading when there is no more"),
        pytest.param("- [ ] call the bank about the mortgage", "call the bank about the mortgage", id="a task"),
        pytest.param("https://example.org/a/b/c", None, id="an address alone says nothing"),
        pytest.param("???", None, id="nor do signs"),
    ],
)
def test_the_summary_is_a_sentence_of_the_note_as_one_reads_it(text, summary):
    assert (
        enrich(
            note(text, "Captures/default/Capture 2026-11-21 05.00.00.md"), vocabulary={}, places=word_ranks()
        ).summary
        == summary
    )


@pytest.mark.parametrize(
    ("line", "short"),
    [
        pytest.param("a" * 200, "a" * 19 + "…", id="one long word"),
        pytest.param("the cat sat on the old mat", "the cat sat on the…", id="at a word"),
        pytest.param("we kept the boat, and sold it", "we kept the boat…", id="no comma before the dots"),
        pytest.param("we kept it, and sold the boat", "we kept it, and…", id="not at a clause"),
        pytest.param(
            "今日は良い天気なので散歩に行きました本当に", "今日は良い天気なので散歩に行きました本…", id="no blanks"
        ),
        pytest.param("👩‍💻" * 10, "👩‍💻" * 6 + "…", id="no half emoji"),
    ],
)
def test_a_long_line_is_cut_where_it_can_be(line, short):
    assert shorten(line, 20) == short
    assert len(short) <= 20


@pytest.mark.parametrize("text", [GERMAN, SPANISH, JAPANESE, CHINESE])
def test_a_note_of_some_sentences_has_three_to_seven_tags(text):
    assert 3 <= len(found(text).tags) <= 7


@given(st.text(st.characters(exclude_categories=()), max_size=400) | st.text("# -*_`[]()!|>\n東アab1.。", max_size=200))
@example("- a\n- b\n\n> [!note] x\n> y")
@example("e\u0301" * 300)
@example("\u202egnp.exe\u200b #ok")
def test_whatever_the_text_the_form_is_right_and_the_answer_the_same(text):
    one = found(text)
    assert one == found(text)
    assert len(one.tags) <= 7
    assert all(is_tag(tag) and tag == tag.lower() and any(c.isalpha() for c in tag) for tag in one.tags)
    if one.summary is not None:
        assert 0 < len(one.summary) <= 140
        assert one.summary == " ".join(one.summary.split())
        assert not set(one.summary) & set("\u202e\u200b\x00\ufeff")


@given(
    st.text("# -*_`[]()|>\n東アab1.。", max_size=120) | st.sampled_from([GERMAN, JAPANESE, "The rrf of k8s and x."]),
    st.dictionaries(
        st.text(st.characters(exclude_categories=()), max_size=30) | st.sampled_from(["a-b--c", "--", "k8s", "x"]),
        st.integers(0, 9),
        max_size=6,
    ),
    st.sampled_from([None, lambda texts: [[len(text) % 3 / 2, 1.0] for text in texts]]),
)
@example("x", {"a-b--c": 1}, None)
def test_no_tag_of_a_vocabulary_breaks_it(text, vocabulary, vectors):
    enrichment = found(text, vocabulary, vectors=vectors)
    assert len(enrichment.tags) <= 7
    assert len(enrichment.summary or "") <= 140
    answer = normalize_answer(text, [*vocabulary, 7, None], vocabulary=vocabulary, vectors=vectors)
    assert all(isinstance(tag, str) for tag in answer.tags)


@pytest.mark.parametrize(
    "piece", ["[[", "![[a", "**", "a.", "<a ", "\\[", "([", "`", "#", "漢", "ー", "a-", "{{", "x::", "%%", "> ", "- "]
)
def test_no_text_takes_long(piece):
    document = dataclasses.replace(note(piece * 10), text=piece * 40_000)
    document = dataclasses.replace(
        document, blocks=tuple(dataclasses.replace(one, end=120_000) for one in note("word").blocks)
    )
    import time

    begun = time.process_time()
    enrich(document, vocabulary={}, places=word_ranks())
    assert time.process_time() - begun < 2


def test_a_tag_in_use_is_preferred_and_variants_take_its_spelling():
    text = "The vector database keeps embeddings. Backups of the vector database run at night on the K8s cluster."
    assert {"vector-db", "kubernetes"} <= set(found(text, ["vector-db", "kubernetes"]).tags)
    assert "vector-database" in found(text).tags


def test_what_is_in_use_is_said_when_it_is_in_the_note_and_not_otherwise():
    text = "We moved the nightly backup to the second server. The gardener and the plumber came by as well."
    assert "backup" in found(text, {"backup": 9, "sailing": 40}).tags
    assert "sailing" not in found(text, {"backup": 9, "sailing": 40}).tags


def test_numbers_and_function_words_are_no_tags():
    assert found("It was 42 or 3.14 in 2026, and then there were 100 mm of it.").tags == ()


def test_a_secret_is_neither_told_nor_tagged():
    hidden = found(
        "The deploy key is hunter2hunter2 for the rocket.", clean=lambda text: text.replace("hunter2hunter2", "[key]")
    )
    assert "hunter2" not in str(hidden)
    assert "rocket" in hidden.tags


@pytest.mark.parametrize(
    ("summary", "tags", "expected"),
    [
        pytest.param("  A *line*\nof text ", ["#Vector DB", "42", "a/b", "vector-database"], ("A line of text", ("vector-db", "a-b")), id="brought into form"),
        pytest.param("x" * 500, [f"tag-{letter}" for letter in "abcdefghijk"], ("x" * 139 + "…", tuple(f"tag-{x}" for x in "abcdefg")), id="too much"),
        pytest.param(None, None, (None, ()), id="nothing"),
        pytest.param({"a": 1}, ["ok", 3, None, ["no"], {"x": "y"}], (None, ("ok",)), id="of other types"),
        pytest.param("\u202e<script>alert(1)</script> [click](javascript:x) https://evil.test/?q", ["../../etc", "'; drop", "{{x}}"], ("alert(1) click", ("etc", "drop", "x")), id="hostile"),
    ],
)  # fmt: skip
def test_what_somebody_else_found_is_brought_into_the_same_form(summary, tags, expected):
    one = normalize_answer(summary, tags, vocabulary={})
    assert (one.summary, one.tags) == expected
    assert all(map(is_tag, one.tags))


def test_vectors_are_asked_for_related_tags_only():
    encoder, asked = FakeEncoder(), []

    def vectors(texts):
        asked.append(list(texts))
        return encoder.encode(texts, kind="document", urgent=True).tolist()

    found("Sailing boats need keels.", ["kubernetes", "gardening"], vectors=vectors)
    assert asked == []
    found("The deployments were late, and deployments are our business.", ["deploying-things"], vectors=vectors)
    assert all("kubernetes" not in texts for texts in asked)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("the cat and the dog", "en"),
        ("der Hund und die Katze sind nicht da", "de"),
        ("el perro y la gata no están", "es"),
        ("le chien et les chats ne sont pas là", "fr"),
        ("kubernetes", "en"),
    ],
)
def test_the_language_is_that_of_most_function_words(text, language):
    assert detect_language(text, {}).language == language


def test_japanese_and_chinese_are_told_apart_by_kana():
    assert detect_language(JAPANESE, {}).japanese
    assert not detect_language(CHINESE, {}).japanese
    said = [
        token.text
        for token in tokenize("2014年12月の総選挙で議席を獲得", detect_language(JAPANESE, {}))
        if token and token.worth
    ]
    assert said == ["総選挙", "議席"]


def test_an_editor_s_line_breaks_end_no_sentence():
    text = "This sentence was wrapped by an editor at some sixty-odd columns\nand goes on here. A second one, by z.B. Dr. Who."
    assert read_prose(note(text)).sentences[0].endswith("and goes on here.")
    assert len(read_prose(note(text)).sentences) == 2
    assert plain_text("a \\*b\\* &amp; ~~c~~ ==d==") == "a *b* & c d"


def test_a_title_that_begins_the_text_counts_once_although_it_lacks_marks_of_the_text():
    text = "Kubernetes: the pods crash after the upgrade because the probe is too early. The probe waits a minute now."
    named = note(text, "Captures/default/Kubernetes the pods crash after the upgrade.md")
    assert enrich(named, vocabulary={}, places=word_ranks()) == found(text)
