"""The licences of the daemon's libraries: what their metadata states, and whether Memex may be shipped with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution
from typing import Final

# Licences that ask no more than to be named; MPL-2.0 covers its own files alone.
ALLOWED: Final = frozenset(
    """0BSD Apache-2.0 BSD BSD-2-Clause BSD-3-Clause BSL-1.0 CC0-1.0 CNRI-Python ISC MIT MIT-0 MIT-CMU MPL-2.0 PSF-2.0
    Unlicense Zlib""".split()  # noqa: SIM905 - words read best as text
) | {"Apache-2.0 WITH LLVM-exception"}

# How a library without a licence expression names its licence, and the SPDX name of it.
NAMES: Final[Mapping[str, str]] = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache 2.0 license": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd license": "BSD",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
}

# Read by a person, because the metadata leaves a part open.
REVIEWED: Final[Mapping[str, str]] = {
    # "BSD-3-Clause, Apache-2.0, dependency licenses"; the folder BUILD_LICENSES of the wheel has those of PDFium's libraries
    "pypdfium2": "BSD-3-Clause AND Apache-2.0",
}


def stated(distribution: Distribution) -> str:
    """The licence that a library's metadata states: its expression, else its classifiers, else one line of text; "" for none."""
    metadata = distribution.metadata
    if expression := metadata.get("License-Expression"):
        return expression
    classifiers = [
        line.split(" :: ")[-1] for line in metadata.get_all("Classifier", []) if line.startswith("License ::")
    ]
    text = (metadata.get("License") or "").strip()
    names = [name for name in classifiers if name not in ("OSI Approved", "DFSG approved")] or [text.partition("\n")[0]]
    return " AND ".join(NAMES.get(name.casefold(), name) for name in names if name)


def refused(expression: str) -> list[str]:
    """The licences of an expression that are not allowed; of a choice one is enough."""
    choices = [
        [term for term in re.split(r"\s+AND\s+|\s*,\s*", choice) if term not in ALLOWED]
        for choice in re.split(r"\s+OR\s+", expression.replace("(", "").replace(")", ""))
    ]
    if "(" in expression:  # what belongs together is not taken apart: all of it must be allowed
        return [term for choice in choices for term in choice]
    return min(choices, key=len)


def judge(libraries: Iterable[tuple[str, str]]) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Libraries by allowed licence, and the statement of each whose licence is unknown or not allowed."""
    allowed: dict[str, list[str]] = {}
    others: dict[str, str] = {}
    for name, statement in libraries:
        expression = REVIEWED.get(name, statement)
        if expression and not refused(expression):
            allowed.setdefault(expression, []).append(name)
        else:
            others[name] = statement or "states none"
    return allowed, others
