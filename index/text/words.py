"""Split a text of any script into words, and rate how much each word says about the topic.

Scripts with spaces are split at spaces, Chinese by a dictionary, and Japanese where its scripts change: a run of kanji
or katakana counts as a word, and hiragana as grammar."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

from index.deferred_patterns import compile_later
from index.text import stopwords
from index.text.tags import fold_accents, key_of, to_tag

KANJI, KATAKANA, HIRAGANA = "\u3400-\u9fff\uf900-\ufaff々〆", "\u30a1-\u30fa\u30fc", "\u3041-\u309f"
_WIDE = compile_later(
    rf"[{KANJI}{KATAKANA}{HIRAGANA}]+(?:(?:(?<=[{KATAKANA}])・(?=[{KATAKANA}])|(?<=[{KANJI}])·(?=[{KANJI}]))[{KANJI}{KATAKANA}{HIRAGANA}]+)*"
)
_KANA = compile_later(rf"[{HIRAGANA}{KATAKANA}]")
_HANGUL = compile_later(r"[\uac00-\ud7a3]{2,}")
_RUN = compile_later(
    rf"(?:ソ連|[{KANJI}]|[{KATAKANA}]{{2,}}(?:・[{KATAKANA}]{{2,}}){{0,2}})+"
)  # names have a dot: ジョン・バーナル
_KANJI = compile_later(f"[{KANJI}]")
_INFLECTED = compile_later(r"[えきくぐけげじずたちっつてぬびぶべみむめらりるれろわいうん]|こ(?!と)")  # 考える, 強い
_ADJECTIVE = compile_later(r"な(?![どらがか])")  # 重要な
_DONE = compile_later(r"[しさすせ]")  # a noun that is used as a verb: 加盟した
_JAPANESE_TAIL = compile_later(
    r"(?:以外|以降|以来|以前|以後|以上|以下|以内|不可能|唯一|自体|自身|全体|全土|同士|サイド|当時|中心|左側|右側|両側|固有|(?<=[ァ-ー])[系用下]|[上内後前中時等第又沿])\Z"
)
_CHINESE_PART = compile_later(
    r"[我你他她它这那或和与在].*|[不没未类款].{2}|.+[不非].+|.*[了着的里]|被.+|.{2,}[成去到中上下内]"
)  # words that the dictionary cuts wrongly
# The characters that foreign names are written with in Chinese, three or more.
_SOUNDS = compile_later(
    "[阿埃艾安奥澳巴贝比彼毕伯柏布查茨达戴黛丹德邓迪蒂丁杜顿多厄尔法凡菲费芬弗福富盖戈格葛根古哈海汉赫亨胡华霍基吉加贾杰捷金卡凯坎康柯科克肯孔库夸拉莱兰朗劳勒雷黎里理利莉丽列琳林龙卢鲁路伦罗洛吕马玛麦曼"
    "梅门蒙米密敏明莫默姆穆纳娜奈南内尼妮宁纽努诺欧帕潘庞佩彭皮珀蒲普奇齐契恰乔切琼丘若萨塞赛桑瑟森沙莎珊舍申史斯松苏索塔泰坦汤唐特提廷图托瓦万威韦维魏温文翁沃乌西希锡夏肖谢辛欣休修雅亚延扬耶叶伊因英尤约泽扎詹珍芝兹佐]{3,}"
)
_NAMES: Final = frozenset({"nr", "nrt", "ns"})  # flags of names
_PARTS: Final = frozenset({"n", "nz", "j", "zg", "g", "ng", "q"})  # flags of what may be a part of one
_COUNT = compile_later(
    r"[〇一二三四五六七八九十百千万億兆年月日時分秒人回個件本枚円度位歳代目第約数何両全半間週号巻章話]+"
)
_COUNTED = compile_later(r"[年月日時分秒人回個件本枚円度位歳代目号条項章巻話世紀万億千百つ歩機隻頭匹点種類階級]{1,3}")
_WORD = compile_later(r"[^\W_]+(?:[.'’\-+&_][^\W_]+)*(?:\+\+|#(?!\w))?")
_PLAIN_WORD = compile_later(r"[a-zA-Z0-9]+(?:[.'\-+&_][a-zA-Z0-9]+)*(?:\+\+|#(?!\w))?")  # the same in ASCII, faster
_WIDE_PART = compile_later(f"({_WIDE.pattern})")
_WORD_OR_WIDE = compile_later(rf"(?P<wide>{_WIDE.pattern})|{_WORD.pattern}")
PIECE: Final = compile_later(
    rf"{_WIDE.pattern}|{_WORD.pattern}"
)  # a unit that is tokenized separately: a word, or a run of a script without spaces
_FIGURE = compile_later(r"[\d.,:/×x-]+(?:[^\W\d_]{1,4}|[%°])?|[\da-f]{8,}|\d+(?:st|nd|rd|th)", re.IGNORECASE)
_SITE = compile_later(r"\.(?!js$)[a-z]{2,4}$")  # the ending of the name of a site or file
_PATH = compile_later(r"(?<![A-Za-z\d.])~?/[\w.+-]+(?:/[\w.+*-]*)+")
_HALF = compile_later(r"/(?=[^\W\d_])")  # after a word that no phrase ends with: Debian GNU/Linux
_BREAK = compile_later(r"[^\s«»“”„‹›\"]")  # quotation marks separate no words
JOINS: Final = frozenset({"à", "de", "del", "di", "da", "do", "dos", "du", "des", "d'", "sin", "sans"})  # base de datos
GENITIVE: Final = frozenset(
    {"des", "eines", "dieses", "jedes", "jenes", "seines", "ihres", "unseres", "meines", "deines", "keines", "eures"}
)  # articles before a noun with the ending s
_GENITIVE_ENDING = compile_later(r"(?<=[^\Weaiosuß])s\Z|(?<=kt|tt|ig|og|ld|rt|st|tz|pf|ck|ch|lt|ft|lg|hr|hm|hl|ss)es\Z")
ELIDING: Final = frozenset({"fr", "it"})  # languages that write an article and its noun as one word: l'image
_ELIDED = compile_later(
    r"(?:l|d|qu|s|n|c|j|m|t|jusqu|lorsqu|puisqu|quelqu|un|(?:d|n|s|c)?(?:all|ell|ull|oll)|quest|quell)['’](?=\w{2})",
    re.IGNORECASE,
)
SPACED: Final = frozenset({"es", "fr", "it", "pt"})
# The surnames that most Chinese people have, and the length that a name does not reach.
SURNAMES: Final = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩邓冯曹彭曾肖田董潘袁蔡蒋余于杜叶程魏苏吕丁任卢姚沈钟姜崔谭陆范汪廖石金韦贾付方邹熊白孟秦邱侯江尹薛阎段雷龙黎史陶贺毛郝顾龚邵万覃武钱戴严莫孔向汤章"
)
MOST_NAME: Final = 4
TWO_WORDS: Final = 4  # characters of a phrase that the dictionary has as one word
# jieba's part-of-speech flags of words that may be terms, with their worth: mostly nouns, names and abbreviations.
CHINESE_WORTH: Final = {
    "n": 1.0, "nz": 1.15, "nr": 1.1, "ns": 1.05, "nt": 1.15, "ng": 0.4, "j": 1.0, "vn": 0.9, "l": 0.6, "i": 0.5, "an": 0.7,
    "nrt": 1.1, "v": 0.45, "b": 0.4, "a": 0.25, "s": 0.3,
}  # fmt: skip


class Token(NamedTuple):
    """Describes a word. `worth`: 0 for a word that says nothing about a topic; `glue` joins it to the word before it."""

    text: str  # in the form of a tag
    key: str  # equal for all forms of a word
    worth: float
    glue: str = "-"
    join: bool = False  # a preposition that may occur inside a term
    capital: bool = False  # has a capital that the beginning of a sentence does not explain
    first: bool = False  # begins a sentence
    plural: bool = False  # ends with s in the text, which `text` lacks
    wide: bool = False  # of a script without spaces
    verb: bool = False  # a verb or a phrase with a verb, according to a dictionary
    part: float = 0.0  # worth inside a compound, of a word that says nothing alone: due date
    thing: bool = True  # may be the last word of a term of several words


@dataclass(frozen=True, slots=True)
class TextLanguage:
    """Describes the language of a text as far as the tokenizer needs it, with the ranks of English words."""

    language: str  # language of the words with spaces: a key of `stopwords.LANGUAGES`
    japanese: bool
    places: Mapping[str, int]  # English words by frequency rank, the most frequent at 0


def detect_language(text: str, places: Mapping[str, int]) -> TextLanguage:
    """Return the language whose function words are most frequent in `text`; English when there are none."""
    text, hits = text[:6_000], dict.fromkeys(stopwords.LANGUAGES, 0)
    words = (_PLAIN_WORD if text.isascii() else _WORD).findall(text)
    for names in filter(None, map(languages_by_word().get, map(str.lower, words))):
        for name in names:
            hits[name] += 1
    best = max(hits, key=lambda name: (hits[name], name == "en"))
    wide = 0 if text.isascii() else len(_WIDE.findall(text))
    return TextLanguage(best, bool(wide) and len(_KANA.findall(text)) >= wide / 3, places)


def find_pieces(text: str) -> list[str]:
    """Return the units of `text` that are tokenized separately, as PIECE finds them."""
    return (_PLAIN_WORD if text.isascii() else PIECE).findall(text)


@functools.cache
def languages_by_word() -> dict[str, tuple[str, ...]]:
    """Return the languages of each function word; for English only words that hardly any other language has."""
    known = {
        **stopwords.LANGUAGES,
        "en": {word for word in stopwords.ENGLISH if len(word) > 3 or word in stopwords.SURE_ENGLISH},
    }
    words = {word for function_words in known.values() for word in function_words}
    return {word: tuple(name for name, function_words in known.items() if word in function_words) for word in words}


def tokenize(text: str, language: TextLanguage) -> Iterator[Token | None]:
    """Split one sentence into words, in order; None marks punctuation between them."""
    text = _simplify(text)
    plain = text.isascii()  # most sentences: nothing of them needs the rules for other letters
    at, before, after_wide = 0, "", False
    first = plain or not _WIDE.search(text)  # in Chinese and Japanese, the beginning of a sentence has no capital
    for piece in (_PLAIN_WORD if plain else _WORD_OR_WIDE).finditer(text):
        word, between, end, last = piece[0], text[at : piece.start()], piece.end(), ""
        if (between not in ("", " ") and _BREAK.search(between)) or (
            text.startswith("/", end) and _HALF.match(text, end)
        ):
            yield None
        glued = not between and at > 0
        counted = glued and text[at - 1].isdigit()
        was_wide, after_wide, at = after_wide, not plain and piece["wide"] is not None, end
        if was_wide and not after_wide:
            yield None
        if after_wide:
            yield from _japanese_tokens(word, counted=counted) if language.japanese else _chinese_tokens(word)
            continue
        # A word may continue in kanji without a space: split it at the change of scripts.
        for part in [word] if plain else filter(None, _WIDE_PART.split(word)):
            counted, last = last[-1:].isdigit(), part
            if not part.strip("-'’.&"):
                continue
            if not plain and _WIDE.fullmatch(part):
                yield from _japanese_tokens(part, counted=counted) if language.japanese else _chinese_tokens(part)
                continue
            elided = _ELIDED.match(part) if language.language in ELIDING else None
            if elided:  # l'image
                article = elided[0].lower().replace("’", "'")
                yield Token(article, article, 0.0, join=article in JOINS)
                part, before, first, glued = part[elided.end() :], article, False, False  # noqa: PLW2901 - the word after the article
            halved = language.language == "de" and text[at : at + 2] == "- "  # System- und Datenausfälle
            token = _spaced_token(part, language, before=None if first else before, glued=glued)
            yield Token(part.lower(), part.lower(), 0.0) if halved else token
        weak = before in GENITIVE and word.islower() and word.endswith("en")  # des neuen Servers
        first, before = False, before if weak else word.lower()


def _simplify(text: str) -> str:
    """Return a sentence without paths of files, and with one form of each letter with an accent."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)  # some systems write an accent as a character of its own
    return _PATH.sub(" / ", text) if "/" in text else text


