"""syncd/links/obsidian_url.py: whatever a vault or a note is called, the URL says just that."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.links.obsidian_url import obsidian_url


@pytest.mark.parametrize(
    ("vault", "path", "url"),
    [
        (
            "My Vault",
            "Captures/default/Heat pump.md",
            "obsidian://open?vault=My%20Vault&file=Captures%2Fdefault%2FHeat%20pump.md",
        ),
        ("a&b=c", "x#y?z%.md", "obsidian://open?vault=a%26b%3Dc&file=x%23y%3Fz%25.md"),
        ("会議", "é.md", "obsidian://open?vault=%E4%BC%9A%E8%AD%B0&file=%C3%A9.md"),
        ("v", "report.pdf.md", "obsidian://open?vault=v&file=report.pdf.md"),
    ],
)
def test_every_value_is_encoded_as_obsidian_wants_it(vault, path, url):
    assert obsidian_url(vault, path) == url


@given(st.text(min_size=1), st.text(min_size=1))
def test_what_is_encoded_comes_back(vault, path):
    url = obsidian_url(vault, path)
    assert url.isascii()
    assert not set(url.partition("?")[2]) & set(' /+#?"<>')
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc) == ("obsidian", "open")
    read = parse_qs(parts.query, keep_blank_values=True, errors="surrogatepass")
    assert read == {"vault": [vault], "file": [path]}
