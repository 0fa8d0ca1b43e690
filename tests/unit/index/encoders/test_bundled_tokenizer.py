"""Unit tests of `bundled_tokenizer`: its tokens are those of the library tokenizers, for every text."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Reference

from index.encoders import bundled_files, bundled_tokenizer
from index.encoders.bundled_model import BundledEncoder
from index.encoders.bundled_tokenizer import Tokenizer, count_tokens, load_tokenizer, load_vocabulary
from index.encoders.settings import BundledSettings
from tests.support.paths import ROOT

TEXTS = ["", "The filter is due in May.", "word " * 400, "日本語のテキスト", "line\nline"]
ALL = 1 << 32  # tokens; no text has as many
SPECIAL = ["[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]", "[sep]", "[S\x00EP]", "[[SEP]]", "[CLS", "[unused1]", "##ing"]
SCRIPTS = st.sampled_from(
    [range(0x80), range(0x80, 0x250), range(0x300, 0x370), range(0x370, 0x600), range(0x900, 0xE80), range(0x1100, 0x1200),
     range(0x1E00, 0x2070), range(0x3000, 0x3100), range(0x4E00, 0xA000), range(0xAC00, 0xD7A4), range(0xE000, 0x10000),
     range(0x10000, 0x20000), range(0x1F300, 0x1FB00), range(0x20000, 0x32000), range(0xE0000, 0x110000)]
)  # fmt: skip
CHARACTERS = SCRIPTS.flatmap(st.sampled_from).map(chr) | st.characters(blacklist_categories=("Cs",))
WORDS = (
    st.text(CHARACTERS, max_size=8)
    | st.sampled_from(SPECIAL)
    | st.builds(str.__mul__, CHARACTERS, st.integers(98, 102))
)


@pytest.fixture(scope="module")
def reference() -> Reference:
    tokenizer = Reference.from_str(bundled_files.read_tokenizer())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def assert_equal(reference: Reference, texts: list[str]) -> None:
    tokenizer = load_tokenizer()
    for text, expected in zip(texts, reference.encode_batch_fast(texts), strict=True):
        assert tokenizer.encode(text, ALL) == expected.ids, text[:100]
        assert tokenizer.count(text) == len(expected.ids) - 2, text[:100]


# The quick run takes the plane of most letters and Chinese characters; test_any_text has characters of others.
@pytest.mark.parametrize("plane", [pytest.param(plane, marks=pytest.mark.slow if plane else []) for plane in range(17)])
def test_every_character_alone_and_in_a_word(reference, plane):
    codes = [code for code in range(plane << 16, (plane + 1) << 16) if not 0xD800 <= code < 0xE000]
    lines = [f"{character} a{character}a" for character in map(chr, codes)]
    assert_equal(reference, ["\n".join(lines[at : at + 1_000]) for at in range(0, len(lines), 1_000)])


@given(st.lists(WORDS, max_size=12), st.sampled_from(["", " ", "\n", ". "]))
def test_any_text(reference, words, separator):
    assert_equal(reference, [separator.join(words)])


@given(st.text(CHARACTERS | st.sampled_from(" \n[.a中"), max_size=200), st.integers(1, 20), st.integers(0, 30))
def test_a_long_text_is_read_in_parts_and_only_as_far_as_needed(reference, text, part, most):
    expected = reference.encode(text).ids
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundled_tokenizer, "PART", part)
        assert load_tokenizer().encode(text, ALL) == expected
        assert load_tokenizer().count(text) == len(expected) - 2
        shortened = expected if len(expected) <= most + 2 else [*expected[: most + 1], expected[-1]]
        assert load_tokenizer().encode(text, most) == shortened


def test_the_pages_and_notes_of_the_project(reference):
    files = [path for folder in ("docs", "vault_fixtures", "tests") for path in sorted((ROOT / folder).rglob("*.md"))]
    assert len(files) > 100
    assert_equal(reference, [path.read_text("utf-8", "replace") for path in files])


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["word. ", "Ünïcode text ", "日本語のテキスト", "a", "é", "\x00", "[SEP]", "ﾊﾛｰ　"])
def test_texts_of_four_megabytes(reference, piece):
    text = piece * (4_000_000 // len(piece.encode()))
    assert load_tokenizer().count(text) == len(reference.encode(text, add_special_tokens=False))


def test_what_it_remembers_has_a_limit(monkeypatch):
    monkeypatch.setattr(bundled_tokenizer, "CHARACTERS", 100)
    monkeypatch.setattr(bundled_tokenizer, "WORDS", 50)
    tokenizer = Tokenizer(load_vocabulary())
    text = " ".join(f"{chr(code)}word{code}x" for code in range(0xA1, 0x1000))
    assert tokenizer.encode(text, ALL) == load_tokenizer().encode(text, ALL)
    assert len(tokenizer._characters) == 100
    assert tokenizer._divide.cache_info().currsize == 50


def test_a_lone_surrogate_is_an_unknown_character():
    assert load_tokenizer().encode("a \ud800 b", ALL) == load_tokenizer().encode("a \U000f8fff\u2f00 b", ALL)


def test_threads_share_it():
    texts = [f"{'wörd ' * (number % 40)}{number} 日本{chr(0x4E00 + number)}" for number in range(400)]
    tokenizer, results = Tokenizer(load_vocabulary()), []

    def read() -> None:
        results.append([tokenizer.encode(text, ALL) for text in texts])

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[load_tokenizer().encode(text, ALL) for text in texts]] * 6


def test_it_counts_as_the_encoder_does():
    encoder = BundledEncoder(BundledSettings(), threads=1)
    try:
        assert count_tokens(TEXTS) == encoder.count_tokens(TEXTS)
    finally:
        encoder.close()
    assert count_tokens(TEXTS)[2] == 400
    assert count_tokens([]) == []
    assert load_tokenizer() is load_tokenizer()
