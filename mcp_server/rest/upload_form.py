"""Take an upload form (`POST /api/v1/jobs` with a file): write the file to disk piece by piece, then queue it.

Law, tested: however large the file is, only a few pieces of it are in memory, and none in a temporary folder. A broken
connection, an invalid form and a key that may not write leave nothing behind."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from index.errors import InvalidArgument, MemexError
from mcp_server.http.body_limits import BodyLimit, TooSlow
from mcp_server.http.refusals import answer_and_drain
from mcp_server.http.request_log import CLOSED
from mcp_server.operations.caller import check_scope, imply_namespace, resolve_workspace
from mcp_server.operations.operation import OperationRunner
from mcp_server.operations.wire_format import encode_payload, error_body, http_status
from mcp_server.tools.kb_schema import QueuedJob
from syncd.jobs.queued_job import Job
from syncd.uploads.form_parser import FormParser, read_boundary
from syncd.uploads.upload_sessions import SingleUpload

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

PATH: Final = "/api/v1/jobs"
KIND: Final = b"multipart/form-data"
FIELDS: Final = ("title", "tags", "collection", "namespace")
FORM_BYTES: Final = 131_072  # bytes of a body without its file
PARTS: Final = 128
PIECE: Final = 1_048_576  # bytes of one write
QUEUE_S: Final = 120.0  # time limit for writing the last bytes and queueing the job
NAME: Final = "upload"  # its name in metrics, log and audit log
READ: Final = "memex.read"  # set in the scope of a request whose body is complete


def body_limit(max_file: int) -> BodyLimit:
    """Return the body limit of requests that send a file as a form."""
    return BodyLimit(PATH, max_file + FORM_BYTES, KIND)


async def answer_form(runner: OperationRunner, request: Request) -> Response:
    """Receive the file of a form, and answer with its job."""
    try:
        job = await receive_form(runner, request)
    except ClientDisconnect:
        return Response(status_code=CLOSED)  # only the log uses it
    except MemexError as error:
        if request.scope.get(READ):
            raise
        code = 408 if isinstance(error, TooSlow) else http_status(error)
        again = (
            {"retry-after": str(math.ceil(error.details["retry_after"]))} if "retry_after" in error.details else None
        )
        return _EarlyResponse(error_body(error), code, headers=again, media_type="application/json")
    _, text = encode_payload(QueuedJob(job_id=job.id, status=job.status))
    return Response(text, 202, media_type="application/json")


async def receive_form(runner: OperationRunner, request: Request) -> Job:
    """Receive a form and return the job of its file. Raises the errors of `index.errors`, and ClientDisconnect."""
    caller = request.scope["memex.caller"]
    async with runner.record_call(NAME, "write", caller):
        check_scope(caller, "write")
        length = request.headers.get("content-length")
        begin = partial(_start_upload, runner, caller, int(length) if length else None)
        form = _Form(request.headers["content-type"])
        # Not cancelled when the caller disconnects: the thread that began the upload also ends it.
        with await anyio.to_thread.run_sync(begin) as arrival:
            async for piece in request.stream():
                form.feed(piece)
                if len(form.data) >= PIECE:
                    await anyio.to_thread.run_sync(arrival.write, form.drain())
            request.scope[READ] = True
            arguments = form.read_fields()
            arguments["namespace"] = imply_namespace(caller, arguments.get("namespace"))

            def write_and_queue() -> Job:
                arrival.write(form.drain())
                return arrival.queue(**arguments)

            return await runner.run_in_thread(NAME, "write", QUEUE_S, write_and_queue)


def _start_upload(runner: OperationRunner, caller: Any, length: int | None) -> SingleUpload:
    workspace = resolve_workspace(runner.agent_access, caller)
    uploads = runner.agent_access.uploads
    return uploads.receive(
        caller.key.id, workspace.name, None if length is None else min(length, uploads.settings.max_file)
    )


def form_or_json(runner: OperationRunner, notes: Endpoint) -> Endpoint:
    """Make the endpoint of the route: it handles a form here, and passes everything else to `notes`."""
    form = body_limit(runner.settings.kb.max_file)

    async def endpoint(request: Request) -> Response:
        kind = request.headers.get("content-type", "").encode("latin-1")
        if form.covers(request.method, request.url.path, kind):
            return await answer_form(runner, request)
        return await notes(request)

    return endpoint


class _EarlyResponse(Response):
    """Answers a request whose body is not completely read: the client may continue sending for a moment."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as it is called
        headers = [*self.raw_headers, (b"connection", b"close")]  # the rest of the body is ignored
        await answer_and_drain(self.status_code, headers, bytes(self.body), receive, send, keyed=True)


class _Form:
    """Parses a form while it arrives; `data` holds the bytes of its file until `drain` takes them."""

    def __init__(self, content_type: str) -> None:
        """Begin with the header Content-Type. Raises InvalidArgument if it has no boundary."""
        if not (boundary := read_boundary(content_type)):
            raise InvalidArgument("the header Content-Type has no boundary")
        self.data = bytearray()
        self._parser = FormParser(boundary, self._begin_part, self._take)
        self.feed = self._parser.feed
        self._fields: dict[str, list[bytearray]] = {}
        self._filename: str | None = None
        self._into = self.data
        self._parts = 0

    def drain(self) -> bytes:
        """Return the bytes of the file that arrived since the last call."""
        taken = bytes(self.data)
        self.data.clear()
        return taken

    def read_fields(self) -> dict[str, Any]:
        """Return `filename` and the fields of the complete form. Raises InvalidArgument."""
        self._parser.require_end()
        if self._filename is None:
            raise InvalidArgument('the form has no file: send it as the part named "file", with a filename')
        arguments: dict[str, Any] = {"filename": self._filename}
        for name, values in self._fields.items():
            texts = [_decode_field(bytes(value), name) for value in values]
            if name == "tags":
                arguments[name] = [tag for text in texts for tag in text.split(",")]
            elif len(texts) > 1:
                raise InvalidArgument(f"the field {name} is given more than once", field=name)
            else:
                arguments[name] = (unicodedata.normalize("NFC", texts[0]) if name == "namespace" else texts[0]) or None
        return arguments

    def _begin_part(self, options: Mapping[bytes, bytes], headers: Mapping[bytes, bytes]) -> None:
        self._parts += 1
        if self._parts > PARTS:
            raise InvalidArgument(f"the form has more than {PARTS} parts")
        name, filename = _decode_field(options.get(b"name", b""), "name"), options.get(b"filename")
        encoding = headers.get(b"content-transfer-encoding", b"binary").strip().lower()
        if encoding not in (b"binary", b"8bit", b"7bit"):
            raise InvalidArgument("a part has a content transfer encoding; send the file's bytes without encoding")
        if name == "file":
            if self._filename is not None:
                raise InvalidArgument("the form has more than one file; send each file in a separate request")
            if filename is None:
                raise InvalidArgument('the part "file" must name its file, as filename="report.pdf"')
            self._filename = _decode_field(filename, "filename").replace(
                "%22", '"'
            )  # the only character that forms escape this way
            self._into = self.data
            return
        if name not in FIELDS or filename is not None:
            known = ", ".join(FIELDS)
            raise InvalidArgument(f"the form has an unknown part; the allowed parts are file, {known}")
        self._into = bytearray()
        self._fields.setdefault(name, []).append(self._into)

    def _take(self, data: bytes) -> None:
        if self._into is not self.data:
            self._parser.count(len(data))
        self._into += data


def _decode_field(raw: bytes, field: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise InvalidArgument(f"{field} is not UTF-8 text", field=field) from None
