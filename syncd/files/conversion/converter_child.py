"""The converter's child process reads one file from standard input and prints it as Markdown in JSON.

Laws, tested: for any file the child prints one answer or none; it writes no file, and prints no text of the host. Links
in its output lead only to the web, to mail or to a note, and no Obsidian plugin runs code from the output; uncut Markdown
is the exception, because it becomes a note unchanged. If a layer of the sandbox is missing, the child parses no PDF or
Office file, unless its settings allow it. `converter.py` starts and ends the child."""

from __future__ import annotations

import base64
import gc
import importlib
import io
import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict
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
AS_GIVEN: Final = frozenset({MARKDOWN, TEXT, JSON})  # not tidied, because their white space has a meaning


class _NamelessInput(io.BufferedReader):
    """Reads the file on standard input, and gives libraries no file name."""

    name = None  # otherwise the number of its descriptor


def main() -> None:
    """Read the file on standard input and print the answer; the only argument is a JSON object with the settings."""
    asked = json.loads(sys.argv[1])
    with suppress(OSError):
        Path.cwd().rmdir()  # then no relative path works, and no folder is left behind
    set_limits(seconds=asked["seconds"], memory=asked["address"])
    alone = isolate(asked["parent"])
    os.nice(10)
    with _NamelessInput(io.FileIO(0)) as file:
        output = json.dumps(convert_file(file, asked, network_namespace=alone), ensure_ascii=False).encode()
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()


def convert_file(file: BinaryIO, asked: dict[str, Any], *, network_namespace: bool = False) -> dict[str, Any]:
    """Return the answer for the file: its text or an error; without a media type, only the layers of the sandbox.

    Afterwards the process can open no other file, and makes no system call that reading one doesn't need."""
    media_type = asked["media_type"]
    try:
        read = _load_reader(media_type) if media_type else None
        layers = _enter_sandbox(asked["calls"], network_namespace=network_namespace)
        unconfined = layers.missing and media_type in NEED_SANDBOX and not asked["unconfined"]
        if read is None or unconfined:
            return {"error": "unconfined", "layers": asdict(layers)}
        gc.disable()  # the process ends after one document
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
    """Stop this process from opening other files and from making system calls outside the filter `calls` (base64)."""
    landlock = restrict_files({sys.prefix, sys.base_prefix, *filter(None, sys.path)})
    return SandboxLayers(landlock, restrict_calls(base64.b64decode(calls) or None), network_namespace)


def _load_reader(media_type: str) -> Reader:
    """Return the reader of a type, and load its libraries now, before the sandbox forbids opening them."""
    module, name = READERS[media_type]
    read: Reader = getattr(importlib.import_module(f"syncd.files.conversion.readers.{module}"), name)
    return read


def _read_file(read: Reader, file: BinaryIO, asked: dict[str, Any]) -> dict[str, Any]:
    reading: MarkdownReading = read(file, ReaderLimits(asked["pages"], asked["inflated"], asked["text"]))
    whole = remove_invisible(reading.text) if asked["media_type"] in AS_GIVEN else tidy(reading.text)
    text, shortened = truncate(whole, asked["text"])
    cut = reading.cut or shortened
    if asked["media_type"] != MARKDOWN or cut:  # last, because removing characters may create a link scheme
        text = drop_targets(make_plain(text))
    return {
        "text": text,
        "pages": reading.pages,
        "cut": cut,
        "warnings": list(reading.warnings or ("the file contains no text",) * (not text.strip())),
    }


if __name__ == "__main__":
    main()
    os._exit(0)  # skips the libraries' cleanup, which may hang
