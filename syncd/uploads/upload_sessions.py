"""Manage upload sessions: a file arrives in chunks or in one piece, belongs to its sender, and is queued when complete.

Law, tested: what was acknowledged survives a crash at any step; finishing twice gives one job; an abandoned upload
is deleted after ten minutes; no key can take more than its share; no name in a request is a path."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from index.errors import InvalidArgument, NotFound, ResourceExhausted, Unavailable
from syncd.documents.file_types import HEAD, KNOWN, media_type_of, suffix
from syncd.jobs.queue import Queue
from syncd.jobs.queued_job import Job
from syncd.settings.knowledge_base import KbSettings
from syncd.state.folder import sync_folder
from syncd.uploads import upload_request
from syncd.uploads.chunk_files import (
    ALONE,
    OURS,
    ChunkFiles,
    UploadFacts,
    find_uploads,
    has_space,
    hiding_disk_errors,
    remove_leftovers,
    write_all,
)

FOLDER: Final = "uploads"  # in the state folder
OWNER: Final = ""  # in place of a key's id
LIVES_MS: Final = 600_000  # milliseconds without a call after which an upload is deleted
SOON_S: Final = 5.0  # seconds after which a key at its limit may retry
NO_SUCH: Final = "no such upload: it is finished, or it received nothing for ten minutes; start again"


@dataclass(frozen=True, slots=True)
class Upload:
    """Describes the state of an upload."""

    upload_id: str
    filename: str
    total_size: int
    received_bytes: int
    chunks: int  # number of received chunks
    expires_at: int  # epoch milliseconds; each further call extends it
    chunk_bytes: int = upload_request.CHUNK  # recommended bytes of a chunk


class Uploads:
    """Manages the uploads of all keys, for all threads of one process."""

    def __init__(self, state: Path, queue: Queue, settings: KbSettings, *, vault: Path, now: Callable[[], int]) -> None:
        self.settings = settings
        self._root, self._queue, self._vault, self._now = state / FOLDER, queue, vault, now
        self._lock = threading.Lock()  # guards the next two attributes
        self._known = {parts.id: parts for parts in find_uploads(self._root)}
        self._arriving: dict[str, SingleUpload] = {}

    # In three steps

    def start(
        self,
        key: str,
        workspace: str,
        *,
        filename: str,
        total_size: int,
        sha256: str | None = None,
        **description: Any,
    ) -> Upload:
        """Start an upload; `description` holds the arguments of `upload_request.check_description`.

        Raises InvalidArgument; ResourceExhausted if the file is too large or the key is at its limit; Unavailable if
        the disk lacks space."""
        size = upload_request.check_size(total_size, largest=self.settings.max_file)
        arguments = {
            "name": upload_request.check_filename(filename),
            "size": size,
            **upload_request.check_description(self.settings.all_collections, **description),
        }
        facts = UploadFacts(key, workspace, size, upload_request.check_sha256(sha256), arguments)
        self.check_space(2 * size, stored=size)  # its chunks, and the assembled file
        made = str(uuid.uuid4())
        parts = ChunkFiles(made, facts, self._root / made, self._now())
        with self._lock:
            self._check_share(key, size)
            self._known[made] = parts
        try:
            parts.begin()
        except BaseException:
            self._drop(parts)
            raise
        return _upload_status(parts)

    def put_chunk(self, key: str, workspace: str, upload_id: str, index: int, data: bytes) -> Upload:
        """Save one chunk; a chunk that is sent again replaces the earlier one.

        Raises NotFound, InvalidArgument, ResourceExhausted or Unavailable."""
        with self._open_upload(key, workspace, upload_id) as parts:
            others = parts.received - parts.sizes.get(index, 0)
            upload_request.check_chunk(index, len(data), total=parts.about.size, others=others)
            self.check_space(len(data))
            parts.write_chunk(index, data)
            parts.touched_at = self._now()
            return _upload_status(parts)

    def finish(self, key: str, workspace: str, upload_id: str) -> Job:
        """Assemble the chunks and queue the file; a repeated call returns the first call's job.

        Raises NotFound; InvalidArgument if chunks are missing, or the file has the wrong digest or type."""
        with ExitStack() as opened:
            try:
                parts = opened.enter_context(self._open_upload(key, workspace, upload_id))
            except NotFound:
                return self._earlier_job(key, workspace, upload_id)
            # An earlier call may have queued it and crashed before it returned.
            job = self._finished_job(key, workspace, upload_id)
            if job is None:
                parts.touched_at = self._now()
                upload_request.check_complete(parts.sizes, parts.about.size)
                self.check_space(parts.about.size)
                arguments, file = parts.about.given, parts.assemble()
                check_type(str(arguments["name"]), file)
                job = self._queue.add_file(key, workspace, arguments, file, id=_job_id(upload_id))
            self._drop(parts)
            return job

    def _earlier_job(self, key: str, workspace: str, upload_id: str) -> Job:
        """Return the job of an upload that an earlier call finished. Raises NotFound."""
        if OURS.fullmatch(upload_id) and not upload_id.endswith(ALONE):
            job = self._finished_job(key, workspace, upload_id)
            if job is not None:
                return job
        raise NotFound(NO_SUCH)

    # In one piece

    def receive(self, key: str, workspace: str, size: int | None = None) -> SingleUpload:
        """Start to receive a file in one piece; `size` is its approximate number of bytes, if known.

        Raises ResourceExhausted or Unavailable."""
        self.check_space(size or 0, stored=size or 0)
        upload = SingleUpload(self, key, workspace, self._root / f"{uuid.uuid4()}{ALONE}")
        with self._lock:
            self._check_share(key, size or 0)
            upload.reserved = size or 0
            self._arriving[upload.path.name] = upload
        return upload

    def reserve(self, upload: SingleUpload, more: int) -> None:
        """Reserve `more` bytes for a file. Raises ResourceExhausted if they exceed its key's quota."""
        with self._lock:
            self._check_quota(upload.key, more)
            upload.reserved += more

    def forget(self, upload: SingleUpload) -> None:
        """Stop counting a file that was queued or has failed."""
        with self._lock:
            self._arriving.pop(upload.path.name, None)

    def queue(
        self,
        key: str,
        workspace: str,
        path: Path,
        *,
        size: int,
        description: Mapping[str, Any],
        digest: str | None = None,
    ) -> Job:
        """Queue a received file. Raises InvalidArgument."""
        rest = dict(description)
        arguments = {
            "name": upload_request.check_filename(rest.pop("filename")),
            **upload_request.check_description(self.settings.all_collections, **rest),
        }
        arguments["size"] = upload_request.check_size(size, largest=self.settings.max_file)
        arguments |= {"sha256": digest} if digest else {}
        check_type(arguments["name"], path)
        return self._queue.add_file(key, workspace, arguments, path)

    def adopt(self, name: str, workspace: str, *, sha256: str | None = None, **description: Any) -> Job:
        """Queue a file that the owner's command has copied into this folder as `name`; no key, so no quota, applies.

        `sha256` is the digest of its bytes, by which `memex addfile` recognizes the file later."""
        path = self._root / name
        if not (OURS.fullmatch(name) and name.endswith(ALONE)) or path.is_symlink() or not path.is_file():
            raise InvalidArgument("no upload has such a file")
        return self.queue(
            OWNER,
            workspace,
            path,
            size=path.stat().st_size,
            description=description,
            digest=upload_request.check_sha256(sha256),
        )

    # What is left

    def remove_stale(self, now: int | None = None) -> list[str]:
        """Remove uploads without a call for ten minutes, and leftovers of a crash; return the names of both."""
        now = self._now() if now is None else now
        gone = []
        for parts in list(self._known.values()):
            if parts.lock.acquire(blocking=False):  # otherwise a call is using it
                try:
                    parts.touched_at = min(parts.touched_at, now)  # the clock was set back
                    if now - parts.touched_at >= LIVES_MS and not parts.over:
                        self._drop(parts)
                        gone.append(parts.id)
                finally:
                    parts.lock.release()
        with self._lock:
            kept = frozenset(self._known) | frozenset(self._arriving)
        return gone + remove_leftovers(self._root, kept, before=now - LIVES_MS)

    def check_space(self, size: int, *, stored: int = 0) -> None:
        """Raise Unavailable unless this disk has room for `size` bytes, and the vault's disk for `stored` bytes.

        The bytes that the settings keep free do not count as room."""
        for folder, wanted in ((self._root, size), (self._vault, stored)):
            with suppress(OSError):  # the vault is unavailable, and its jobs wait for it
                if wanted and not has_space(folder, wanted, free=self.settings.free):
                    raise Unavailable("the disk is almost full; nothing was kept, try again when there is room")

    @contextmanager
    def _open_upload(self, key: str, workspace: str, upload_id: str) -> Iterator[ChunkFiles]:
        parts = self._known.get(upload_id)
        if parts is not None and (parts.about.key, parts.about.workspace) == (key, workspace):
            with parts.lock:
                if not parts.over:
                    yield parts
                    return
        raise NotFound(NO_SUCH)

    def _finished_job(self, key: str, workspace: str, upload_id: str) -> Job | None:
        """Return the job of a finished upload; None if the upload was not finished."""
        try:
            return self._queue.job(_job_id(upload_id), key=key, workspace=workspace)
        except NotFound:
            return None

    def _check_share(self, key: str, size: int) -> None:
        """Raise ResourceExhausted if the key has too many unfinished uploads, or too many bytes in them."""
        uploads = sum(parts.about.key == key for parts in self._known.values())
        uploads += sum(upload.key == key for upload in self._arriving.values())
        if uploads >= self.settings.uploads:
            raise ResourceExhausted(
                f"{uploads} uploads of this key are in progress; finish one first", retryable=True, retry_after=SOON_S
            )
        self._check_quota(key, size)

    def _check_quota(self, key: str, more: int) -> None:
        most = self.settings.staged
        if more > most:
            raise ResourceExhausted(
                f"the file exceeds the limit of {most:,} bytes for the unfinished files of a key", limit=most
            )
        held = sum(parts.about.size for parts in self._known.values() if parts.about.key == key)
        held += sum(upload.reserved for upload in self._arriving.values() if upload.key == key)
        if held + more > most or held + more + self._queue.pending_size(key, "file")[1] > most:
            raise ResourceExhausted(
                f"the waiting and unfinished files of this key would exceed {most:,} bytes; try again when jobs have ended",
                retryable=True,
                retry_after=SOON_S,
            )

    def _drop(self, parts: ChunkFiles) -> None:
        parts.over = True
        with self._lock:
            self._known.pop(parts.id, None)
        parts.remove()


