"""Receive a form with files: each file is written to a staged copy piece by piece, and handled when it is complete.

Law, tested: however large a file is, only a piece of it is in memory. A file that can't be taken leaves nothing behind,
and does not keep the next one of the form from being taken. Nothing is written before the CSRF token was checked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from index.errors import InvalidArgument, MemexError
from syncd.page.web.view import CSRF, Visit, check_token
from syncd.uploads.form_parser import FormParser, read_boundary
from syncd.uploads.local_files import StagedCopy, StagedFile


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

        boundary = read_boundary(request.headers.get("content-type", ""))
        if not boundary:
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


class FileForm:
    """Parses a form while it arrives. Close it at the end: that removes a file that is not complete."""

    def __init__(
        self,
        boundary: bytes,
        stage: Callable[[int], StagedFile],
        begin: Callable[[Mapping[str, str]], int],
        take: Callable[[Mapping[str, str], str, StagedCopy], Any],
    ) -> None:
        self.fields: dict[str, str] = {}
        self._stage, self._begin, self._take = stage, begin, take
        self._parser = FormParser(boundary, self._begin_part, self._add_data, self._end_part)
        self.feed = self._parser.feed
        self._files: list[SentFile] = []
        self._field: str | None = None  # the field or file of the current part
        self._file: str | None = None
        self._text = bytearray()
        self._largest: int | None = None
        self._staged: StagedFile | None = None
        self._error: MemexError | None = None

    def finish(self) -> list[SentFile]:
        """Return what became of each file of the complete form. Raises InvalidArgument, and the errors of `begin`."""
        self._parser.require_end()
        self._require_largest()
        return self._files

    def close(self) -> None:
        """Remove the file that is not complete."""
        if self._staged is not None:
            self._staged.close()
            self._staged = None

    def _require_largest(self) -> int:
        if self._largest is None:
            self._largest = self._begin(self.fields)
        return self._largest

    def _begin_part(self, options: Mapping[bytes, bytes], _: Mapping[bytes, bytes]) -> None:
        self._field, self._file, self._error = None, None, None
        self._text.clear()
        filename = options.get(b"filename")
        if filename is None:
            self._field = options.get(b"name", b"").decode("utf-8", "replace")
        elif filename:  # a browser sends an empty name if no file was chosen
            self._file = filename.decode("utf-8", "replace").replace("%22", '"')
            largest = self._require_largest()
            try:
                self._staged = self._stage(largest)
            except MemexError as error:
                self._error = error

    def _add_data(self, data: bytes) -> None:
        if self._field is not None:
            self._parser.count(len(data))
            self._text += data
        elif self._staged is not None and self._error is None:
            try:
                self._staged.write(data)
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
            return SentFile(name, self._take(self.fields, name, self._staged.finish()))
        except MemexError as error:
            return SentFile(name, error=error)
