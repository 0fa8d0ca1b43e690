"""Find the times that a query names: "8 May 2023", "last month", "3 days ago", 「先週」, in English, German, French, Spanish, Japanese and Chinese.

Relative times count from the clock that is given. A month or a day without a year is the latest one that has begun, "last
May" the latest that has ended, and a weekday the latest before today. A word that usually means something else ("may",
"march", "mars") is a month only beside a day or a year, or where the wording leaves no doubt. Laws, tested: every period
begins before it ends; nothing is raised, whatever the text. Of a long text, the words within the first LONGEST characters are
read."""

from __future__ import annotations

import calendar
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from index.deferred_patterns import compile_later

LONGEST: Final = 400
FIRST_YEAR, LAST_YEAR = 1970, 9_000
DAY_MS: Final = 86_400_000
GAP: Final = "\0"  # in place of words that were read, so that the words beside them don't join


@dataclass(frozen=True, slots=True)
class Period:
    """Describes a stretch of time in milliseconds since 1970, from `start` until before `end`."""

    start: int
    end: int


_Days = tuple[datetime, datetime]
_Reader = Callable[["re.Match[str]", datetime], _Days | None]


def find_periods(text: str, now: datetime) -> tuple[list[Period], str]:
    """Return the periods that `text` names, and the words that ask for more than a time, in lower case.

    Days begin and end in the time zone of `now`; without one, in that of the machine. A year alone may be any number, so it
    stays among the words."""
    head = text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0]
    rest = " ".join(unicodedata.normalize("NFKC", head).casefold().replace("\u2019", "'").split())
    periods: list[Period] = []
    if FIRST_YEAR <= now.year < LAST_YEAR:  # otherwise the clock was never set
        for pattern, read in _FORMS:
            rest = _read_form(pattern, read, rest, now, periods)
        if not any(period.end - period.start < 8 * DAY_MS for period in periods):  # otherwise it only names that day
            for pattern, read in _WEEKDAY_FORMS:
                rest = _read_form(pattern, read, rest, now, periods)
        _read_form(_YEAR_ALONE, _read_date, rest, now, periods)
    words = re.findall(r"[^\W_]+", rest + text[len(head) :])
    return list(dict.fromkeys(periods)), " ".join(word for word in words if word not in _FILLERS)


def _read_form(pattern: re.Pattern[str], read: _Reader, rest: str, now: datetime, periods: list[Period]) -> str:
    """Add to `periods` what `rest` has of this form, and return `rest` with gaps in their place."""
    for match in pattern.finditer(rest):
        days = read(match, now)
        if days is None or days[0].year < FIRST_YEAR:
            continue
        start, end = (int(day.replace(tzinfo=now.tzinfo).timestamp() * 1000) for day in days)
        if start < end:  # a zone may have left a day out
            periods.append(Period(start, end))
            rest = f"{rest[: match.start()]}{GAP * len(match[0])}{rest[match.end() :]}"
    return rest


# Names and words. Each language's months and weekdays stand in their order.

_MONTH_NAMES: Final = """
    january|jan|januar|jänner|janvier|janv|enero|ene february|feb|februar|février|fevrier|févr|febrero
    march|mar|märz|mars|marzo april|apr|avril|avr|abril|abr may|mai|mayo june|jun|juni|juin|junio
    july|jul|juli|juillet|juil|julio august|aug|août|aout|agosto september|sep|sept|septembre|septiembre|setiembre
    october|oct|oktober|okt|octobre|octubre november|nov|novembre|noviembre
    december|dec|dezember|dez|décembre|decembre|déc|diciembre|dic
"""
_DAY_NAMES: Final = """
    monday|montag|lundi|lunes tuesday|dienstag|mardi|martes wednesday|mittwoch|mercredi|miércoles|miercoles
    thursday|donnerstag|jeudi|jueves friday|freitag|vendredi|viernes saturday|samstag|samedi|sábado|sabado
    sunday|sonntag|dimanche|domingo
"""
_COUNT_WORDS: Final = """
    a|an|one|einem|einer|un|une|una two|zwei|deux|dos three|drei|trois|tres four|vier|quatre|cuatro
    five|fünf|cinq|cinco six|sechs|seis seven|sieben|sept|siete eight|acht|huit|ocho nine|neun|neuf|nueve ten|zehn|dix|diez
"""
_UNIT_WORDS: Final = """
    days?|tage?n?|jours?|d[ií]as?|日|天 weeks?|wochen?|semaines?|semanas?|週間?|周|週
    months?|monate?n?|mois|mes(?:es)?|[かヶヵケカ]月|[个個]月 years?|jahre?n?|ans?|années?|años?|年
"""
_AMBIGUOUS: Final = frozenset("jan mar mars march may sept sep dec dic ene abr".split())  # noqa: SIM905 - a list of words
# Words that belong to a time, or ask for nothing by themselves.
_FILLERS: Final = frozenset(
    """the la le l el los in of on at from since until during last der den dem die im am vom seit über
    de du des del d en depuis desde s st nd rd th 日 の 份 に は と""".split()  # noqa: SIM905 - as above
)
_LENGTHS: Final = {"day": 1, "week": 7, "month": 30, "year": 365}  # days, about
_UNITS: Final = tuple(_LENGTHS)


