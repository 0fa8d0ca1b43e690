"""Draw real paragraphs in several languages, of which the tuning part and the fresh part have none in common.

English, Japanese and Chinese come from the shared data. The others come from Debian packages, unpacked into one folder
by `apt-get download PACKAGE && dpkg-deb -x FILE FOLDER`: debian-handbook and gimp-help-{de,es,fr} for the set `manuals`,
libreoffice-help-{de,es,fr}, debian-reference-{de,es,fr} and debian-handbook for the set `guides`, and
maint-guide{,-de,-es,-fr,-ja,-zh-cn}, aptitude-doc-{en,es,fr,ja} and debian-faq-{de,zh-cn} for the set `packaging`, all of
whose paragraphs come from packages."""

from __future__ import annotations

import hashlib
import html
import random
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HANDBOOK: Final = "usr/share/doc/debian-handbook/html"
MANUAL: Final = "usr/share/gimp/2.0/help"
REFERENCE: Final = "usr/share/debian-reference"
OFFICE: Final = "usr/share/libreoffice/help"
# language → (files, paragraphs of a part, least and most characters)
MANUALS: Final = {
    "en": (("vault_kepano/**/*.md", 8, (150, 900)), ("known_tasks_docs/notes/**/*.md", 20, (150, 900))),
    "de": ((f"{HANDBOOK}/de-DE/*.html", 10, (150, 900)), (f"{MANUAL}/de/*.html", 10, (150, 900))),
    "es": ((f"{HANDBOOK}/es-ES/*.html", 10, (150, 900)), (f"{MANUAL}/es/*.html", 10, (150, 900))),
    "fr": ((f"{HANDBOOK}/fr-FR/*.html", 10, (150, 900)), (f"{MANUAL}/fr/*.html", 10, (150, 900))),
    "ja": (("jsquad_valid/notes/**/*.md", 20, (100, 600)),),
    "zh": (("vault_oldwinter_md/**/*.md", 20, (80, 600)),),
}
GUIDES: Final = {
    "en": (("known_tasks_docs/notes/**/*.md", 10, (150, 900)), (f"{HANDBOOK}/en-US/*.html", 10, (150, 900))),
    "de": ((f"{OFFICE}/de/**/*.html", 10, (150, 900)), (f"{REFERENCE}/*.de.html", 10, (150, 900))),
    "es": ((f"{OFFICE}/es/**/*.html", 10, (150, 900)), (f"{REFERENCE}/*.es.html", 10, (150, 900))),
    "fr": ((f"{OFFICE}/fr/**/*.html", 10, (150, 900)), (f"{REFERENCE}/*.fr.html", 10, (150, 900))),
    "ja": (("jsquad_valid/notes/**/*.md", 20, (100, 600)),),
    "zh": (("vault_oldwinter_md/**/*.md", 10, (80, 600)), (f"{HANDBOOK}/zh-CN/*.html", 10, (80, 600))),
}
PACKAGING: Final = {
    language: (
        (f"usr/share/doc/{guide}/html/*.html", 10, length),
        (f"usr/share/doc/{second}/*.html", 10, length),
    )
    for language, guide, second, length in (
        ("en", "maint-guide", "aptitude/html/en", (150, 900)),
        ("de", "maint-guide-de", "debian/FAQ/de", (150, 900)),
        ("es", "maint-guide-es", "aptitude/html/es", (150, 900)),
        ("fr", "maint-guide-fr", "aptitude/html/fr", (150, 900)),
        ("ja", "maint-guide-ja", "aptitude/html/ja", (100, 600)),
        ("zh", "maint-guide-zh-cn", "debian/FAQ/zh-cn", (80, 600)),
    )
}
SETS: Final = {"manuals": MANUALS, "guides": GUIDES, "packaging": PACKAGING}
PARTS: Final = ("tuning", "fresh")
_HTML = re.compile(r'<p(?: [^>]*)?>(.*?)</p>|<div class="para">(.*?)</div>', re.DOTALL)
_UNTRANSLATED = re.compile(r"\b(?:the|and|of) ", re.IGNORECASE)  # the manuals have paragraphs that are still English
_WIDE = re.compile(r"[\u3041-\u9fff]")
_MARKUP = re.compile(r"http|<!--|:::|```|://|=>|[{}]|;$|\bclassDef\b")  # addresses and code


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Holds a paragraph; `key` names it in a file of judgements, which does not contain its text."""

    key: str
    language: str
    origin: str
    text: str


def draw(
    folders: tuple[Path, ...], part: str, seed: int, skipped: Collection[str] = (), name: str = "manuals"
) -> Iterator[Paragraph]:
    """Yield the paragraphs of a part of the set `name`, except those with a key in `skipped`.

    Equal arguments give equal paragraphs."""
    for language, sources in SETS[name].items():
        for pattern, count, (least, most) in sources:
            texts = {
                text: f"{file.relative_to(folder)}"
                for folder in folders
                for file in sorted(folder.glob(pattern))
                for text in _read(file, language)
                if least <= len(text) <= most and _part_of(text) == part and _key(text, language) not in skipped
            }
            dice = random.Random(f"{pattern} {part} {seed}")
            for text in dice.sample(sorted(texts), min(count, len(texts))):
                yield Paragraph(_key(text, language), language, texts[text], text)


def _read(file: Path, language: str) -> list[str]:
    text = file.read_text("utf-8", "ignore")
    if file.suffix == ".html":
        rows = [" ".join(html.unescape(re.sub("<[^>]+>", "", a or b)).split()) for a, b in _HTML.findall(text)]
        rows = rows if language == "en" else [row for row in rows if len(_UNTRANSLATED.findall(row)) < 2]
    else:
        rows = [row for row in text.split("\n\n") if row and row[0] not in "-|`#!><*% \t\n"]
    rows = [row for row in rows if not _MARKUP.search(row)]
    return [row for row in rows if len(_WIDE.findall(row)) > len(row) / 2] if language in ("ja", "zh") else rows


def _part_of(text: str) -> str:
    return PARTS[int(_digest(text), 16) % len(PARTS)]


def _key(text: str, language: str) -> str:
    return f"{language}-{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]