def _spaced_token(word: str, language: TextLanguage, *, before: str | None, glued: bool) -> Token | None:
    """Return the token of a word of a script with spaces; None for a number, which separates its neighbours.

    `before` is the word before it; None at the beginning of a sentence, where every word has a capital."""
    lower = word.lower().replace("’", "'")
    if _FIGURE.fullmatch(word) or lower in stopwords.UNITS:
        return None
    if not word.isascii() and _HANGUL.match(word):
        return _korean_token(word)
    plain = lower.removesuffix("'s")
    proper = word[0].isupper() and before is not None
    if _is_function_word(word, lower, plain, language):
        return _function_token(lower, language, proper=proper, first=before is None, glued=glued)
    if language.language == "de" and before in GENITIVE:
        plain = _GENITIVE_ENDING.sub("", plain)
    text = tag = to_tag(plain)
    if len(text) < 2 or len(word) > 40:
        return Token(lower, lower, 0.0)
    mixed, plural = any(map(str.isupper, word[1:])), False
    worth = _worth(plain, language, proper=proper, before=before)
    if mixed:
        worth = max(worth, 0.9) * 1.25
    elif "." in lower and _SITE.search(lower):
        worth *= 0.3
    elif language.language == "en" and not proper:
        text = _singular(text, language.places)
        plural = len(text) < len(tag)
        if text in stopwords.ENGLISH:
            return Token(lower, lower, 0.0)
        worth *= 0.7 if before is None else 0.4 if before in stopwords.BEFORE_VERBS else 1.0  # an imperative, or a verb
    elif language.language in SPACED and not proper:
        worth *= 1.15 if before in stopwords.BEFORE_NOUNS else 0.8 if before is None else 0.5
    glue, thing = "" if glued else "-", worth >= 0.3
    return Token(
        text, key_of(text), worth, glue=glue, thing=thing, capital=proper or mixed, first=before is None, plural=plural
    )


