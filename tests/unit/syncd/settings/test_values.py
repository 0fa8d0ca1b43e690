"""Values written as text mean what they mean in TOML, and wrong ones are told in words."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.settings.values import Setting, Variants, convert, describe_type, did_you_mean, setting, settings_of


@dataclasses.dataclass(frozen=True)
class Apple:
    """A kind for the tests."""

    name: str
    weight: float = 1.0


@dataclasses.dataclass(frozen=True)
class Pear:
    """Another kind for the tests."""

    ripe: bool = False


class Known(Variants):
    """Variants of this file, which is not importable by its name."""

    def load_class(self, kind):
        return {"apple": Apple, "pear": Pear}[kind]


FRUIT = Known("", {"apple": "Apple", "pear": "Pear"})


def one(kind, **rest):
    return Setting("a.b", kind, None, "A sentence.", **rest)


@pytest.mark.parametrize(
    ("kind", "written", "meant"),
    [
        pytest.param(int, "8765", 8765, id="a whole number"),
        pytest.param(float, "0.4", 0.4, id="a number"),
        pytest.param(bool, "Yes", True, id="a yes"),
        pytest.param(bool, "0", False, id="a no"),
        pytest.param(str, "日本語", "日本語", id="text"),
        pytest.param(Path, "~/x", Path("~/x"), id="a path"),
        pytest.param(tuple[str, ...], "a, b ,", ("a", "b"), id="a list with commas"),
        pytest.param(tuple[str, ...], '["a,b", "c"]', ("a,b", "c"), id="a list in JSON"),
        pytest.param(Mapping[str, str], '{"region": "x"}', {"region": "x"}, id="a table in JSON"),
        pytest.param(Literal["on", "off"], "off", "off", id="a choice"),
        pytest.param(int | None, "3", 3, id="an optional number"),
    ],
)
def test_text_of_the_environment_means_a_typed_value(kind, written, meant):
    assert convert(one(kind), written, text=True) == meant


@pytest.mark.parametrize(
    ("kind", "value", "text", "sentence"),
    [
        pytest.param(int, "x", True, "a whole number", id="a word for a number"),
        pytest.param(int, "8765", False, "a whole number", id="quoted number in the file"),
        pytest.param(int, 1.5, False, "a whole number", id="a fraction"),
        pytest.param(int, True, False, "a whole number", id="a truth for a number"),
        pytest.param(float, "nan", True, "a number", id="not a number"),
        pytest.param(float, float("inf"), False, "a number", id="without an end"),
        pytest.param(float, "-inf", True, "a number", id="without a beginning"),
        pytest.param(int, 10**400, False, "at most 1,152,921,504,606,846,976", id="a number that no float can hold"),
        pytest.param(float, 1e300, False, "at most 1,000,000,000", id="more seconds than a clock has"),
        pytest.param(bool, "maybe", True, "true or false", id="maybe"),
        pytest.param(bool, 1, False, "true or false", id="one for true in the file"),
        pytest.param(str, 3, False, "text", id="a number for text"),
        pytest.param(str, "a\0b", True, "NUL", id="a NUL"),
        pytest.param(Path, "", True, "empty", id="an empty path"),
        pytest.param(tuple[str, ...], "[1", True, "JSON", id="broken JSON"),
        pytest.param(tuple[str, ...], "a", False, "list", id="text for a list in the file"),
        pytest.param(Mapping[str, str], {"a": 1}, False, "table of text", id="a table with numbers"),
        pytest.param(Literal["on", "off"], "of", True, "on, off", id="no choice"),
    ],
)
def test_a_wrong_value_is_told_in_words(kind, value, text, sentence):
    with pytest.raises(ValueError, match=sentence):
        convert(one(kind), value, text=text)


def test_bounds_are_held():
    port = one(int, least=0, most=65_535)
    assert convert(port, 0, text=False) == 0
    with pytest.raises(ValueError, match="at most 65535"):
        convert(port, 65_536, text=False)
    with pytest.raises(ValueError, match="at least 0"):
        convert(port, "-1", text=True)


@given(st.lists(st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)))))
def test_a_list_written_as_json_text_is_the_list_of_the_file(items):
    kind = one(tuple[str, ...])
    assert convert(kind, json.dumps(items), text=True) == convert(kind, items, text=False)


def test_a_list_of_tables_becomes_the_classes_that_their_kinds_name():
    given = [{"kind": "pear"}, {"kind": "apple", "name": "Cox"}]
    assert convert(one(FRUIT), given, text=False) == (Pear(), Apple("Cox"))
    assert convert(one(FRUIT), json.dumps(given), text=True) == (Pear(), Apple("Cox"))


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        pytest.param({"kind": "plum"}, "apple, pear", id="an unknown kind"),
        pytest.param({}, "apple, pear", id="no kind"),
        pytest.param({"kind": ["apple"]}, "apple, pear", id="a list of kinds"),
        pytest.param({"kind": "apple"}, "name is missing", id="something missing"),
        pytest.param({"kind": "pear", "rip": True}, "did you mean ripe", id="a slip"),
        pytest.param({"kind": "apple", "name": "x", "weight": "y"}, "weight must be a number", id="a wrong value"),
        pytest.param("apple", "list of tables", id="text"),
    ],
)
def test_a_wrong_table_is_told_in_words(table, sentence):
    with pytest.raises(ValueError, match=sentence):
        convert(one(FRUIT), [table], text=False)


def test_a_dataclass_lists_its_settings_with_their_sentences():
    @dataclasses.dataclass(frozen=True, slots=True)
    class Server:
        port: int = setting(1, "The port.", least=0)
        options: Mapping[str, str] = setting({}, "The options.", secret=True)

    port, options = settings_of(Server, "server")
    assert (port.name, port.default, port.doc, port.least, port.type) == (
        "server.port",
        1,
        "The port.",
        0,
        "whole number",
    )
    assert (options.name, options.default, options.secret, options.type) == (
        "server.options",
        {},
        True,
        "table of text",
    )
    assert Server().options == {}


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (int | None, "whole number"),
        (tuple[str, ...], "list of text"),
        (Literal["a", "b"], "one of a, b"),
        (Path, "path"),
    ],
)
def test_types_are_said_in_words(kind, said):
    assert describe_type(kind) == said


@pytest.mark.parametrize(
    ("name", "wish"),
    [("server.prot", "server.port"), ("port", "server.port"), ("sever.host", "server.host"), ("zzz.qqq", None)],
)
def test_the_closest_name_is_offered(name, wish):
    assert did_you_mean(name, ["server.port", "server.host"]) == (f"; did you mean {wish}?" if wish else "")