def _numbered(table: str, first: int) -> dict[str, int]:
    return {name: place for place, names in enumerate(table.split(), first) for name in names.split("|")}


_MONTHS: Final = _numbered(_MONTH_NAMES, 1)
_WEEKDAYS: Final = _numbered(_DAY_NAMES, 0)
_COUNTS: Final = _numbered(_COUNT_WORDS, 1)
_MONTH: Final = f"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\\b\\.?"
_DAY: Final = r"(?P<day>[0-3]?\d)(?P<nth>st|nd|rd|th|er|\.)?"
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)"
_AFTER: Final = r"(?![a-z0-9_/-]|[:.]\d)"
_NO_YEAR: Final = r"(?!\s*(?:,|of|de|del|du)?\s*[12]\d{3}(?!\d))"  # such a year is none that can be read
_COUNT: Final = rf"(?P<count>\d{{1,4}}|{'|'.join(sorted(_COUNTS, key=len, reverse=True))})"
_UNIT: Final = (
    "(?:" + "|".join(f"(?P<{name}>{words})" for name, words in zip(_UNITS, _UNIT_WORDS.split(), strict=True)) + ")"
)
_IN: Final = r"(?:in|of|since|during|until|im|seit|vom|en|de|del|depuis|desde)"
_BEFORE: Final = rf"(?<![a-z0-9_.:/-])(?:(?:on|am|le|el|{_IN})\s+)?"
_THIS: Final = r"(?:this|diese[nrms]?|ce|cet|cette|est[ea])"
_LAST: Final = r"(?:last|past|previous|letzte[nrms]?|vorige[nrms]?|vergangene[nrms]?)"
_PAST: Final = r"(?:dernier|dernière|derniere|passée?|pasad[oa])"


# What each form means: its first day and the day after its last one, as local times without a zone.


def _day(year: int, month: int, day: int) -> _Days | None:
    try:
        first = datetime(year, month, day)  # noqa: DTZ001 - `_read_form` adds the zone
    except ValueError:  # no such day
        return None
    return first, first + timedelta(days=1)


def _month(year: int, month: int) -> _Days | None:
    if not 1 <= month <= 12:
        return None
    days = calendar.monthrange(year, month)[1]
    first = datetime(year, month, 1)  # noqa: DTZ001 - as above
    return first, first + timedelta(days=days)


def _read_date(match: re.Match[str], now: datetime) -> _Days | None:
    """Read the groups `year`, `month` and `day`, as far as there are any. Without a year: the latest that has begun."""
    groups = match.groupdict()
    month = groups.get("month") and (
        _MONTHS.get(groups["month"]) or (groups["month"].isdigit() and int(groups["month"]))
    )
    day = groups.get("day") and int(groups["day"])
    years = [int(groups["year"])] if groups.get("year") else [now.year - back for back in range(5)]
    if not FIRST_YEAR <= years[0] <= now.year + 1:
        return None
    if not month:
        return datetime(years[0], 1, 1), datetime(years[0] + 1, 1, 1)  # noqa: DTZ001 - as above
    for year in years:
        days = _day(year, month, day) if day else _month(year, month)
        if days and (groups.get("year") or days[0] <= now.replace(tzinfo=None)):
            return days
    return None


def _read_month_alone(match: re.Match[str], now: datetime) -> _Days | None:
    """Read "in May", but not "in march": such a word has another meaning too often."""
    name = match["month"]
    sure = name not in _AMBIGUOUS or match["word"] in _SURE.get(name, ())
    return _read_date(match, now) if sure else None


def _read_day_alone(match: re.Match[str], now: datetime) -> _Days | None:
    """Read "on 8 May", but not "iPhone 8 may"."""
    sure = match["month"] not in _AMBIGUOUS or match.start() == 0 or not match[0][0].isdecimal() or match["nth"]
    return _read_date(match, now) if sure else None


def _read_in_year(offset: int) -> _Reader:
    """Return the reader of a month or day "of last year"."""

    def read(match: re.Match[str], now: datetime) -> _Days | None:
        year, name = now.year + offset, match["month"]
        month, day = _MONTHS.get(name) or int(name), match.groupdict().get("day")
        return _day(year, month, int(day)) if day else _month(year, month)

    return read


