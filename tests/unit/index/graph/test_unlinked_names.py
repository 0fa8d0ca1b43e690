"""index/graph/unlinked_names.py: names of nodes in the observations of others."""

import itertools
import re
import time
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.encoders.word_frequency import word_ranks
from index.graph import unlinked_names
from index.graph.unlinked_names import UnlinkedName, find


def unrelated(_node, _other):
    return False


TELLER = "Zz, who tells"


def named(names, *texts, aliases=None, related=unrelated):
    """How often `texts`, observations of one more node, name each of `names`."""
    nodes = [(name, (aliases or {}).get(name, ()), ()) for name in names]
    found = find([*nodes, (TELLER, (), texts)], related, ordinary=word_ranks())
    assert all(gap.node == TELLER for gap in found)
    return {gap.referenced: gap.count for gap in found}


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        pytest.param("Ada Lovelace", "It was ADA LOVELACE, and ada\nlovelace again.", 2, id="letter case and blanks"),
        pytest.param("Café Brücke", unicodedata.normalize("NFD", "im café brücke"), 1, id="normal form"),
        pytest.param("Straßenbahn", "STRASSENBAHN", 1, id="case folding"),
        pytest.param("Heron battery", "the heron-battery, heron_battery, Heron‑battery", 3, id="a hyphen is a blank"),
        pytest.param("Heron battery", "Heron - battery; Heron. Battery; Heron, battery", 0, id="other signs are none"),
        pytest.param("Heron battery", "Heron\n\nbattery", 0, id="a paragraph ends"),
        pytest.param("Quorl", "Quorls, aQuorl, Quorl2, préQuorl", 0, id="a piece of a word is no name"),
        pytest.param("Quorl", "Quorl's (Quorl) Quorl/x “Quorl”. Quorl—", 5, id="signs part words"),
        pytest.param("Lance", "LanceDB and lance.connect", 0, id="nor is a piece of a name with a dot"),
        pytest.param("Node.js", "node.js; Node", 1, id="a dot in the name"),
        pytest.param("C++", "C, C# and C++.", 1, id="signs that belong to the word"),
        pytest.param(".NET", "on .NET, not on a net", 1, id="a dot before it"),
        pytest.param("Yahoo!", "Yahoo said", 1, id="a sign at its end may be missing"),
        pytest.param("Quorl", "https://quorl.example/Quorl Quorl@x", 1, id="addresses name nothing"),
        pytest.param("लखनऊ", "मैं लखनऊ गया। लखनऊवाला", 1, id="Devanagari, with its signs"),
        pytest.param("ירושלים", "\u200fירושלים היא עיר", 1, id="Hebrew"),
        pytest.param("서울", "서울에서 왔다. 서울은 크다. 서울역", 2, id="Korean, with its endings"),
        pytest.param("京都", "京都へ行く。古都京都の寺", 2, id="Han needs no boundary"),
        pytest.param("包灵犀", "昨天包灵犀说了", 1, id="a Chinese name"),
        pytest.param("กรุงเทพ", "ไปกรุงเทพวันนี้", 1, id="Thai"),
        pytest.param("กา", "ก่า กา้", 0, id="but marks belong to their letter"),
        pytest.param("LanceDB", "LanceDBを使う", 1, id="scripts part words"),
        pytest.param("リスト", "リストアのリスト", 1, id="a short word of katakana stands for itself"),
        pytest.param("データベース", "データベースサーバー", 1, id="a long one may be part of a word"),
        pytest.param("🏡 House", "the 🏡 House", 1, id="a sign before it"),
    ],
)
def test_a_name_is_found_by_its_words(name, text, count):
    assert named([name], text) == ({name: count} if count else {})


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        pytest.param("Rust", "Rust, not rust or RUST", 1, id="an ordinary word must be spelt so"),
        pytest.param("rust", "Rust, rust", 2, id="without a capital it says nothing"),
        pytest.param("Go", "We use Go. Go home, I go. No-Go; Go-to. • Go", 1, id="a function word stands within"),
        pytest.param("IT", "it is IT. IT is here", 2, id="a short form may begin a sentence"),
        pytest.param("the", "the the", 0, id="a function word without a capital"),
        pytest.param("C", "C and C", 0, id="one character"),
        pytest.param("2026", "in 2026", 0, id="a number"),
        pytest.param("東", "東京", 0, id="one character of Han"),
        pytest.param("东西", "这个东西", 0, id="a Chinese word that says nothing"),
        pytest.param("C", "[[C]] [[C|see]] [[C#^o1]]", 3, id="but a link is plain"),
        pytest.param("Go", "[[go]] [[Go|the language]]", 2, id="whatever its spelling"),
        pytest.param("Ada", "[[Ada|Ada]]", 1, id="and counts once"),
    ],
)
def test_the_more_common_a_name_the_more_is_asked(name, text, count):
    assert named([name], text) == ({name: count} if count else {})


