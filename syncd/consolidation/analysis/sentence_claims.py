"""Extract the claims of a text, sentence by sentence: the words that name the subject, and figures, dates and names.

A claim is a sentence, or a part of one between semicolons. Words are compared by their stems, so that the forms of a
word match; values are compared only within their kind, so that days are not compared with euros.

Law, tested: the text of a claim occurs in the note, apart from markup, on one line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from index.text import stopwords
from index.text.sentences import plain_text, split_markdown
from index.text.similarity_sketch import stem
from index.text.tags import fold_accents
from index.text.words import PIECE, TextLanguage, Token, detect_language, tokenize
from syncd.consolidation.analysis.change_words import (
    CHANGE,
    COUNTED_PARTS,
    ENGLISH,
    INSTEAD,
    KANJI_DIGITS,
    MONTHS,
    NEW,
    NOT,
    NUMBERS,
    ONCE,
    OPPOSITES,
    OVER,
    PARTS,
    SIDES,
    SINCE,
    WEEKDAYS,
)

ValueKind: TypeAlias = Literal["date", "time", "day", "number", "code", "part", "state", "side"]

MOST: Final = 60  # claims read from a text
LONGEST: Final = 400  # characters of a claim
READ: Final = 12_000  # characters read from a text
IDENTIFIES: Final = 8  # digits from which a number without a unit identifies a thing
DENIED: Final = 40  # characters after a "not" that it negates


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_UNIT_WORDS: Final = _word_set(
    """day days week weeks month months year years hour hours minute minutes second seconds min sec h s ms people person persons pieces
    times euros euro dollars dollar cents km m cm mm kg g mg l ml wh kwh w kw v a ah k c gb mb kb tb hz mhz ghz cores core threads
    tag tage tagen woche wochen monat monate monaten jahr jahre jahren stunde stunden minuten sekunden stück prozent uhr personen
    jour jours semaine semaines mois an ans heure heures día días semana semanas mes meses año años hora horas dia dias mês ano anos
    giorno giorni settimana settimane mese mesi anno anni ora ore minuti dag dagen weken maanden jaar uur"""
)
# Words before a figure that are neither its unit nor the name of the numbered thing.
_LOOSE: Final = _word_set(
    """to at is are was of for about than over under by from until till per and or in on with the a an only exactly least most up
    approximately around between within after before every each be as it has have takes costs
    auf um bei bis von mit ist sind am im zum zur für ab seit mindestens höchstens etwa unter über liegt steht jetzt und oder je pro nur
    à de en sur par est sont le la les un une dans pour depuis environ et ou moins plus du des au aux entre
    es son el los las por para con desde hasta y o al del é são às os as no na ao da do em até dos das e il lo gli è sono per dal al alle
    van op met tot"""
)
_MONTH: Final = "|".join(sorted(map(re.escape, MONTHS), key=lambda name: (-len(name), name)))
_DAY: Final = "|".join(sorted(map(re.escape, WEEKDAYS), key=lambda name: (-len(name), name)))
_WORDED: Final = "|".join(sorted(map(re.escape, NUMBERS), key=lambda name: (-len(name), name)))
_VALUE: Final = re.compile(
    rf"""(?P<iso>(?<!\d)\d{{4}}-\d\d-\d\d(?!\d))
    |(?P<dmy>(?<![\w.,])\d{{1,2}}(?:st|nd|rd|th|\.|º|er)?\s?(?:de\s|of\s)?(?:{_MONTH})(?!\w)\.?(?:\s(?:de\s)?\d{{4}})?)
    |(?P<mdy>(?<!\w)(?:{_MONTH})\.?\s\d{{1,2}}(?:st|nd|rd|th)?(?![\w:]|[.,]\d)(?:,?\s\d{{4}})?)
    |(?P<my>(?<!\w)(?:{_MONTH})\s(?:de\s)?\d{{4}}(?!\d))
    |(?P<month>(?<!\w)(?:{_MONTH})(?!\w))
    |(?P<cjk>(?:\d{{4}}年)?\d{{1,2}}月(?:\d{{1,2}}[日号])?|\d{{1,2}}월(?:\s?\d{{1,2}}일)?)
    |(?P<dotted>(?<![\d.])\d{{1,2}}[./]\d{{1,2}}[./](?:\d{{4}}|\d\d)(?![\d.]))
    |(?P<ordinal>第[一二三四五六七八九十百千\d]+[条條页頁章节節巻卷話话回集題题課课季次届]?)
    |(?P<day>(?<!\w)(?:{_DAY})(?!\w)|(?:[每毎]?周|星期|礼拜)[一二三四五六日天]|[月火水木金土日]曜日?|[월화수목금토일]요일)
    |(?P<time>(?<![\d:])\d{{1,2}}:\d\d(?::\d\d)?(?![\d:])(?:\s?[ap]m\b)?|(?<![\w.])\d{{1,2}}\s?(?:[ap]m|Uhr|o'clock)\b|[\d一二三四五六七八九十]{{1,3}}[時点시](?:半|\d{{1,2}}分)?)
    |(?P<phone>(?<![\w.,])\+?\d{{2,5}}[ /-]\d{{3,}}(?:[ -]\d{{2,}})+(?!\w)|\b\d{{3}}-\d{{4}}\b)
    |(?P<number>(?<![A-Za-zÀ-ɏ\d._])[-−]?[$€£¥]?\d+(?:[.,'’ ]\d{{3}}(?!\d))*(?:[.,/:x×]\d+)*(?:[万億千百]\d*)*)(?P<unit>\s?(?:%|‰|°\s?[CFK]?|[€$£¥]|[µμ]\w{{1,3}}|[\u3041-\u30ff\u3400-\u9fff]{{1,2}}|[^\W\u3041-\u30ff\u3400-\u9fff]+(?:/\w+)?)?)
    |(?<=\w\s)(?P<letter>(?-i:[A-HJ-Z])(?![A-Za-zÀ-ɏ\d_'’.+#]))
    |(?P<worded>(?<!\w)(?:{_WORDED})(?!\w))""",
    re.IGNORECASE | re.VERBOSE,
)  # fmt: skip
_CLAUSE: Final = re.compile(r"[;；]\s*")
WIDE: Final = re.compile(r"[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_UNIT: Final = re.compile(
    r".[^\u3041-\u309f]?"
)  # the unit after a figure in scripts without blanks, without grammatical endings
_ROW: Final = re.compile(r"^\s*\|(?!\s*:?-+).*\|\s*$", re.MULTILINE)
_HEADING: Final = re.compile(r"^[ ]{0,3}#{1,6}[ \t].*$", re.MULTILINE)
_BLOCK: Final = re.compile(r"^\s*(?:`{3,}|~{3,}).*?(?:^\s*(?:`{3,}|~{3,})\s*$|\Z)", re.MULTILINE | re.DOTALL)
# After these, a release says since when or where something holds, and not which one is in use.
_OCCASION: Final = re.compile(
    r"(?<!\w)(?:in|since|from|with|as of|before|after|until|ab|seit|vor|mit|dans|depuis|avec|desde|en|con|da|dal|vanaf|sinds|met)\s+"
    r"(?:all\s+|some\s+)?(?:[^\W\d_][\w-]*\s+){0,2}v?$",
    re.IGNORECASE,
)
_RELEASE: Final = _word_set("version versions release releases build v ver firmware update")
_LED: Final = re.compile(
    r"\W*(?:on|in|am|im|le|el|em|il|op|at|since)?\s*", re.IGNORECASE
)  # words before the date at the beginning of an entry
_CALLED: Final = re.compile(r"\w\($")  # an argument of a function is not a figure of the text
_MIXED: Final = re.compile(r"(?=.*\d)(?=.*[^\W\d_]).{2,}")


_DATED: Final = frozenset({"iso", "dmy", "mdy", "my", "cjk", "dotted"})


@dataclass(frozen=True, slots=True)
class Value:
    """Holds a figure, date or similar value. Two values are comparable if their kind and `sign` are equal."""

    kind: ValueKind
    sign: str  # its unit, or the word before it
    value: str
    names: bool = False  # it identifies one of several, as in "station 3"
    before: int = 0  # words of the claim before it, without the word it belongs to
    shown: str = field(default="", compare=False)  # as it is written


@dataclass(frozen=True, slots=True)
class Claim:
    """Holds one statement of a text."""

    text: str
    words: Mapping[str, float]  # stem → its worth for the topic, in text order
    values: tuple[Value, ...]
    negated: bool
    denied: frozenset[str]  # words near a "not"
    changed: bool  # it says that something changed
    instead: bool  # it says that something is replaced
    over: bool  # it says that something has ended
    once: bool  # it reports one occasion
    new: bool  # it calls something new
    entry: bool = False  # it begins with a date, as an entry of a log does
    shown: Mapping[str, str] = field(default_factory=dict)  # stem → as it is written

    @property
    def weight(self) -> float:
        """Return the total worth of its words."""
        return sum(self.words.values())


@dataclass(slots=True)
class Claims:
    """Reads the claims of texts, and caches the words it has analysed."""

    places: Mapping[str, int]  # how common English words are, the most frequent at 0
    _seen: dict[tuple[str, bool, str], tuple[Token, ...]] = field(default_factory=dict)

    def read(self, title: str, text: str) -> tuple[Claim, tuple[Claim, ...]]:
        """Return the claim of a note's title, and the claims of its text."""
        text = text[:READ]
        language = detect_language(f"{title}\n{text}", self.places)
        unique_sentences = dict.fromkeys(split_sentences(text))
        claims = [
            self._read_claim(part, language)
            for sentence in unique_sentences
            for part in _CLAUSE.split(sentence)
            if part.strip()
        ]
        return self._read_claim(plain_text(title)[:LONGEST], language), tuple(claims[:MOST])

    def _read_claim(self, text: str, language: TextLanguage) -> Claim:
        text = text.strip()[:LONGEST]
        words: dict[str, float] = {}
        shown: dict[str, str] = {}
        values: list[Value] = []
        at, last = 0, ("", False)  # the previous word, and whether it is capitalized
        entry = False
        for match in _VALUE.finditer(text):
            last = self._read_words(text[at : match.start()], language, words, shown, values) or last
            gap = text[at : match.start()]
            near = (
                last
                if gap.strip(" #№-:") and not gap.rstrip(" #№").endswith((",", ":", "=", "(", "（", "：", "，", "、"))
                else ("", False)
            )
            known = len(values)
            end = _add_value(match, near, words, values)
            values[known:] = [replace(value, shown=text[match.start() : end].strip()) for value in values[known:]]
            entry = entry or (match.lastgroup in _DATED and bool(_LED.fullmatch(text[: match.start()])))
            at = end
            if end < match.end() or match["unit"]:
                last = ("", False)
        self._read_words(text[at:], language, words, shown, values)
        language_name = language.language
        nots = NOT.spans(text, language_name)
        lower = {piece.lower() for piece in re.findall(r"[^\W_]+", text)} | set(_wide_states(text))
        values += [*_state_values(lower, words), *_side_values(lower)]
        once = bool(ONCE.count(text, language_name))
        changed = bool(CHANGE.count(text, language_name)) or (not once and bool(SINCE.count(text, language_name)))
        return Claim(
            text, words, tuple(dict.fromkeys(values)), len(nots) % 2 == 1, _denied_words(text, nots, words, shown), changed,
            bool(INSTEAD.count(text, language_name)), bool(OVER.count(text, language_name)), once,
            bool(NEW.count(text, language_name)), entry, shown,
        )  # fmt: skip

    def _read_words(
        self, text: str, language: TextLanguage, words: dict[str, float], shown: dict[str, str], values: list[Value]
    ) -> tuple[str, bool] | None:
        """Read the words between two values; return the last of them, if any."""
        last = None
        for piece in PIECE.findall(text):
            last = (piece.lower(), piece[:1].isupper())
            if _MIXED.fullmatch(piece) and not WIDE.search(piece):
                shape = re.sub(r"\d+", "#", fold_accents(piece))
                values.append(Value("code", shape, fold_accents(piece), True, len(words)))
                continue
            seen = (language.language, language.japanese, piece)
            terms = self._seen.get(seen)
            if terms is None:
                terms = self._seen[seen] = tuple(
                    token for token in tokenize(piece, language) if token and token.worth > 0
                )
            for token in terms:
                key = stem(token.key)
                words[key] = max(token.worth, words.get(key, 0.0))
                shown.setdefault(key, token.text)
        return last


def split_sentences(text: str) -> Iterator[str]:
    """Split a text into its sentences in order, then the rows of tables; headings and code are left out."""
    text = _BLOCK.sub("\n", text)
    rows = [
        plain_text(" ".join(cell.strip() for cell in row[0].strip().strip("|").split("|")))
        for row in _ROW.finditer(text)
    ]
    text = _ROW.sub("", _HEADING.sub("\n", text))
    yield from split_markdown(text)
    yield from filter(None, rows)


def _denied_words(
    text: str, nots: list[tuple[int, int]], words: Mapping[str, float], shown: Mapping[str, str]
) -> frozenset[str]:
    """Return the words after each "not", or before it if none follow."""
    denied: set[str] = set()
    for start, end in nots:
        behind, before = (
            fold_accents(part) for part in (text[end : end + DENIED], text[max(0, start - DENIED) : start])
        )
        near = {word for word in words if fold_accents(shown[word])[:6] in behind}
        denied |= near or {word for word in words if fold_accents(shown[word])[:6] in before}
    return frozenset(denied)


def _wide_states(text: str) -> Iterator[str]:
    if WIDE.search(text):
        for state, opposite in OPPOSITES:
            yield from (word for word in state | opposite if not word.isascii() and word in text)


def _state_values(lower: set[str], words: dict[str, float]) -> list[Value]:
    """Return the states that a claim names without their opposites, and remove their words from `words`."""
    values = []
    for number, (state, opposite) in enumerate(OPPOSITES):
        if bool(lower & state) != bool(lower & opposite):
            sign = "0" if lower & state else "1"
            values.append(Value("state", str(number), sign, shown=min(lower & (state | opposite))))
            for word in lower & (state | opposite):
                words.pop(stem(fold_accents(word)), None)
    return values


def _side_values(lower: set[str]) -> list[Value]:
    """Return the sides that a claim names without the other side: they identify one of several things."""
    return [
        Value("side", str(number), "0" if lower & side else "1", True)
        for number, (side, other) in enumerate(SIDES)
        if bool(lower & side) != bool(lower & other)
    ]


def _add_value(  # noqa: PLR0912 - one branch for each kind of value
    match: re.Match[str], near: tuple[str, bool], words: dict[str, float], values: list[Value]
) -> int:
    """Add the value of this match, and return the position where reading continues."""
    kind, text, count = match.lastgroup or "", fold_accents(match[0]), len(words)
    if kind == "unit":
        kind = "number"
    match kind:
        case "iso" | "dmy" | "mdy" | "my" | "cjk" | "dotted":
            values.append(Value("date", "", _normalize_date(text), before=count))
        case "month":
            if match[0][0].isupper() or (len(text) > 4 and text != "march"):
                values.append(Value("date", "", _normalize_date(text), before=count))
            else:
                return match.start() + 1 if len(match[0]) == 1 else match.end()
        case "ordinal":
            values.append(Value("part", f"第 {text[-1] if text[-1] in COUNTED_PARTS else ''}", text, True, count))
        case "day":
            number = WEEKDAYS.get(match[0].lower()) or _weekday_number(match[0])
            values.append(Value("day", "", str(number), before=count))
        case "time":
            values.append(Value("time", "", _normalize_time(text), before=count))
        case "phone":
            values.append(Value("number", "phone", re.sub(r"\D", "", text), before=count))
        case "letter":
            if near[0] and near[0] not in _LOOSE:
                values.append(Value("code", f"{stem(fold_accents(near[0]))} #", text, True, max(0, count - 1)))
        case "worded":
            return _add_worded_number(match, values, count)
        case _:
            return _add_figure(match, near, words, values)
    return match.end()


def _add_worded_number(match: re.Match[str], values: list[Value], count: int) -> int:
    """Add a number in words if the word after it can be counted; return where reading continues."""
    behind = re.match(
        r"\s+(?:(?:an?|of|an?|una?|une|einen?|eine[rs]?|di|de)\s+)?([^\W\d_]{2,})", match.string[match.end() :]
    )
    if behind and (word := behind[1].lower()) not in _LOOSE and (word in _UNIT_WORDS or word not in stopwords.ENGLISH):
        values.append(Value("number", _normalize_unit(word), NUMBERS[match[0].lower()], before=count))
    return match.end()


def _add_figure(match: re.Match[str], near: tuple[str, bool], words: dict[str, float], values: list[Value]) -> int:
    number = re.sub(r"(?<=\d)[,'’ ](?=\d{3}(?!\d))", "", match["number"]).replace("−", "-").replace(",", ".").lower()
    unit = match["unit"].strip().lower()
    word, capital = near
    money = next((c for c in number if c in "$€£¥"), "")
    number = number.strip("$€£¥")
    if money or not unit or not unit[0].isalpha():
        behind, end = _normalize_unit(money or unit), match.end() if unit else match.end("number")
    elif WIDE.match(unit):
        behind, end = _UNIT.match(unit)[0], match.end("number")  # type: ignore[index]
    elif match["unit"][:1].isspace() and not _is_counted(unit):
        behind, end = "", match.end("number")
    else:
        behind, end = _normalize_unit(unit), match.end()
    stands = bool(word) and word not in _LOOSE
    if word in PARTS or unit[:1] in COUNTED_PARTS or (not behind and len(number) >= IDENTIFIES and number.isdigit()):
        values.append(Value("part", f"{stem(fold_accents(word or unit))} #", number, True, len(words)))
        return end
    if not behind and _CALLED.search(match.string[: match.start()]):
        return end
    if not behind and ("." in number or word in _RELEASE) and _OCCASION.search(match.string[: match.start()]):
        return end
    whole = number.lstrip("-").replace(".", "", 2).isdigit()
    if (
        stands
        and whole
        and (not behind or (capital and unit not in _UNIT_WORDS and unit[:1].isalpha() and match["unit"][:1].isspace()))
    ):
        values.append(Value("number", f"{stem(fold_accents(word))} #", number, True, max(0, len(words) - 1)))
        return match.end("number")
    if not behind and re.fullmatch(r"(?:19|20)\d\d", number):
        values.append(Value("date", "", f"0-0 {number}", before=len(words)))
    else:
        values.append(Value("number", behind or f"{next(reversed(words), '')} =", number, before=len(words)))
    return end


def _is_counted(word: str) -> bool:
    """Return whether a word after a figure is its unit."""
    return word in _UNIT_WORDS or (
        word not in _LOOSE and word not in stopwords.ENGLISH and len(word) > 1 and not NOT.count(word, ENGLISH)
    )


def _normalize_unit(word: str) -> str:
    return stem(fold_accents(word).rstrip("s")) if word[:1].isalpha() and len(word) > 3 else fold_accents(word)


def _normalize_date(text: str) -> str:
    """Return a date in figures, as far as it is given: equal dates give equal texts."""
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return "{1}-{2} {0}".format(*map(int, text.split("-")))
    if parts := re.fullmatch(r"(\d{1,2})[./](\d{1,2})[./](\d{2,4})", text):
        return f"{int(parts[2])}-{int(parts[1])} {parts[3]}"
    if parts := re.match(r"(?:\d{4}年)?(\d{1,2})[月월](?:\s?(\d{1,2})[日号일])?", text):
        return f"{int(parts[1])}-{int(parts[2] or 0)}"
    name = next((word for word in re.findall(r"[^\W\d_]+", text) if word in _BARE_MONTHS), "")
    year = next(iter(re.findall(r"\d{4}", text)), "")
    day = next(iter(re.findall(r"(?<!\d)\d{1,2}(?!\d)", text)), "0")
    return f"{_BARE_MONTHS.get(name, 0)}-{int(day)} {year}".strip()


def _normalize_time(text: str) -> str:
    digits = re.findall(r"\d+", text) or [str(sum(KANJI_DIGITS.get(c, 0) for c in text))]
    hour = int(digits[0]) + (12 if "pm" in text and int(digits[0]) < 12 else 0)
    rest = digits[1] if len(digits) > 1 else "30" if "半" in text else "00"
    return f"{hour}:{rest}" + (f":{digits[2]}" if len(digits) > 2 else "")


def _weekday_number(text: str) -> int:
    for days in ("月火水木金土日", "월화수목금토일"):
        if text[0] in days:
            return days.index(text[0]) + 1
    return "一二三四五六日".find(text[-1].replace("天", "日")) + 1


_BARE_MONTHS: Final = {fold_accents(name): number for name, number in MONTHS.items()}
