"""The converter's child process reads one file from standard input and prints it as Markdown in JSON.

Laws, tested: for any file the child prints one answer or none; it writes no file, and prints no text of the host. No
link of what it prints leads elsewhere than to the web, to mail or to a note, and no plugin of Obsidian runs code of it;
Markdown that becomes a note as it is, is the exception. Where a layer of the sandbox is missing, it parses no PDF or
Office file unless it is told to. `converter.py` starts and ends it."""

from __future__ import annotations

import base64
import gc
import importlib
import io
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from index.text.runnable_code import make_plain
from syncd.documents.file_types import CSV, DOCX, HTML, JSON, MARKDOWN, PDF, PPTX, TEXT, XLSX
from syncd.files.conversion.process_sandbox import isolate, restrict_calls, restrict_files, set_limits
from syncd.files.conversion.readers.clean_text import remove_invisible, tidy, truncate
from syncd.files.conversion.readers.link_targets import drop_targets
from syncd.files.conversion.readers.reader_result import MarkdownReading, Reader, ReaderLimits, TooLarge, UnreadableFile
from syncd.files.conversion.sandbox_layers import NEED_SANDBOX, SandboxLayers

READERS: Final = {
    MARKDOWN: ("plain_text", "read_markdown"), TEXT: ("plain_text", "read_text"), JSON: ("plain_text", "read_json"),
    CSV: ("plain_text", "read_csv"), HTML: ("html_page", "read_html"), PDF: ("pdf", "read_pdf"), DOCX: ("word_and_excel", "read_docx"),
    XLSX: ("word_and_excel", "read_xlsx"), PPTX: ("powerpoint", "read_pptx"),
}  # fmt: skip
AS_GIVEN: Final = frozenset({MARKDOWN, TEXT, JSON})  # not tidied: their white space says something
TITLE: Final = 300  # characters


class _NamelessInput(io.BufferedReader):
    """The file on standard input; libraries that ask where it lies are told nothing."""

    name = None  # not the number of its descriptor


def main() -> None:
    """Read the file on standard input as the one argument, an object of JSON, says, and print the answer."""
    asked = json.loads(sys.argv[1])
    with suppress(OSError):
        Path.cwd().rmdir()  # no relative path leads anywhere then, and nothing is left over
    set_limits(seconds=asked["seconds"], memory=asked["address"])
    alone = isolate(asked["parent"])
    os.nice(10)
    with _NamelessInput(io.FileIO(0)) as file:
        output = json.dumps(convert_file(file, asked, network_namespace=alone)).encode()
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()


def convert_file(file: BinaryIO, asked: dict[str, Any], *, network_namespace: bool = False) -> dict[str, Any]:
    """The text of the file, or what is wrong with it; without a type, only the layers of the sandbox.

    Afterwards the process can open no other file, and makes no system call that reading one doesn't need."""
    media_type = asked["media_type"]
    try:
        read = _load_reader(media_type) if media_type else None
        layers = _enter_sandbox(asked["calls"], network_namespace=network_namespace)
        unconfined = layers.missing and media_type in NEED_SANDBOX and not asked["unconfined"]
        if read is None or unconfined:
            return {"error": "unconfined", "layers": layers.as_dict()}
        gc.disable()  # a document is read once and then the process ends
        return _read_file(read, file, asked)
    except TooLarge as error:
        return {"error": "exhausted", "message": str(error)}
    except UnreadableFile as error:
        return {"error": "unreadable", "message": str(error)}
    except MemoryError:
        return {"error": "memory"}
    except RecursionError:
        return {"error": "exhausted", "message": "the file is nested too deeply"}


def _enter_sandbox(calls: str, *, network_namespace: bool) -> SandboxLayers:
    """Open no other file from now on, and make only the system calls of this filter, which came as base64."""
    landlock = restrict_files({sys.prefix, sys.base_prefix, *filter(None, sys.path)})
    return SandboxLayers(landlock, restrict_calls(base64.b64decode(calls) or None), network_namespace)


def _load_reader(media_type: str) -> Reader:
    """The reader of a type; its libraries are loaded now, before the process may open nothing else."""
    module, name = READERS[media_type]
    read: Reader = getattr(importlib.import_module(f"syncd.files.conversion.readers.{module}"), name)
    return read


def _read_file(read: Reader, file: BinaryIO, asked: dict[str, Any]) -> dict[str, Any]:
    reading: MarkdownReading = read(file, ReaderLimits(asked["pages"], asked["inflated"], asked["text"]))
    whole = remove_invisible(reading.text) if asked["media_type"] in AS_GIVEN else tidy(reading.text)
    text, shortened = truncate(whole, asked["text"])
    cut = reading.cut or shortened
    if (
        asked["media_type"] != MARKDOWN or cut
    ):  # last of all: what takes characters away may make a scheme of what was none
        text = drop_targets(make_plain(text))
    title = make_plain(" ".join(remove_invisible(reading.title or "").split())[:TITLE])
    return {
        "text": text,
        "title": title or None,
        "pages": reading.pages,
        "cut": cut,
        "warnings": list(reading.warnings),
    }


if __name__ == "__main__":
    main()
    os._exit(0)  # what libraries do at the end is of no use, and may hang