def _function_token(lower: str, language: TextLanguage, *, proper: bool, first: bool, glued: bool) -> Token:
    """Return the token of a word that says nothing alone; some English ones do so inside a compound."""
    part = "note" if lower == "notes" else lower
    if language.language != "en" or part not in stopwords.COMPOUNDING:
        return Token(lower, lower, 0.0, join=lower in JOINS and language.language in SPACED)
    worth = _english_worth(part, language.places) * (1.2 if proper else 1.0)
    glue = "" if glued else "-"
    return Token(part, key_of(part), 0.0, glue, capital=proper, first=first, plural=part != lower, part=worth)


def _is_function_word(word: str, lower: str, plain: str, language: TextLanguage) -> bool:
    """Return whether a word is one of its language, or of English unless it is an abbreviation."""
    known = stopwords.LANGUAGES[language.language]
    if lower in known or plain in known:
        return True
    return language.language != "nl" and plain in stopwords.ENGLISH and not word[1:].isupper()


def _worth(word: str, language: TextLanguage, *, proper: bool, before: str | None) -> float:
    match language.language:
        case "en":
            worth = _english_worth(word, language.places)
            return worth * 1.2 if proper else worth
        case "de":  # nouns are written with a capital
            return (1.1 if proper else 0.8 if before is None else 0.35) * (0.9 if len(word) < 5 else 1.0)
        case "es" | "pt" | "it" | "fr":
            worth = 1.05 if proper else 0.9
            named = before in stopwords.BEFORE_NOUNS  # le déplacement, el mercado
            if not named and word.endswith(("mente", "ment")) and len(word) > 7:
                return worth * 0.3
            if len(word) > 4 and word.endswith(_INFINITIVES if named else _VERBS[language.language]):
                return worth * 0.45
            return worth * (0.8 if len(word) < 5 else 1.0)
        case _:
            return 1.0 if proper else 0.9


