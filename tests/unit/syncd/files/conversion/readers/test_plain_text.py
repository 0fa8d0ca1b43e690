"""Text is read in any encoding, JSON and CSV in any shape, and what is none of them says so."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syncd.files.conversion.readers.clean_text import remove_invisible
from syncd.files.conversion.readers.plain_text import decode, read_csv, read_json, read_markdown, read_text
from syncd.files.conversion.readers.reader_result import ReaderLimits, TooLarge, UnreadableFile

BOUNDS = ReaderLimits(pages=10, inflated=1 << 20, text=100_000)
WEEK = "来週の会議は水曜日の午後三時に変更となります。資料は添付のとおりです。"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Sehr geehrte Frau Müller, die Größe der Lieferung überrascht uns: fünf Säcke."),
        ("cp1252", "Grüße aus Köln"),
        ("cp1252", "naïve café – “quoted” text costs 5 €"),
        ("cp1252", "Il était une fois à l'école où les élèves étaient très gâtés; ça va être drôle."),
        ("cp1252", "año mañana niño corazón"),
        ("cp1250", "Zażółć gęślą jaźń. Pchnąć w tę łódź jeża lub ośm skrzyń fig."),
        ("cp1250", "Příliš žluťoučký kůň úpěl ďábelské ódy, řekl starý muž."),
        ("cp1251", "Съешь же ещё этих мягких французских булок, да выпей чаю."),
        ("koi8_r", "Съешь же ещё этих мягких французских булок, да выпей чаю."),
        ("cp1253", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία, είπε ο γέρος."),
        ("cp1254", "Pijamalı hasta yağız şoföre çabucak güvendi. İstanbul'da güzel bir gün."),
        ("cp1255", "דג סקרן שט בים מאוכזב ולפתע מצא חברה"),
        ("cp1256", "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر"),
        ("shift_jis", WEEK), ("cp932", "会社名,担当者,金額\n㈱山田商事,髙橋一郎,1000\n①鈴木工業,佐藤花子,2000\n"), ("euc_jp", WEEK),
        ("utf-16-le", "Grüße aus Köln"), ("utf-16-be", "Grüße aus Köln"),
        ("gb18030", "今天下午三点在会议室开会，请大家准时参加，并带上资料。"),
        ("big5", "今天下午三點在會議室開會，請大家準時參加，並帶上資料。"),
        ("euc_kr", "내일 오후 세 시에 회의실에서 회의가 있습니다. 자료를 가져오세요."),
        ("cp949", "회사,이름\n뷁샾 컴퍼니,똠방각하 펲시\n서울 특별시의 회사,김철수\n"),
    ],
)  # fmt: skip
def test_an_encoding_without_a_mark_is_guessed_and_told(encoding, text):
    found, warnings = decode(text.encode(encoding))
    assert found == text
    assert "guessed" in warnings[0]


def test_japanese_text_of_seven_bits_is_no_ascii():
    raw = f"Termin: {WEEK}".encode("iso2022_jp")
    assert decode(raw) == (f"Termin: {WEEK}", ())
    assert decode(raw[:-6], cut=True) == (f"Termin: {WEEK[:-2]}", ())
    shell = "\x1b$@ and \x1b[1m bold \xe9"
    assert decode(shell.encode()) == (shell, ())


@given(st.text(), st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]))
@example("\0", "utf-8")
@example("a\0", "utf-8")
def test_unicode_is_read_as_it_is(text, encoding):
    if text.startswith("\ufeff") or text.count("\0") > 4:
        return
    assert decode(text.encode(encoding, "ignore")) == (text, ())


def test_a_few_bytes_that_are_no_text_are_replaced_and_told():
    raw = "Die Größe der Wellen überrascht.".encode().replace(b"W", b"\xff")
    assert decode(raw) == ("Die Größe der \ufffdellen überrascht.", ("some bytes are not text; Memex replaced them",))


@pytest.mark.parametrize("raw", [bytes(range(256)) * 20, b"\0" * 100, b"\xff\x00\x80" * 50])
def test_bytes_that_are_no_text_are_refused(raw):
    with pytest.raises(UnreadableFile, match="not text"):
        decode(raw)


def test_text_is_cut_where_no_more_can_be_kept():
    found = read_text(io.BytesIO(b"x" * 500_000), BOUNDS)
    assert found.cut
    assert len(found.text) == 400_001


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
@example("\x7f")
@example({"a": "x\u2028``\ufeff``\u2028# Heading"})
def test_json_is_laid_out_and_says_the_same(value):
    found = remove_invisible(read_json(io.BytesIO(json.dumps(value).encode()), BOUNDS).text)
    fence, body = re.fullmatch(r"(`{3,})json\n(.*)\n\1\n", found, re.DOTALL).groups()
    assert fence not in body
    assert json.loads(body) == value


@pytest.mark.parametrize("invisible", ["\u2028", "\u2029", "\x85"])
def test_a_line_separator_in_json_or_in_a_cell_is_no_end_of_a_line(invisible):
    read = read_json(io.BytesIO(f'{{"a": "x{invisible}y"}}\r{{"a": 1}}'.encode()), BOUNDS)
    assert (read.text, read.warnings) == (
        f'```json\n{{\n "a": "x\\u{ord(invisible):04x}y"\n}}\n{{\n "a": 1\n}}\n```\n',
        (),
    )
    rows = f"name,note\r\nAda,one{invisible}two\r\n".encode()
    assert read_csv(io.BytesIO(rows), BOUNDS).text == "| name | note |\n| --- | --- |\n| Ada | one two |"


@pytest.mark.parametrize("text", ["日本語テキスト", "Привет мир ", "😀😁"])
def test_a_file_that_is_cut_inside_a_character_has_no_bad_bytes(text):
    raw = (text * 20_000).encode()
    for most in (30_001, 30_002, 30_003, 30_004):
        read = read_text(io.BytesIO(raw), dataclasses.replace(BOUNDS, text=most))
        assert (read.cut, read.warnings) == (True, ())
        assert raw.decode().startswith(read.text)


def test_json_that_is_too_large_is_kept_as_text_and_says_so():
    read = read_json(io.BytesIO(f"[{'1,' * 300_000}1]".encode()), BOUNDS)
    assert (read.cut, read.warnings) == (True, ("the JSON is too large to be formatted",))
    assert read.text.startswith("```json\n[1,1,")


def test_json_keeps_numbers_and_order_and_shows_characters():
    found = read_json(
        io.BytesIO(b'{"title":"Gez\\u00e4hlt","n":[1.50,1e3,12345678901234567890,{}],"empty":[]}'), BOUNDS
    )
    assert found.text == (
        '```json\n{\n "title": "Gezählt",\n "n": [\n  1.50,\n  1e3,\n  12345678901234567890,\n  {}\n ],\n "empty": []\n}\n```\n'
    )


@pytest.mark.parametrize("text", ["{0}", '{{"title": {0}}}\n{{"title": {0}}}'])
def test_json_with_an_integer_of_many_digits_is_valid(text):
    read = read_json(io.BytesIO(text.format("9" * 5_000).encode()), BOUNDS)
    assert read.warnings == ()
    assert "9" * 5_000 in read.text


def test_a_long_text_in_json_needs_little_memory():
    raw = json.dumps(["a" * 400_000, '\\"' * 100_000]).encode()
    tracemalloc.start()
    try:
        read = read_json(io.BytesIO(raw), dataclasses.replace(BOUNDS, text=1_000_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert read.warnings == ()
    assert peak < 12 * len(raw)


@given(st.text(st.sampled_from('",;|\t\n\r\0 a=sep'), max_size=40))
@example('sep="\n"a')
def test_any_text_is_read_as_rows(text):
    read_csv(io.BytesIO(text.encode()), BOUNDS)


def test_json_of_one_value_a_line_is_laid_out():
    assert (
        read_json(io.BytesIO(b'{"a": 1}\n\n{"a": 2}\n'), BOUNDS).text == '```json\n{\n "a": 1\n}\n{\n "a": 2\n}\n```\n'
    )


def test_json_that_is_none_is_kept_as_text_and_told():
    found = read_json(io.BytesIO(b'{"a": ```'), BOUNDS)
    assert found.text == '````json\n{"a": ```\n````\n'
    assert found.warnings == ("the file is not valid JSON; Memex keeps it as text",)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("a,b\n1,2\n", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("a;b\n1,5;2\n", "| a | b |\n| --- | --- |\n| 1,5 | 2 |"),
        ("a\tb\n1\t2\n", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("a|b\n1|2\n", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        (
            'name,note\n"Smith, J","two\nlines ""so"""\n',
            '| name | note |\n| --- | --- |\n| Smith, J | two lines "so" |',
        ),
        ("sep=;\na;b\n1;2\n", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("\ufeffa,b\r\n1,2\r\n", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("a,b\n\n,\n1\n", "| a | b |\n| --- | --- |\n| 1 |  |"),
        ("one\ntwo\n", "one\ntwo\n"),
    ],
)
def test_rows_of_any_dialect_are_a_table(raw, text):
    assert read_csv(io.BytesIO(raw.encode()), BOUNDS).text == text


def test_a_row_without_end_is_refused():
    with pytest.raises(TooLarge, match="1,000 columns"):
        read_csv(io.BytesIO(b"," * 5_000 + b"x"), BOUNDS)


@pytest.mark.parametrize(
    ("raw", "warnings"),
    [
        ("---\ntitle: Mine\ntags: [a]\n---\n# Head\n", ()),
        ("---\n: [\n---\nbody\n", ("the front matter is not YAML",)),
        ("---\nno end\n", ()),
        ("plain\n", ()),
    ],
)
def test_markdown_keeps_its_front_matter(raw, warnings):
    found = read_markdown(io.BytesIO(raw.encode()), BOUNDS)
    assert (found.text, found.warnings) == (raw, warnings)
