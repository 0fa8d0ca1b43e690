"""Write the reference pages, the pages of the site, or pictures; check the built site: reference | pages FOLDER | check SITE | screenshots FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path


def main(command: str, *arguments: str) -> int:
    match command, arguments:
        case "reference", ():
            from tests.documents import reference_pages  # needs the whole program

            reference_pages.write()
        case "pages", (folder,):
            from tests.documents import site_pages

            site_pages.copy_pages(Path(folder))
        case "check", (folder,):
            from tests.documents import site_pages

            found = list(site_pages.foreign_requests(Path(folder)))
            sys.stdout.write("".join(f"{line}\n" for line in found))
            return 1 if found else 0
        case "screenshots", (folder,):
            from tests.documents import page_pictures, terminal_picture

            terminal_picture.write_pictures(Path(folder))
            page_pictures.write_pictures(Path(folder) / "page")
        case _:
            raise SystemExit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
