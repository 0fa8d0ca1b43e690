#!/usr/bin/env bash
# Make the files that tests/integration/test_real_files.py reads, by programs that people use and never by a converter's own library.
#
# Needs Debian's: pandoc libreoffice-writer libreoffice-calc libreoffice-impress groff ghostscript poppler-utils
# qpdf gnumeric chromium fonts-ipafont-gothic. What it makes is committed: run it only to change a source.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
office() { soffice -env:UserInstallation="file://$work/profile" --headless "$@" >/dev/null 2>&1; }
export SOURCE_DATE_EPOCH=1795219200

# Markdown, HTML and what comes of them
pandoc src/report.md -s -t html5 -o report.html
pandoc src/report.md -o report.docx
pandoc src/report.md -t odt -o "$work/report.odt"
office --convert-to docx:"MS Word 2007 XML" --outdir "$work" "$work/report.odt" && mv "$work/report.docx" report-writer.docx
office --convert-to pdf --outdir . "$work/report.odt"
office --convert-to doc:"MS Word 97" --outdir . "$work/report.odt" && mv report.doc old.doc
office --convert-to odt --outdir "$work" src/rich.html && mv "$work/rich.odt" rich.odt
office --convert-to docx:"MS Word 2007 XML" --outdir . rich.odt && rm rich.odt

# Slides: pandoc's, and the same saved by Impress
pandoc src/talk.md -o talk.pptx
office --convert-to odp --outdir "$work" talk.pptx
office --convert-to pptx:"Impress MS PowerPoint 2007 XML" --outdir "$work" "$work/talk.odp" && mv "$work/talk.pptx" talk-impress.pptx
office --convert-to pdf --outdir . "$work/talk.odp"

# rich.pptx was made once with python-pptx: lists, links, groups, merged cells, notes, what is hidden, slides in another order.

# Sheets: Calc's, and Gnumeric's
office --convert-to xlsx:"Calc MS Excel 2007 XML" --outdir . src/sheet.fods
ssconvert -T Gnumeric_Excel:xlsx2 sheet.xlsx gnumeric.xlsx
office --convert-to 'csv:Text - txt - csv (StarCalc):59,34,76,1' --outdir "$work" src/sheet.fods && mv "$work/sheet.csv" semicolons.csv

# PDF: two columns, a browser's, a scan, a locked one
groff -k -ms -t -Tpdf src/bulletin.ms > bulletin.pdf
chromium --headless --no-sandbox --disable-gpu --no-pdf-header-footer --print-to-pdf="$work/page.pdf" src/page.html >/dev/null 2>&1
mv "$work/page.pdf" browser.pdf
pdftoppm -r 60 -gray -png bulletin.pdf "$work/scan"
office --convert-to pdf:draw_pdf_Export --outdir "$work" "$work/scan-1.png" && mv "$work/scan-1.pdf" scan.pdf
qpdf --encrypt opensesame owner 256 -- bulletin.pdf locked.pdf

# Encodings
iconv -f utf-8 -t latin1 src/letter.txt > latin1.txt
iconv -f utf-8 -t utf-16 src/letter.txt > utf16.txt
iconv -f utf-8 -t utf-16le src/letter.txt > utf16-unmarked.txt
iconv -f utf-8 -t shift_jis src/brief.txt > shift-jis.txt
iconv -f utf-8 -t latin1 src/page-latin1.html > page-latin1.html

# A locked Office file
python3 -m venv "$work/venv" && "$work/venv/bin/pip" install --quiet msoffcrypto-tool
"$work/venv/bin/msoffcrypto-tool" -e -p opensesame report.docx locked.docx
ls -l
