"""Find the times that a query names: "8 May 2023", "last month", "3 days ago", 「先週」, in English, German, French, Spanish, Japanese and Chinese.

Relative times count from the clock that is given. A month or a day without a year is the latest one that has begun. Laws,
tested: every period begins before it ends; nothing is raised, whatever the text. Of a text, the first LONGEST characters
count."""

from __future__ import annotations

import calendar
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

LONGEST: Final = 400
FIRST_YEAR, LAST_YEAR = 1970, 9_000


@dataclass(frozen=True, slots=True)
class Period:
    """Describes a stretch of time in milliseconds since 1970, from `start` until before `end`."""

    start: int
    end: int


def find_periods(text: str, now: datetime) -> tuple[list[Period], str]:
    """Return the periods that `text` names, and the rest of the text without their words.

    Days begin and end in the time zone of `now`; without one, in that of the machine."""
    rest = " ".join(unicodedata.normalize("NFKC", text[:LONGEST]).casefold().replace("\u2019", "'").split())
    periods: list[Period] = []
    if not FIRST_YEAR <= now.year < LAST_YEAR:  # a clock that was never set
        return periods, rest
    for pattern, read in _FORMS:
        for match in pattern.finditer(rest):
            if (days := read(match, now)) is not None and days[0].year >= FIRST_YEAR:
                start, end = (int(day.replace(tzinfo=now.tzinfo).timestamp() * 1000) for day in days)
                periods.append(Period(start, end))
                rest = f"{rest[: match.start()]}{' ' * len(match[0])}{rest[match.end() :]}"
    return list(dict.fromkeys(periods)), " ".join(rest.split())


_Days = tuple[datetime, datetime]
_Reader = Callable[["re.Match[str]", datetime], _Days | None]


# Names and words. Each language's months and weekdays stand in their order.

_MONTH_NAMES: Final = """
    january|jan|januar|janvier|enero february|feb|februar|février|fevrier|febrero march|mar|märz|mars|marzo
    april|apr|avril|abril may|mai|mayo june|jun|juni|juin|junio july|jul|juli|juillet|julio
    august|aug|août|aout|agosto september|sep|sept|septembre|septiembre october|oct|oktober|octobre|octubre
    november|nov|novembre|noviembre december|dec|dezember|décembre|decembre|diciembre
"""
_DAY_NAMES: Final = """
    monday|montag|lundi|lunes tuesday|dienstag|mardi|martes wednesday|mittwoch|mercredi|miércoles
    thursday|donnerstag|jeudi|jueves friday|freitag|vendredi|viernes saturday|samstag|samedi|sábado
    sunday|sonntag|dimanche|domingo
"""
_COUNT_WORDS: Final = """
    a|an|one|einem|einer|un|une|una two|zwei|deux|dos three|drei|trois|tres four|vier|quatre|cuatro
    five|fünf|cinq|cinco six|sechs|seis seven|sieben|sept|siete eight|acht|huit|ocho nine|neun|neuf|nueve ten|zehn|dix|diez
"""
_UNIT_WORDS: Final = """
    days?|tag(?:en)?|jours?|días?|日|天 weeks?|wochen?|semaines?|semanas?|週間?|周 months?|monat(?:en)?|mois|mes(?:es)?|[かヶケカ]月|个月
    years?|jahr(?:en)?|ans?|années?|años?|年
"""
_UNITS: Final = ("day", "week", "month", "year")


def _numbered(table: str, first: int) -> dict[str, int]:
    return {name: place for place, names in enumerate(table.split(), first) for name in names.split("|")}


_MONTHS: Final = _numbered(_MONTH_NAMES, 1)
_WEEKDAYS: Final = _numbered(_DAY_NAMES, 0)
_COUNTS: Final = _numbered(_COUNT_WORDS, 1)
_MONTH: Final = f"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\\b\\.?"
_DAY: Final = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th|er|\.)?"
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)"
_AFTER: Final = r"(?![\w:/-]|\.\d)"
_COUNT: Final = rf"(?P<count>\d{{1,4}}|{'|'.join(sorted(_COUNTS, key=len, reverse=True))})"
_UNIT: Final = (
    "(?:" + "|".join(f"(?P<{name}>{words})" for name, words in zip(_UNITS, _UNIT_WORDS.split(), strict=True)) + ")"
)
_IN: Final = r"(?:in|of|since|during|until|im|seit|vom|en|de|del|depuis|desde)"
_BEFORE: Final = rf"(?<![\w.:/-])(?:(?:on|am|le|el|{_IN})\s+)?"
_THIS: Final = r"(?:this|the|diese[nrms]?|ce|cet|cette|est[ea]|el)"
_LAST: Final = r"(?:last|past|previous|letzte[nrms]?|vorige[nrms]?|vergangene[nrms]?)"
_PAST: Final = r"(?:dernier|dernière|derniere|passée?|pasad[oa])"


