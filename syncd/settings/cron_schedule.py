"""Check the cron schedule of a job: minute, hour, day of the month, month and weekday, in local time.

Law, tested: an accepted expression has the same meaning as in a crontab, where 0 and 7 are Sunday; a rejected one
gets a sentence with the reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# Each field: its name, lowest and highest number, and the words for the numbers from the lowest on
_FIELDS: Final = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day_of_week", 0, 7, _DAYS),
)
_PART: Final = re.compile(r"(?:(\*)|([0-9a-z]+)(?:-([0-9a-z]+))?)(?:/([0-9]{1,4}))?")
_LONGEST: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)  # most days of each month


def parse_cron(expression: str) -> dict[str, str]:
    """Return the allowed numbers of each field, as `1,2,3` or `*`; weekdays by their names.

    Raises ValueError with the reason for an invalid expression."""
    words = expression.casefold().split()
    if len(words) != len(_FIELDS):
        raise ValueError(f"must be five words, as `0 3 * * *` for each night at three; it has {len(words)}")
    numbers = {
        name: _parse_field(word, name.replace("_", " "), least, most, named)
        for word, (name, least, most, named) in zip(words, _FIELDS, strict=True)
    }
    if len(numbers["day"]) < 31 and len({day % 7 for day in numbers["day_of_week"]}) < 7:
        raise ValueError("may name days of the month or weekdays, not both")
    if min(numbers["day"]) > max(_LONGEST[month - 1] for month in numbers["month"]):
        raise ValueError("names a day that none of its months has")
    return {name: _format_field(name, numbers[name], most - least + 1) for name, least, most, _ in _FIELDS}


def find_mistake(expression: str) -> str:
    """Return the reason why `expression` is not a valid schedule; "" = it is valid, or empty, which means never."""
    try:
        parse_cron(expression or "* * * * *")
    except ValueError as error:
        return str(error)
    return ""


def _parse_field(word: str, name: str, least: int, most: int, named: tuple[str, ...]) -> set[int]:
    allowed: set[int] = set()
    numbers: Mapping[str, int] = {text: least + at for at, text in enumerate(named)}
    for part in word.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"has {part[:20]!r} as {name}, which is not valid in cron")
        every, first, last, step = match.groups()
        low = least if every else _parse_number(first, name, least, most, numbers)
        high = most if every or (step and not last) else _parse_number(last or first, name, least, most, numbers)
        if high < low or (step and not int(step)):
            raise ValueError(f"has {part[:20]!r} as {name}, which never occurs")
        allowed.update(range(low, high + 1, int(step or 1)))
    return allowed


def _parse_number(text: str, name: str, least: int, most: int, named: Mapping[str, int]) -> int:
    number = named.get(text, int(text) if text.isdecimal() and len(text) < 4 else -1)
    if not least <= number <= most:
        raise ValueError(f"has {text[:20]!r} as {name}, which is {least} to {most}")
    return number


def _format_field(name: str, allowed: set[int], count: int) -> str:
    if name == "day_of_week":
        return ",".join(_DAYS[day] for day in sorted({day % 7 for day in allowed}))
    return "*" if len(allowed) == count else ",".join(map(str, sorted(allowed)))