def _read_span(match: re.Match[str], now: datetime) -> _Days | None:
    """Read "the last 3 weeks": until today; None if they begin before FIRST_YEAR."""
    today = datetime(now.year, now.month, now.day)  # noqa: DTZ001 - as above
    unit, count = _read_count(match)
    length = timedelta(days=count * _LENGTHS[unit])
    if length > today - datetime(FIRST_YEAR, 1, 1):  # noqa: DTZ001 - as above
        return None
    return today - length, today + timedelta(days=1)


def _read_last_month(match: re.Match[str], now: datetime) -> _Days | None:
    """Read "last May": the latest one that has ended."""
    month = _MONTHS[match["month"]]
    return _month(now.year if month < now.month else now.year - 1, month)


def _read_weekday(match: re.Match[str], now: datetime) -> _Days | None:
    """Read "on Monday", "last Monday": the latest one before today."""
    name = match["name"]
    weekday = _WEEKDAYS[name] if name in _WEEKDAYS else "月火水木金土日".index(name)
    return _unit_days("day", -((now.weekday() - weekday - 1) % 7 + 1), now)


def _read_ago(match: re.Match[str], now: datetime) -> _Days | None:
    """Read "3 weeks ago": that day, week, month or year."""
    unit, count = _read_count(match)
    return _unit_days(unit, -count, now)


def _read_count(match: re.Match[str]) -> tuple[str, int]:
    """Return the unit and the number of "3 weeks"."""
    count = match["count"]
    return next(unit for unit in _UNITS if match[unit]), int(count) if count.isdecimal() else _COUNTS[count]


def _read_unit(unit: str, offset: int) -> _Reader:
    return lambda _, now: _unit_days(unit, offset, now)


def _unit_days(unit: str, offset: int, now: datetime) -> _Days | None:
    """Return the day, week (from Monday), month or year that is `offset` after the one of `now`; None if it is too long ago."""
    today = datetime(now.year, now.month, now.day)  # noqa: DTZ001 - as above
    if unit == "year":
        if now.year + offset < FIRST_YEAR:
            return None
        return datetime(now.year + offset, 1, 1), datetime(now.year + offset + 1, 1, 1)  # noqa: DTZ001 - as above
    if unit == "month":
        year, month = divmod(now.year * 12 + now.month - 1 + offset, 12)
        return _month(year, month + 1)
    first = today if unit == "day" else today - timedelta(days=today.weekday())
    length = timedelta(days=1 if unit == "day" else 7)
    return first + offset * length, first + (offset + 1) * length


def _form(pattern: str, read: _Reader) -> tuple[re.Pattern[str], _Reader]:
    return compile_later(pattern), read


_OF: Final = r"\s*(?:,|of|de|del|du)?\s*"
_SURE: Final = {"may": ("in", "since", "until", "during"), "march": ("since", "until"), "mars": ("en", "depuis")}
_KANJI: Final = r"(?P<month>[01]?\d)\s*月(?!曜)(?:\s*(?P<day>[0-3]?\d)\s*[日号])?"
_DAY_MONTH: Final = rf"{_DAY}{_OF}{_MONTH}"
_MONTH_DAY: Final = rf"{_MONTH}\s+{_DAY}"
_A_DAY: Final = rf"(?:{_DAY}{_OF})?{_MONTH}"
# The years beside a month: "May last year", "letztes Jahr im Mai", 「去年の5月」.
_YEAR_WORDS: Final = (
    (-1, rf"(?:{_LAST}\s+(?:year|jahr(?:e?s)?)|(?:de\s+)?l'(?:année|an)\s+{_PAST}|(?:(?:del|el|de)\s+)*año\s+{_PAST})"),
    (0, rf"(?:{_THIS}\s+(?:year|jahr(?:e?s)?)|(?:de\s+)?cette\s+année|(?:de\s+)?este\s+año)"),
)
_KANJI_YEARS: Final = ((-1, "(?:去年|昨年)"), (0, "今年"))