def test_the_longest_name_wins_and_covers_what_it_holds():
    names = ["New York", "New York Times", "Times Square", "York", "京都", "東京都"]
    assert named(names, "The New York Times of New York, Times Square") == {
        "New York": 1,
        "New York Times": 1,
        "Times Square": 1,
    }
    assert named(names, "New York Times Square") == {"New York Times": 1}
    assert named(names, "東京都") == {"東京都": 1}


def test_a_shorter_name_is_taken_where_the_longer_one_does_not_fit():
    assert named(["リスト", "リス"], "リス、リスト、リスト化、リスが") == {"リス": 2, "リスト": 2}


def test_a_node_neither_names_itself_nor_what_its_own_name_holds():
    nodes = [("Heron battery", (), ["The Heron battery"]), ("Heron", (), ["about Heron, and the Heron battery"])]
    assert find(nodes, unrelated) == [UnlinkedName("Heron", "Heron battery", 1)]


def test_an_alias_names_its_node_and_a_name_beats_it():
    nodes = ["Ada Lovelace", "Ada Quorl", "Quill"]
    aliases = {"Ada Lovelace": ["Countess", "Adla"], "Ada Quorl": ["Adla", "Quill"]}
    found = named(nodes, "The Countess, Adla, a quill.", aliases=aliases)
    assert found == {"Ada Lovelace": 1, "Quill": 1}, "an alias that two have is nobody's"


def test_names_that_differ_in_a_hyphen_are_each_named_by_their_spelling():
    assert named(["rain-gauge", "rain gauge"], "rain gauge; Rain-gauge, rain-gauge; rain_gauge") == {
        "rain gauge": 1,
        "rain-gauge": 2,
    }


def test_a_relation_in_either_direction_is_no_gap():
    nodes = [("Ada Quorl", (), ["Bim"]), ("Bim", (), ["Ada Quorl and Zor"]), ("Zor", (), ["Bim", "Bim, Bim"])]
    related = {("Bim", "Ada Quorl")}
    found = find(nodes, lambda a, b: (a, b) in related or (b, a) in related)
    assert found == [UnlinkedName("Zor", "Bim", 3), UnlinkedName("Bim", "Zor", 1)], "the most named first"


PIECES = ["zor", "bim", "quorl", "東", "京", "都", "リ"]
name = st.lists(st.sampled_from(PIECES), min_size=2, max_size=4).map(" ".join)
spaced = st.lists(st.sampled_from([*PIECES, "other", "."]), max_size=25).map(" ".join)


def naive(names, text):
    """The same, place by place; every piece stands between blanks."""
    pieces, found, at = text.split(), Counter(), 0
    split = sorted((each.split() for each in names), key=len, reverse=True)
    while at < len(pieces):
        hit = next((each for each in split if pieces[at : at + len(each)] == each), None)
        if hit:
            found[" ".join(hit)] += 1
        at += len(hit) if hit else 1
    return dict(found)