class SingleUpload:
    """Receives a file in one piece. If the file is not queued by the end of the `with` block, it is deleted.

    If the block ends while a thread is using the file, that thread closes the file, because the system soon gives the
    number of a closed file descriptor to another file."""

    def __init__(self, uploads: Uploads, key: str, workspace: str, path: Path) -> None:
        self.key, self.workspace, self.path = key, workspace, path
        self.size = self.reserved = 0
        self._uploads = uploads
        self._file = -1
        self._lock = threading.Lock()  # held while a thread uses the file
        self._left = False

    def __enter__(self) -> Self:
        try:
            with hiding_disk_errors("nothing was kept; send it again"):
                self.path.parent.mkdir(mode=0o700, exist_ok=True)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                self._file = os.open(self.path, flags, 0o600)
        except Unavailable:
            self._uploads.forget(self)  # otherwise it would count toward its key's quota until the next start
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._left = True
        self._close()

    def write(self, data: bytes) -> None:
        """Write the next bytes. Raises ResourceExhausted or Unavailable."""
        with self._open() as file:
            self.size += len(data)
            upload_request.check_size(max(self.size, 1), largest=self._uploads.settings.max_file)
            if self.size > self.reserved:
                self._uploads.reserve(self, self.size - self.reserved)
            self._uploads.check_space(len(data))
            with hiding_disk_errors("nothing was kept; send it again"):
                write_all(file, data)

    def queue(self, **description: Any) -> Job:
        """Save the file to disk and queue it. Raises InvalidArgument or Unavailable.

        `description` holds its `filename` and the arguments of `upload_request.check_description`."""
        with self._open() as file:
            with hiding_disk_errors("nothing was kept; send it again"):
                os.fsync(file)
                sync_folder(self.path.parent)
            return self._uploads.queue(self.key, self.workspace, self.path, size=self.size, description=description)

    @contextmanager
    def _open(self) -> Iterator[int]:
        """Yield the file descriptor, which stays open during this block.

        Raises Unavailable if the upload's own block has ended."""
        try:
            with self._lock:
                if self._left:
                    raise Unavailable("the upload was interrupted and nothing was kept; send it again")
                yield self._file
        finally:
            self._close()

    def _close(self) -> None:
        """Close the file and remove its remains, once the upload's block has ended and no thread is using the file."""
        if self._left and self._lock.acquire(blocking=False):
            try:
                if self._file >= 0:
                    os.close(self._file)
                    self._file = -1
                    with suppress(OSError):
                        self.path.unlink(missing_ok=True)
                    self._uploads.forget(self)
            finally:
                self._lock.release()


def check_type(name: str, file: Path) -> None:
    """Raise InvalidArgument, with the reason, if Memex cannot read files of this type, or the file is empty.

    A file that has a known suffix but the wrong content passes: its job fails with the reason, and keeps the file."""
    with hiding_disk_errors(), file.open("rb") as opened:
        head = opened.read(HEAD)
    try:
        media_type_of(name, head)
    except InvalidArgument:
        if suffix(name) not in KNOWN or not head:
            raise


def _job_id(upload_id: str) -> str:
    """Return the job id of an upload. It derives from the upload's id, so finishing twice gives one job."""
    return uuid.UUID(upload_id).hex


def _upload_status(parts: ChunkFiles) -> Upload:
    return Upload(
        upload_id=parts.id,
        filename=str(parts.about.given["name"]),
        total_size=parts.about.size,
        received_bytes=parts.received,
        chunks=len(parts.sizes),
        expires_at=parts.touched_at + LIVES_MS,
    )
