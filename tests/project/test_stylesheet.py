"""The one stylesheet of the page, in which each view has a section of its own."""

from __future__ import annotations

import re

from syncd.page.web.templates import PAGE


def test_every_section_begins_outside_of_all_rules():
    style = (PAGE / "static/style.css").read_text()
    sections = list(re.finditer(r"^/\* (.+?) \*/$", style, re.MULTILINE))
    assert len(sections) > 5
    open_rules = {
        section[1]: style[: section.start()].count("{") - style[: section.start()].count("}") for section in sections
    }
    assert {name: count for name, count in open_rules.items() if count} == {}
    assert style.count("{") == style.count("}")
