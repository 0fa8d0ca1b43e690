"""PDF files whose text is not only in the content of their pages; `tests/integration/test_real_files.py` reads the usual ones."""

from __future__ import annotations

import io

import pytest

from syncd.files.conversion.readers import pdf as reader
from syncd.files.conversion.readers.pdf import read_pdf
from syncd.files.conversion.readers.reader_result import ReaderLimits
from tests.support.sample_files import pdf

LIMITS = ReaderLimits(pages=10, inflated=1 << 20, text=100_000)
APPEARANCE = b"/Tx BMC BT /F1 12 Tf 2 5 Td (Ada Lovelace) Tj ET EMC"
FORM = b"<< /Length %d /Type /XObject /Subtype /Form /BBox [0 0 180 20] /Resources << /Font << /F1 3 0 R >> >> >>\nstream\n%s\nendstream"


def form(appearance: bytes) -> io.BytesIO:
    """A page with the label "Name:" and a field with the value "Ada Lovelace"."""
    field = b"<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Ada Lovelace) /Rect [120 690 300 710] /DA (/F1 12 Tf 0 g) %s >>"
    fields = b"/AcroForm << /Fields [6 0 R] /DA (/F1 12 Tf 0 g) /DR << /Font << /F1 3 0 R >> >> >>"
    raw = pdf(["Name:"]).replace(b"/Type /Catalog", b"/Type /Catalog " + fields)
    raw = raw.replace(b"/Type /Page /Parent", b"/Annots [6 0 R] /Type /Page /Parent")
    # The positions of the objects are wrong now; PDFium searches the file for the objects.
    objects = b"6 0 obj\n%s\nendobj\n7 0 obj\n%s\nendobj\n" % (field % appearance, FORM % (len(APPEARANCE), APPEARANCE))
    return io.BytesIO(raw.replace(b"xref\n0", objects + b"xref\n0", 1))


@pytest.mark.parametrize("appearance", [b"/AP << /N 7 0 R >>", b""], ids=["drawn", "not drawn"])
def test_the_values_of_a_form_are_read(appearance):
    reading = read_pdf(form(appearance), LIMITS)
    assert (reading.text, reading.warnings) == ("Name:\n\nAda Lovelace", ())


def test_a_page_that_is_too_long_is_cut_and_says_so(monkeypatch):
    monkeypatch.setattr(reader, "LONG", 10)
    whole, long = read_pdf(io.BytesIO(pdf(["Ten chars."])), LIMITS), read_pdf(io.BytesIO(pdf(["Eleven char"])), LIMITS)
    assert (whole.text, whole.cut, whole.warnings) == ("Ten chars.", False, ())
    assert (long.text, long.cut, long.warnings) == (
        "Eleven cha",
        True,
        ("only the first 10 characters of a page were read",),
    )