_INFINITIVES: Final = ("ar", "er", "ir", "are", "ere", "ire")
_VERBS: Final = {
    "es": ("ando", "iendo", "aron", "ieron", "aba", "aban", "ían", "arse", "erse", "irse", "amos", "emos", "imos", "ar", "er", "ir", "ado", "ada", "ido", "ida", "ados", "adas", "idos", "idas"),
    "pt": ("ando", "endo", "indo", "aram", "eram", "ava", "avam", "ar", "er", "ir", "ado", "ada", "ido", "ida", "ados", "idos"),
    "it": ("ando", "endo", "are", "ere", "ire", "ato", "ata", "ati", "ate", "ito", "ita", "uto", "uta"),
    "fr": ("ait", "aient", "ant", "ent", "er", "ir", "é", "ée", "és", "ées"),
}  # fmt: skip


def _english_worth(word: str, places: Mapping[str, int]) -> float:
    place = places.get(word) if "-" not in word else None
    worth = 1.05 if place is None else next((value for least, value in _RARE if place < least), 1.0)
    if word.endswith("ly") and len(word) > 4:
        return worth * 0.25
    if word.endswith("ed") and len(word) > 4 and not word.endswith(("eed", "bed", "seed")):
        return worth * 0.4
    if word.endswith(("able", "ible", "ful", "less", "ous", "est")) and len(word) > 5:
        return worth * 0.5
    return worth * 0.8 if word.endswith("ing") and len(word) > 5 else worth


