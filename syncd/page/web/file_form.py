"""Receive a form with files: each file is written to a staged copy piece by piece, and handled when it is complete.

Law, tested: however large a file is, only a piece of it is in memory. A file that can't be taken leaves nothing behind,
and does not keep the next one of the form from being taken. Nothing is written before the CSRF token was checked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from index.errors import InvalidArgument, MemexError
from syncd.page.web.view import CSRF, Visit, check_token
from syncd.uploads.local_files import StagedCopy, StagedFile

FIELDS: Final = 64 * 1024  # most bytes of all headers and fields of a form


@dataclass(frozen=True, slots=True)
class SentFile:
    """Describes what became of a file: `result` is that of its handler, `error` why it was not taken."""

    name: str
    result: Any = None
    error: MemexError | None = None


# What a view does with a form: it returns the most bytes of a file once the fields are known, takes a file, and answers at the end.
Begin: TypeAlias = Callable[[Visit, Mapping[str, str]], int]
Take: TypeAlias = Callable[[Visit, Mapping[str, str], str, StagedCopy], Any]
Answer: TypeAlias = Callable[[Visit, Mapping[str, str], list[SentFile]], Response]


def post_files(path: str, begin: Begin, take: Take, answer: Answer) -> Route:
    """Return the route of a form with files, whose fields come before its files; the token is one of them."""

    async def receive(request: Request) -> Response:
        visit = Visit(request)

        def begin_files(fields: Mapping[str, str]) -> int:
            check_token(request, fields.get(CSRF))
            return begin(visit, fields)

        def stage(largest: int) -> StagedFile:
            return StagedFile(visit.settings.state, largest=largest, free=visit.settings.kb.free)

        boundary = parse_options_header(request.headers.get("content-type", ""))[1].get(b"boundary", b"")
        if not 1 <= len(boundary) <= 200:
            check_token(request, None)
            raise InvalidArgument("the form has no files, so nothing was added")
        try:
            with closing(FileForm(boundary, stage, begin_files, partial(take, visit))) as form:
                async with aclosing(_read_body(request)) as pieces:
                    async for piece in pieces:
                        await run_in_threadpool(form.feed, piece)
                return await run_in_threadpool(lambda: answer(visit, form.fields, form.finish()))
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it

    return Route(path, receive, methods=["POST"], name=f"POST {path}")


async def _read_body(request: Request) -> AsyncGenerator[bytes]:
    """Yield the body of a request. If its reader stops early, read on: a browser shows no answer before it has sent all."""
    try:
        async for piece in request.stream():
            yield piece
    finally:
        with suppress(RuntimeError, ClientDisconnect):  # it is complete, or the browser has left
            async for _ in request.stream():
                pass


@dataclass(slots=True)
class FileForm:
    """Parses a form while it arrives. Close it at the end: that removes a file that is not complete."""

    boundary: bytes
    stage: Callable[[int], StagedFile]
    begin: Callable[[Mapping[str, str]], int]
    take: Callable[[Mapping[str, str], str, StagedCopy], Any]
    fields: dict[str, str] = field(default_factory=dict)
    _files: list[SentFile] = field(default_factory=list)
    _parser: MultipartParser | None = None
    _headers: dict[bytes, bytes] = field(default_factory=dict)
    _header: list[bytes] = field(default_factory=lambda: [b"", b""])
    _field: str | None = None  # the field or file of the current part
    _file: str | None = None
    _text: bytearray = field(default_factory=bytearray)
    _largest: int | None = None
    _staged: StagedFile | None = None
    _error: MemexError | None = None
    _small: int = 0
    _ended: bool = False

    def feed(self, piece: bytes) -> None:
        """Take the next bytes of the body. Raises InvalidArgument for a wrong form, and the errors of `begin`."""
        try:
            if self._parser is None:
                self._parser = MultipartParser(self.boundary, self._callbacks())  # type: ignore[arg-type]  # by name
            if not self._ended:
                self._parser.write(piece)
        except FormParserError:
            raise InvalidArgument("the form is damaged; send it again") from None

    def finish(self) -> list[SentFile]:
        """Return what became of each file of the complete form. Raises InvalidArgument, and the errors of `begin`."""
        if not self._ended:
            raise InvalidArgument("the form ended early; send it again")
        self._require_largest()
        return self._files

    def close(self) -> None:
        """Remove the file that is not complete."""
        if self._staged is not None:
            self._staged.close()
            self._staged = None

    def _require_largest(self) -> int:
        if self._largest is None:
            self._largest = self.begin(self.fields)
        return self._largest

    def _callbacks(self) -> Mapping[str, Callable[..., None]]:
        return {
            "on_part_begin": self._begin_part,
            "on_header_field": lambda data, start, end: self._add_header(0, data[start:end]),
            "on_header_value": lambda data, start, end: self._add_header(1, data[start:end]),
            "on_header_end": self._end_header,
            "on_headers_finished": self._end_headers,
            "on_part_data": self._add_data,
            "on_part_end": self._end_part,
            "on_end": self._end,
        }

    def _begin_part(self) -> None:
        self._headers, self._field, self._file, self._error = {}, None, None, None
        self._text.clear()

    def _count(self, size: int) -> None:
        self._small += size
        if self._small > FIELDS:
            raise InvalidArgument(f"the fields of the form have more than {FIELDS:,} bytes")

    def _add_header(self, place: int, data: bytes) -> None:
        self._count(len(data))
        self._header[place] += data

    def _end_header(self) -> None:
        name, value = self._header
        self._headers[name.lower()] = value
        self._header = [b"", b""]

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        filename = options.get(b"filename")
        if filename is None:
            self._field = options.get(b"name", b"").decode("utf-8", "replace")
        elif filename:  # a browser sends an empty name if no file was chosen
            self._file = filename.decode("utf-8", "replace").replace("%22", '"')
            largest = self._require_largest()
            try:
                self._staged = self.stage(largest)
            except MemexError as error:
                self._error = error

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._field is not None:
            self._count(end - start)
            self._text += data[start:end]
        elif self._staged is not None and self._error is None:
            try:
                self._staged.write(data[start:end])
            except MemexError as error:  # the rest of this file is skipped
                self._error = error
                self.close()

    def _end_part(self) -> None:
        if self._field is not None:
            self.fields.setdefault(self._field, self._text.decode("utf-8", "replace"))
        elif self._file is not None:
            self._files.append(self._hand_over(self._file))
            self.close()

    def _hand_over(self, name: str) -> SentFile:
        try:
            if self._error is not None:
                raise self._error
            assert self._staged is not None, "a file without an error is staged"
            return SentFile(name, self.take(self.fields, name, self._staged.finish()))
        except MemexError as error:
            return SentFile(name, error=error)

    def _end(self) -> None:
        self._ended = True
