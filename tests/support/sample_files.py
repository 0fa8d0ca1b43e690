"""Make sample files for tests: PDFs of any length and Office archives of any content, including hostile ones."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence

TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
RELATIONS = (
    '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>'
)
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def pdf(pages: Sequence[str | bytes]) -> bytes:
    """Return a PDF whose pages each show one line, or are drawn by the given deflated content stream."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for page in pages:
        drawn = page if isinstance(page, bytes) else f"BT /F1 12 Tf 72 700 Td ({page}) Tj ET".encode("latin-1")
        stream = zlib.compress(drawn) if isinstance(page, str) else page
        kids.append(len(objects) + 1)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>"
            % (len(objects) + 2)
        )
        objects.append(b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(stream), stream))
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(b"%d 0 R" % kid for kid in kids))
    out, places = io.BytesIO(), []
    out.write(b"%PDF-1.5\n")
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % place for place in places)
    out.write(b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start))
    return out.getvalue()


def bomb(size: int) -> bytes:
    """Return a deflated stream that expands to `size` bytes of invisible drawing."""
    packer = zlib.compressobj(9)
    block = b"q Q\n" * 262_144
    return b"".join(packer.compress(block) for _ in range(size // len(block))) + packer.flush()


def docx(body: str = "", **parts: str | bytes) -> bytes:
    """Return a Word file with paragraphs of WordprocessingML, and further parts (`a__b` stands for a/b.xml)."""
    held = {
        "[Content_Types].xml": TYPES,
        "_rels/.rels": RELATIONS,
        "word/document.xml": f'<?xml version="1.0"?><w:document {W}><w:body>{body}</w:body></w:document>',
        **{name.replace("__", "/") + ".xml": part for name, part in parts.items()},
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in held.items():
            archive.writestr(name, part)
    return out.getvalue()


def xlsx(rows: Sequence[Sequence[str]]) -> bytes:
    """Return an Excel workbook of one sheet of texts."""
    main, base = "application/vnd.openxmlformats-officedocument.spreadsheetml", "http://schemas.openxmlformats.org"
    one = '<c t="inlineStr"><is><t>{}</t></is></c>'
    cells = "".join(f"<row>{''.join(map(one.format, row))}</row>" for row in rows)
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{base}/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="{main}.sheet.main+xml"/><Override PartName="/xl/sheet1.xml" ContentType="{main}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{base}/package/2006/relationships"><Relationship Id="r1" Type="{base}/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{base}/spreadsheetml/2006/main" xmlns:r="{base}/officeDocument/2006/relationships"><sheets><sheet name="One" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{base}/package/2006/relationships"><Relationship Id="r1" Type="{base}/officeDocument/2006/relationships/worksheet" Target="sheet1.xml"/></Relationships>',
        "xl/sheet1.xml": f'<worksheet xmlns="{base}/spreadsheetml/2006/main"><sheetData>{cells}</sheetData></worksheet>',
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return out.getvalue()


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"
