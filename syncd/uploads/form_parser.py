"""Parse a form (multipart/form-data) piece by piece while it arrives.

Law, tested: headers and fields together take bounded memory; the bytes of a file are handed on and not kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from index.errors import InvalidArgument

FIELD_BYTES: Final = 65_536  # bytes of all headers and fields together


def read_boundary(content_type: str) -> bytes:
    """Return the boundary between the parts of a form; b"" if the header names none that can be used."""
    boundary = parse_options_header(content_type)[1].get(b"boundary", b"")
    return boundary if len(boundary) <= 200 else b""


class FormParser:
    """Calls `begin` with the options (`name`, `filename`) and the headers of each part, `take` with its bytes, and `end`."""

    def __init__(
        self,
        boundary: bytes,
        begin: Callable[[Mapping[bytes, bytes], Mapping[bytes, bytes]], None],
        take: Callable[[bytes], None],
        end: Callable[[], None] = lambda: None,
    ) -> None:
        self._begin = begin
        self._headers: dict[bytes, bytes] = {}
        self._header = [b"", b""]
        self._small, self._is_complete = 0, False
        callbacks: Mapping[str, Callable[..., None]] = {
            "on_part_begin": self._headers.clear,
            "on_header_field": lambda data, start, end: self._add_header(0, data[start:end]),
            "on_header_value": lambda data, start, end: self._add_header(1, data[start:end]),
            "on_header_end": self._end_header,
            "on_headers_finished": self._end_headers,
            "on_part_data": lambda data, start, end: take(data[start:end]),
            "on_part_end": end,
            "on_end": self._complete,
        }
        self._parser = MultipartParser(boundary, callbacks)  # type: ignore[arg-type]  # by name

    def feed(self, piece: bytes) -> None:
        """Take the next bytes of the body; those after the last boundary are ignored. Raises InvalidArgument."""
        try:
            if not self._is_complete:
                self._parser.write(piece)
        except FormParserError:
            raise InvalidArgument("the body is not well-formed multipart/form-data; send it again") from None

    def count(self, size: int) -> None:
        """Count bytes that are kept in memory. Raises InvalidArgument when they are too many."""
        self._small += size
        if self._small > FIELD_BYTES:
            raise InvalidArgument(f"the fields of the form have more than {FIELD_BYTES:,} bytes")

    def require_end(self) -> None:
        """Raise InvalidArgument if the last boundary has not arrived."""
        if not self._is_complete:
            raise InvalidArgument("the body ends before its last boundary; send it again")

    def _add_header(self, place: int, data: bytes) -> None:
        self.count(len(data))
        self._header[place] += data

    def _end_header(self) -> None:
        name, value = self._header
        self._headers[name.lower()] = value
        self._header = [b"", b""]

    def _end_headers(self) -> None:
        self._begin(parse_options_header(self._headers.get(b"content-disposition", b""))[1], self._headers)

    def _complete(self) -> None:
        self._is_complete = True