_RARE: Final = ((300, 0.2), (1_000, 0.45), (2_500, 0.65), (6_000, 0.85), (12_000, 0.95))  # rank below, worth


def _singular(word: str, places: Mapping[str, int]) -> str:
    """Return the singular of an English plural if it is a known or likely word, otherwise `word`."""
    head, dash, last = word.rpartition("-")
    if (
        len(last) < 4
        or not last.endswith("s")
        or last.endswith(("ss", "us", "is", "news", "ics", "lens", "canvas", "atlas"))
    ):
        return word
    forms = [last[:-3] + "y", last[:-1]] if last.endswith("ies") else []
    forms += (
        [last[:-2]] if last.endswith(("sses", "tuses", "puses", "ruses", "xes", "ches", "shes", "oes", "zes")) else []
    )
    for form in (*forms, last[:-1]):
        if form in places:
            return f"{head}{dash}{form}"
    if last not in places and last.endswith("ities"):
        return word[:-3] + "y"
    if last.endswith("boxes"):
        return word[:-2]
    unknown = last not in places and last[-2] in "bcdfgklmnprtvwy" and not last.endswith("ops")
    return word.removesuffix("s") if unknown else word


def _korean_token(word: str) -> Token:
    stem = next(
        (word[: -len(end)] for end in stopwords.KOREAN_ENDINGS if word.endswith(end) and len(word) - len(end) >= 2),
        word,
    )
    worth = 0.0 if stem in stopwords.KOREAN or word in stopwords.KOREAN else 0.9
    return Token(stem, stem, worth)


def _japanese_tokens(text: str, *, counted: bool) -> Iterator[Token | None]:
    """Yield the runs of kanji and katakana in `text`, separated by None. `counted`: `text` follows a number."""
    if counted:
        text = _COUNTED.sub("", text, count=1)
    at = 0
    for run in _RUN.finditer(text):
        if run.start() > at or at:
            yield None
        at = run.end()
        yield _japanese_token(run[0], text[at : at + 2])
    if at < len(text):
        yield None