@given(st.sets(name, max_size=12), spaced)
def test_what_is_found_equals_a_search_place_by_place(names, text):
    assert named(sorted(names), text) == naive(names, text)


@given(st.permutations([("Zor bim", (), ("quorl bim", "bim zor bim")), ("Quorl bim", (), ("zor bim",)), ("Bim zor", ("Zor bim",), ("Quorl bim",))]))  # fmt: skip
def test_the_order_of_nodes_is_of_no_matter(nodes):
    assert find(nodes, unrelated) == find(nodes[::-1], unrelated)


@given(st.text(max_size=60), st.lists(st.text(min_size=1, max_size=6), max_size=6))
def test_any_text_is_read_and_counts_are_positive(text, names):
    found = find([(each, (each.upper(),), (text, each)) for each in dict.fromkeys(names)], unrelated)
    assert all(gap.count > 0 and gap.node != gap.referenced for gap in found)


HOSTILE = {
    "nested names": ["a " * n + "a" for n in range(1, 127)],
    "nested Han": ["京" * n for n in range(2, 256)],
    "katakana": ["リスト", "リスト" * 60],
    "two spellings": [sign.join("a" * length) for length in range(2, 128) for sign in " -"],
    "many spellings": ["a" + "a".join(signs) + "a" for signs in itertools.product(" -_", repeat=6)],
    "Go": ["Go", "May"],
    "word": ["abc"],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "piece"),
    [
        ("nested names", "a "), ("nested Han", "京"), ("katakana", "リスト"), ("Go", "Go "), ("Go", " " * 50 + "Go"), ("word", "a"), ("word", "[["),
        ("word", "[[a|"), ("word", "a."), ("word", "a-"), ("two spellings", "a_"), ("many spellings", "a\u2010"), ("word", "\n "), ("word", "e\u0301\u0302"), ("word", "http:"), ("word", "_"), ("word", "\n"),
    ],
)  # fmt: skip
def test_a_hostile_text_takes_no_longer_than_its_length(names, piece):
    """Thirty times what it takes here; time in the square of the text would be thousands."""
    begun = time.process_time()
    named(HOSTILE[names], piece * (100_000 // len(piece)))
    assert time.process_time() - begun < 5


SIGNS = "aZ9._-+#^:/ \n\t\x1c()[]|"
PARTS = st.sampled_from([*SIGNS, "Quorl", "Heron battery", ".NET", "C++", "Go"])


@given(st.lists(PARTS, max_size=24).map("".join))
def test_ascii_is_read_as_other_text_is(text):
    names = ("Quorl", "Heron battery", ".NET", "C++", "C#", "Go", "aZ9")
    assert named(names, text) == named(names, f"{text}\n\né")


WORD = r"(?:(?<![\w.])\.)?[a-zA-Z0-9]+(?:\.[a-zA-Z0-9]+)*(?:\+\+|#(?![\w^]))?"


@given(st.lists(PARTS, max_size=24).map("".join))
def test_a_word_is_read_alike_with_or_without_a_full_stop_before_it(text):
    plain = re.compile(rf"{WORD}|\n[^\S\n]*\n\s*|[^\s\w]|_")
    joined = re.sub(r"(?<=\w)[-_](?=\w)", " ", text)
    assert unlinked_names._part_joined_words(text) == joined
    assert unlinked_names._PLAIN.findall(joined) == plain.findall(joined)


@given(st.sets(st.lists(PARTS, min_size=1, max_size=6).map("".join), max_size=6), st.lists(PARTS, max_size=24))
def test_a_file_name_that_is_the_name_in_lower_case_adds_nothing(names, parts):
    text = "".join([*parts, *names])
    names = sorted(names)
    assert named(names, text, aliases={name: (name.lower(),) for name in names}) == named(names, text)
