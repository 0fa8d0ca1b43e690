"""index/topics/word_roles.py: which words of a sentence are nouns, in each language."""

import pytest

from index.encoders.word_frequency import word_ranks
from index.text.words import detect_language, tokenize
from index.topics.word_classes import ENGLISH_ADJECTIVES, ENGLISH_EITHER, ENGLISH_VERBS
from index.topics.word_roles import Role, word_roles


def nouns(text):
    language = detect_language(text, word_ranks())
    line = list(tokenize(text, language))
    return [token.text for token, role in zip(line, word_roles(line, language), strict=True) if role is Role.NOUN]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The scrollbar appears when you scroll the page.", ["scrollbar", "page"]),
        ("You can combine them, stack them and enlarge the description box.", ["description", "box"]),
        ("The process stops if you process the query.", ["process", "query"]),
        ("The tool is invalid, but the notice is very vibrant.", ["tool", "notice"]),
        ("We are querying the vault by clicking on the little pencil.", ["vault", "pencil"]),
        ("Remember to install the plugin quickly.", ["plugin"]),
        ("When filtering queries, it sometimes skips an important task.", ["query", "task"]),
        ("The option controls how the printer works.", ["option", "printer"]),
        ("This command searches for the brighter printer, and matches packages.", ["command", "printer", "package"]),
        ("They said “Choose Live Preview” to the painter.", ["preview", "painter"]),
        ("The passport expires while a cat named Tom sits there.", ["passport", "cat", "tom"]),
        ("It uses row-level locking and CREATE INDEX CONCURRENTLY on Mondays.", ["row-level", "locking", "index"]),
    ],
)
def test_an_english_verb_or_adjective_is_no_noun(text, expected):
    assert nouns(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Der Filter des neuen Servers wird schnell gereinigt.", ["filter", "server"], id="genitive"),
        pytest.param("Versionierung ist für die Datei wichtig.", ["versionierung", "datei"], id="first word"),
        pytest.param(
            "Beim Erstellen und Markieren von Bildern hilft das Fenster.", ["bildern", "fenster"], id="no verbs"
        ),
        pytest.param(
            "Das Unix-typische Werkzeug ist System- und Netzfehlern gewachsen.",
            ["werkzeug", "netzfehlern"],
            id="adjective and half word",
        ),
        pytest.param("Wenn Sie auf das Fenster klicken, ist es offen.", ["fenster"], id="verb and pronoun"),
    ],
)
def test_a_german_noun_is_a_word_with_a_capital(text, expected):
    assert nouns(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("El archivo que la contiene no es el mismo.", ["archivo"], id="Spanish: la before a verb"),
        pytest.param("Los píxeles cuyos valores se muestran.", ["píxeles", "valores"], id="Spanish: a relative pronoun"),
        pytest.param("GIMP la divide en las pequeñas piezas.", ["gimp", "piezas"], id="Spanish: an adjective first"),
        pytest.param("Il possède des options pour l’image et les calques.", ["options", "image", "calques"], id="French: elision"),
        pytest.param("Nous les déplaçons en le remplissant.", [], id="French: pronouns before verbs"),
        pytest.param("L’outil de déplacement est dans la fenêtre d’arrivée.", ["outil", "déplacement", "fenêtre", "arrivée"], id="French: nouns with endings of verbs"),
        pytest.param("La société les développe et les commercialise pour les clients.", ["société", "clients"], id="French: a plural pronoun before verbs"),
        pytest.param("Il faut le serveur pour l’activer et servez-vous du menu Ouvrir.", ["serveur", "menu"], id="French: infinitives and imperatives"),
        pytest.param("El programa registra los prefijos binarios y decimales.", ["programa", "prefijos"], id="Spanish: verbs and adjectives"),
        pytest.param("El barco llega con regularidad a la costa en formato digital.", ["barco", "costa", "formato"], id="Spanish: adverbs of two words"),
        pytest.param("Asegúrate de que éstos son las copias locales de la orden.", ["copias", "orden"], id="Spanish: imperatives, pronouns and adjectives"),
        pytest.param("Tout fonctionnera sans Nouvelles fonctions en outre.", ["fonctions"], id="French: verbs, adverbs and adjectives with a capital"),
        pytest.param("El conocido gestor llega casi salvo la copia sin clave.", ["gestor", "copia", "clave"], id="Spanish: an adjective before its noun"),
        pytest.param("La copia per il server è nel cassetto della cucina.", ["copia", "server", "cassetto", "cucina"], id="Italian"),
        pytest.param("A cópia do servidor não está na gaveta com uma chave.", ["cópia", "servidor", "gaveta", "chave"], id="Portuguese"),
    ],
)  # fmt: skip
def test_a_noun_of_a_romance_language_stands_behind_an_article_or_a_preposition(text, expected):
    assert nouns(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("従来考えられていた技法を継続する。", ["技法"]),
        ("国連に加盟した。", ["国連"]),
        ("重要な気象現象である。", ["気象現象"]),
        ("ジョン・バーナルが梅雨入りを発表した。", ["ジョン-バーナル", "梅雨"]),
    ],
)
def test_japanese_verbs_and_adjectives_are_no_nouns(text, expected):
    assert nouns(text.replace("ジョン-", "ジョン・")) == [word.replace("-", "・") for word in expected]


def test_chinese_verbs_are_no_nouns():
    assert nouns("我们购买数据库软件。") == ["数据库", "软件"]
    assert nouns("如何区分两者？房子迷人又低调。") == ["房子"]


def test_the_parts_of_a_foreign_name_are_one_chinese_noun():
    assert nouns("法德尔丝毫没有胆怯，邀请约翰·杜尔前往库比蒂诺。") == ["法德尔", "约翰·杜尔", "库比蒂诺"]


def test_the_lists_agree():
    assert set() == ENGLISH_EITHER - ENGLISH_VERBS
    assert {"task", "note", "server", "plugin", "database"} & (ENGLISH_VERBS | ENGLISH_ADJECTIVES) == set()