def _japanese_token(word: str, behind: str) -> Token:
    """Return the token of a run of kanji and katakana. `behind`: the hiragana after it, which show what it is."""
    if _INFLECTED.match(behind) and _KANJI.match(word[-1]):
        word = word[:-1]  # the last character begins a verb or an adjective, as in 考える
    head = next((head for head in stopwords.JAPANESE_HEADS if word.startswith(head) and len(word) > len(head) + 1), "")
    word = word.removeprefix(head) if not word.startswith("全国") else word
    adjective = word.endswith("的") or bool(_ADJECTIVE.match(behind))
    word = max(word.split("的"), key=len).strip("々・")
    if len(word) > 3 or (len(word) > 2 and word[-1] in "内中上系用下"):
        word = _JAPANESE_TAIL.sub("", word)
    if len(word) == 3 and (word[:2] in stopwords.JAPANESE or word[-1] in "第又等"):
        word = word[:-1]
    meaningful = not (len(word) < 2 or word in stopwords.JAPANESE or _COUNT.fullmatch(word) or word.strip("ー") == "")
    size = ({2: 0.75, 3: 0.95}.get(len(word), 1.1) if len(word) <= 12 else 0.4) if meaningful else 0.0
    key = key_of(word) if meaningful else word
    thing = not (adjective or (len(word) == 2 and _DONE.match(behind)))
    return Token(fold_accents(word), key, size, glue="", thing=thing, wide=True)


def _chinese_tokens(text: str) -> Iterator[Token | None]:
    before = ""
    words = [*_join_names(_known_words(text)), ("", "")]
    for (word, flag), (_, after) in pairwise(words):
        worth = CHINESE_WORTH.get(flag, 0.0) if len(word) > 1 and word not in stopwords.CHINESE else 0.0
        worth *= 0.0 if _CHINESE_PART.fullmatch(word) else 1.0
        worth *= 0.45 if flag == "nr" and len(word) == 2 else 1.0  # rarely a name
        # The dictionary calls some verbs nouns; an adverb stands before a verb, and an aspect after it.
        if (flag == "nr" and before[:1] == "n") or (before == "nr" and flag[:1] in "nv"):
            yield None  # the name of a person is no part of a compound
        verbal = flag in ("v", "l", "i", "a") or (before == "d" and len(word) == 2) or after in ("ul", "uz", "ug")
        before = flag
        yield Token(
            word,
            word,
            worth * (1.1 if len(word) > 2 else 1.0),
            glue="",
            thing=flag[:1] in "nj" or flag == "vn",
            wide=True,
            verb=bool(worth) and verbal,
        )


def _known_words(text: str) -> Iterator[tuple[str, str]]:
    """Yield the words of a Chinese text with their flags; a guess of the tagger that can't be a term is split again."""
    tagger = _load_tagger()
    for word, flag in tagger.tag(text):
        parts = [(word, flag)]
        if len(word) > 1 and flag[:1] == "n" and not tagger.has_word(word):
            parts = tagger.tag(word, hmm=False)
        named = flag == "nr" and len(word) < MOST_NAME and word[0] in SURNAMES
        loose = any(part_flag[:1] in ("d", "u", "p", "r", "c", "m", "y") for _, part_flag in parts)
        verbal = any(part_flag[:1] in ("v", "a", "z", "t", "f") for _, part_flag in parts)
        guess = not loose and (named or not verbal or _SOUNDS.fullmatch(word * 2))
        if len(word) == TWO_WORDS and flag == "n" and tagger.tag(word[2:])[0][1] in ("v", "a", "d", "z"):
            yield word, "l"  # 保持良好
        else:
            yield from [(word, flag)] if len(parts) == 1 or guess else parts


def _join_names(words: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join the parts of a foreign name, which the dictionary splits: 法 + 德尔, 约翰 + · + 杜尔."""
    joined: list[tuple[str, str]] = []
    for word, flag in words:
        last, last_flag = joined[-1] if joined else ("", "")
        flags = {flag, last_flag}
        named = flags & _NAMES and flags <= _NAMES | _PARTS and _SOUNDS.fullmatch(last.rpartition("·")[2] + word)
        if last and (word == "·" or last.endswith("·") or named):
            joined[-1] = (last + word, "nrt")
        else:
            joined.append((word, flag))
    return joined


@functools.cache
def _load_tagger() -> Any:
    import rjieba  # noqa: PLC0415 - its dictionary takes 35 MB, and only Chinese notes need it

    return rjieba