# What each form means: its first day and the day after its last one, as local times without a zone.


def _day(year: int, month: int, day: int) -> _Days | None:
    try:
        first = datetime(year, month, day)  # noqa: DTZ001 - `_make_period` adds the zone
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
    count = match["count"]
    unit = next(unit for unit in _UNITS if match[unit])
    return _unit_days(unit, -(int(count) if count.isdecimal() else _COUNTS[count]), now)


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


def _forms() -> Iterator[tuple[re.Pattern[str], _Reader]]:
    """Yield each form with its reader. The first form that fits takes the words, so longer ones come first."""

    def form(pattern: str, read: _Reader) -> tuple[re.Pattern[str], _Reader]:
        return re.compile(pattern), read

    of = r"\s*(?:,|of|de|del|du)?\s*"
    yield form(rf"{_BEFORE}{_YEAR}([-/.])(?P<month>[01]?\d)\2(?P<day>[0-3]?\d){_AFTER}", _read_date)
    yield form(rf"{_BEFORE}(?P<day>[0-3]?\d)\.\s?(?P<month>[01]?\d)\.\s?{_YEAR}{_AFTER}", _read_date)
    yield form(rf"{_BEFORE}{_YEAR}-(?P<month>[01]\d){_AFTER}", _read_date)
    yield form(rf"{_YEAR}年(?:(?P<month>[01]?\d)月(?:(?P<day>[0-3]?\d)[日号])?)?(?!前)", _read_date)
    yield form(r"(?<!\d)(?P<month>[01]?\d)月(?:(?P<day>[0-3]?\d)[日号])?(?![間前])", _read_date)
    yield form(rf"{_BEFORE}{_DAY}{of}{_MONTH}(?:{of}{_YEAR})?{_AFTER}", _read_date)
    yield form(rf"{_BEFORE}{_MONTH}\s+{_DAY}(?:(?:\s*,\s*|\s+){_YEAR})?{_AFTER}", _read_date)
    yield form(rf"{_BEFORE}{_MONTH}{of}{_YEAR}{_AFTER}", _read_date)
    yield form(rf"\b{_LAST}\s+{_MONTH}{_AFTER}", _read_last_month)
    yield form(rf"\b(?:en\s+)?{_MONTH}\s+{_PAST}\b", _read_last_month)
    yield form(rf"\b{_IN}\s+{_MONTH}{_AFTER}", _read_date)
    yield form(rf"\b{_COUNT}\s+{_UNIT}\s+ago\b", _read_ago)
    yield form(rf"\b(?:vor|il y a|hace)\s+{_COUNT}\s+{_UNIT}(?!\w)", _read_ago)
    yield form(rf"(?P<count>\d{{1,4}})\s*{_UNIT}前", _read_ago)
    for offset, words in (
        (0, r"\b(?:today|heute|aujourd'hui|hoy)\b|今日|今天"),
        (-2, r"\bthe day before yesterday\b|\bvorgestern\b|\bavant-hier\b|\banteayer\b|一昨日|おととい|前天"),
        (-1, r"\b(?:yesterday|gestern|hier|ayer)\b|昨日|昨天"),
    ):
        yield form(words, _read_unit("day", offset))
    for unit, words, this, last in (
        ("week", r"(?:week|woche|semaine|semana)", "今週|本周|这周", "先週|上周"),
        ("month", r"(?:month|monat|mois|mes)", "今月|本月|这个月", "先月|上个月"),
        ("year", r"(?:year|jahr|année|an|año)", "今年", "去年|昨年"),
    ):
        yield form(rf"\b{_LAST}\s+{words}\b|\b{words}\s+{_PAST}\b|{last}", _read_unit(unit, -1))
        yield form(rf"\b{_THIS}\s+{words}\b|{this}", _read_unit(unit, 0))
    days = "|".join(_WEEKDAYS)
    yield form(rf"\b(?:on|since|am|seit|{_LAST})\s+(?P<name>{days})\b", _read_weekday)
    yield form(rf"\b(?P<name>{days})\s+{_PAST}\b", _read_weekday)
    yield form(r"(?P<name>[月火水木金土日])曜", _read_weekday)
    yield form(rf"{_BEFORE}{_YEAR}{_AFTER}", _read_date)


_FORMS: Final = tuple(_forms())