def _dates() -> Iterator[tuple[re.Pattern[str], _Reader]]:
    """Yield the forms of days, months and years, each with its reader. The first form that fits takes the words."""
    yield _form(rf"{_BEFORE}{_YEAR}([-/.])(?P<month>[01]?\d)\2(?P<day>[0-3]?\d){_AFTER}", _read_date)
    yield _form(rf"{_BEFORE}(?P<day>[0-3]?\d)\.\s?(?P<month>[01]?\d)\.\s?{_YEAR}{_AFTER}", _read_date)
    yield _form(rf"{_BEFORE}{_YEAR}-(?P<month>[01]\d){_AFTER}", _read_date)
    for offset, year in _KANJI_YEARS:
        yield _form(rf"{year}\s*の?\s*{_KANJI}", _read_in_year(offset))
    for offset, year in _YEAR_WORDS:
        yield _form(rf"{_BEFORE}{_A_DAY}\s+(?:of\s+)?{year}(?!\w)", _read_in_year(offset))
        yield _form(rf"\b{year}\s+(?:{_IN}\s+)?{_A_DAY}{_AFTER}", _read_in_year(offset))
    yield _form(rf"(?<!\d){_YEAR}\s*年\s*の?\s*{_KANJI}", _read_date)
    yield _form(rf"(?<!\d){_YEAR}\s*年(?!前)", _read_date)
    yield _form(rf"(?<![\d年の第])(?<!年 ){_KANJI}(?![間前])", _read_date)
    yield _form(rf"{_BEFORE}{_DAY_MONTH}{_OF}{_YEAR}{_AFTER}", _read_date)
    yield _form(rf"{_BEFORE}{_MONTH_DAY}(?:\s*,\s*|\s+){_YEAR}{_AFTER}", _read_date)
    yield _form(rf"{_BEFORE}{_MONTH}{_OF}{_YEAR}{_AFTER}", _read_date)
    yield _form(rf"{_BEFORE}{_DAY_MONTH}{_NO_YEAR}{_AFTER}", _read_day_alone)
    yield _form(rf"{_BEFORE}{_MONTH_DAY}{_NO_YEAR}{_AFTER}", _read_day_alone)
    yield _form(rf"\b{_LAST}\s+{_MONTH}{_AFTER}", _read_last_month)
    yield _form(rf"\b(?:en\s+)?{_MONTH}\s+{_PAST}(?!\w)", _read_last_month)
    yield _form(rf"\b(?P<word>{_IN})\s+{_MONTH}{_NO_YEAR}{_AFTER}", _read_month_alone)


def _relative_times() -> Iterator[tuple[re.Pattern[str], _Reader]]:
    """Yield the forms of times that count from now, each with its reader."""
    yield _form(rf"(?<!half )(?<![\w.,-]){_COUNT}\s+{_UNIT}\s+ago\b", _read_ago)
    yield _form(rf"\b(?:vor|il y a|hace)\s+{_COUNT}\s+{_UNIT}(?!\w)", _read_ago)
    yield _form(rf"(?<![\d.])(?P<count>\d{{1,4}})\s*{_UNIT}[之以]?前", _read_ago)
    yield _form(rf"\b{_LAST}\s+{_COUNT}\s+{_UNIT}(?!\w)", _read_span)
    for offset, words in (
        (-2, r"\b(?:the )?day before yesterday\b|\bvorgestern\b|\bavant[- ]hier\b|\b(?:anteayer|antes de ayer)\b"),
        (-2, "一昨日|おととい|(?<![之目大])前天"),
        (0, r"\b(?:today|this morning|heute|aujourd'hui|ce matin|hoy)\b|今日(?!本)|今天|今朝"),
        (
            -1,
            r"\b(?:yesterday|last night|gestern|ayer|anoche)\b|^hier$|\bd'hier\b|\bhier (?:matin|soir)\b|昨日|昨天|昨夜|昨晚",
        ),
    ):
        yield _form(words, _read_unit("day", offset))
    for unit, words, this, last in (
        (
            "week",
            r"(?:week|woche|semaine|semana)",
            "今週|(?<!日)本[周週]|[这這][周週]",
            "(?<![先上早晚])(?:先週|上[周週])(?![会末])",
        ),
        ("month", r"(?:month|monate?s?|mois|mes)", "今月|(?<!日)本月|[这這][个個]月", "先月|(?<!上)上[个個]月"),
        ("year", r"(?:year|jahr(?:e?s)?|année|an|año)", "今年", "(?<![过過])去年(?!度)|(?<!一)昨年"),
    ):
        yield _form(rf"\b{_LAST}\s+{words}\b|\b{words}\s+{_PAST}(?!\w)|{last}", _read_unit(unit, -1))
        yield _form(rf"\b{_THIS}\s+{words}\b|{this}", _read_unit(unit, 0))


_FORMS: Final = (*_dates(), *_relative_times())
_NAMED_DAYS: Final = rf"(?P<name>{'|'.join(_WEEKDAYS)})"
_WEEKDAY_FORMS: Final = (
    _form(rf"\b(?:on|since|am|seit|{_LAST})\s+{_NAMED_DAYS}\b", _read_weekday),
    _form(rf"\b{_NAMED_DAYS}\s+{_PAST}(?!\w)", _read_weekday),
    _form(r"(?<![\d週周第])(?P<name>[月火水木金土日])曜(?!大)日?", _read_weekday),
)
# A number that could be a year, unless what stands beside it says otherwise.
_YEAR_ALONE: Final = compile_later(
    rf"(?<![$€£¥#])(?<!port )(?<!rfc )(?<!iso )(?<!room )(?<!windows ){_BEFORE}{_YEAR}{_AFTER}(?!\s*(?:[€%]|(?:px|km|kg|mb|gb|ms|words|users|files|notes|lines)\b))"
)
