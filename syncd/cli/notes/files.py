"""Define the command `addfile`: copy local files for the daemon, queue them, and wait until they are documents."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from index.errors import InvalidArgument, MemexError, PermissionDenied, Unavailable, from_dict
from index.names import pluralize
from syncd.cli.framework.arguments import YES, confirm, tags_option, wait_for_jobs, workspace_option
from syncd.cli.framework.commands import (
    Command,
    Event,
    load_settings,
    open_session,
    print_answer,
    print_message,
    show_progress,
    wants_json,
)
from syncd.cli.framework.completion import collections, files
from syncd.cli.terminal import result_text

if TYPE_CHECKING:
    from syncd.uploads.local_files import File, StagedCopy

# ruff: noqa: PLC0415 - only this command needs the code that recognizes file types and copies files

ASKED: Final = 500  # most jobs in one wait request
ASK_ABOVE: Final = 100  # files that are added without a question

Ask = Callable[[str, Mapping[str, Any]], Any]


@click.command("addfile", cls=Command)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, shell_complete=files)
@workspace_option("The workspace of the files.")
@click.option("--namespace", help="A folder inside the workspace.")
@click.option("--collection", shell_complete=collections, help="The collection of the files.")
@tags_option("A tag; repeat for several.")
@click.option("--title", help="The title, for a single file.")
@click.option("--name", help="The file name for stdin, such as report.pdf.")
@click.option("--dry-run", is_flag=True, help="Show what would be added, and change nothing.")
@click.option("--no-wait", is_flag=True, help="Don't wait until the files have been read.")
@YES
def addfile(
    paths: tuple[str, ...],
    *,
    name: str | None,
    dry_run: bool,
    no_wait: bool,
    tags: tuple[str, ...],
    yes: bool,
    **rest: str | None,
) -> None:
    """Add files to the inbox: Memex stores each file, and a note with its text.

    PATH is a file, a folder (with its subfolders), a pattern in quotes, or - for stdin with --name. Memex reads Markdown,
    text, HTML, CSV, JSON, PDF, Word, PowerPoint and Excel files. Hidden files, files of other types and files that were added
    before are skipped, with one line each. At a terminal, Memex asks before it adds more than 100 files. Without a daemon, the
    command reads the files itself, one after the other."""
    if ("-" in paths) != (name is not None) or ("-" in paths and len(paths) > 1):
        raise InvalidArgument(
            "- must be the only PATH and needs --name, as in: memex addfile - --name report.pdf < report.pdf"
        )
    fields = {key: value for key, value in rest.items() if value is not None} | {"tags": list(tags), "source": "cli"}
    with show_progress() as show, open_session() as ask:
        checked = ask("file.check", fields)
        adding = AddedFiles(ask, fields, show, checked["largest"], dry=dry_run, yes=yes)
        if name is None:
            adding.add_paths(paths)
        else:
            adding.add_stdin(name)
        if not no_wait:
            adding.wait()
    print_answer({"files": adding.files, "counts": adding.counts()}, adding.format_text)
    adding.raise_errors()


@dataclass(slots=True)
class AddedFiles:
    """Adds files, and keeps the state of each one in the order of discovery."""

    ask: Ask
    fields: Mapping[str, Any]
    show: Callable[[Event], None]
    largest: int
    dry: bool
    yes: bool
    files: list[dict[str, Any]] = field(default_factory=list)
    _jobs: dict[str, dict[str, Any]] = field(default_factory=dict)  # id → the record of its file
    _known: dict[str, str] = field(default_factory=dict)  # digest → the first file with it
    _errors: list[MemexError] = field(default_factory=list)

    def add_paths(self, paths: tuple[str, ...]) -> None:
        """Add the files that `paths` name. All paths are checked first, so that a wrong path adds nothing."""
        from syncd.uploads.local_files import SkippedFile, find_files, open_file

        local_files: list[File] = []
        for file in find_files(paths, largest=self.largest):
            if not isinstance(file, SkippedFile):
                local_files.append(file)
            elif file.error:
                self._record_failure(file.path, file.error)
            else:
                self._record(file.path, "skipped", file.why)
        if self.fields.get("title") and len(local_files) > 1:
            raise InvalidArgument(f"--title works for one file, and there are {len(local_files):,}")
        total, before = sum(file.size for file in local_files), 0
        if not self.dry:
            self._confirm(len(local_files), total)
        for number, file in enumerate(local_files):
            if self.dry:
                self._record(file.path, "found")
                continue
            try:
                with _raise_as_denied(), open_file(file.path) as source:
                    self._add(file.path, file.name, source, before, total)
            except MemexError as error:
                self._record_failure(file.path, error)
                if isinstance(error, Unavailable):  # the other files would fail too
                    for left in local_files[number + 1 :]:
                        self._record(left.path, "skipped", "not tried")
                    break
            before += file.size

    def _confirm(self, count: int, total: int) -> None:
        """Show how much is about to be added; at a terminal, ask whether to add so many files."""
        many = f"{pluralize(count, 'file')} ({result_text.format_size(total)})"
        if count > ASK_ABOVE and not self.yes and sys.stdin is not None and sys.stdin.isatty():
            confirm(f"Add {many}? To see the list and add nothing, answer n and use --dry-run.", yes=False)
        elif count > 1:
            print_message(f"memex: adding {many}")

    def add_stdin(self, name: str) -> None:
        """Add the file from stdin."""
        try:
            if self.dry:
                self._record(name, "found")
            else:
                with _raise_as_denied():
                    self._add(name, name, sys.stdin.buffer, 0, 0)
        except MemexError as error:
            self._record_failure(name, error)

    def wait(self) -> None:
        """Wait until all queued jobs have ended."""
        ids = list(self._jobs)
        for first in range(0, len(ids), ASKED):
            for job in wait_for_jobs(self.ask, ids[first : first + ASKED]):
                file = self._jobs[job["id"]]
                file["status"], file["document_id"] = job["status"], job["document_id"]
                if job["status"] == "failed":
                    self._record_failure(file["path"], from_dict(job["error"]), file)

    def counts(self) -> dict[str, int]:
        """Count the files by status."""
        every = [file["status"] for file in self.files]
        return {status: every.count(status) for status in dict.fromkeys(every)}

    def format_text(self) -> str:
        """Format one line for each added file, then the counts."""
        words = {"done": "added", "found": "would be added", "same": "already present"}
        lines = [
            f"{file['document_id'] or file['job_id'] or ''}  {result_text.line(file['path'], 300)}".strip()
            for file in self.files
            if file["status"] in ("done", "queued", "running", "found")
        ]
        counts = ", ".join(f"{count:,} {words.get(status, status)}" for status, count in self.counts().items())
        return "\n".join([*lines, counts or "no files found"])

    def raise_errors(self) -> None:
        """Raise the error of files that could not be added, or InvalidArgument if there was no file to add."""
        if self._errors:
            first, failed = self._errors[0], len(self._errors)
            if failed == 1 and wants_json():
                raise first
            many = f"{failed:,} of {pluralize(len(self.files), 'file')} could not be added"
            # People have read the reason in the line of the file.
            reason = f"; the first: {first.message}" if wants_json() else ""
            raise type(first)(f"{many}{reason}", retryable=first.retryable)
        if not self.counts().keys() - {"skipped"}:
            raise InvalidArgument("no files to add")

    def _add(self, path: Path | str, name: str, source: BinaryIO, before: int, total: int) -> None:
        from syncd.uploads.local_files import staged_copy

        chosen = load_settings()

        def show(size: int) -> None:
            self.show({"done": (before + size) >> 10, "total": total >> 10, "stage": f"{name} (KiB)"})

        with staged_copy(source, chosen.state, largest=self.largest, free=chosen.kb.free, show=show) as copy:
            same, job = self._find_same(copy)
            if same:
                self._record(path, "same", f"same content as {same}")
                return
            if job is None:
                job = self.ask("file.add", {**self.fields, "staged": copy.name, "name": name, "sha256": copy.digest})
        self._known[copy.digest] = str(path)
        self._jobs[job["id"]] = self._record(path, "queued", job_id=job["id"])

    def _find_same(self, copy: StagedCopy) -> tuple[str, Mapping[str, Any] | None]:
        """Find a file with the same bytes, added now or before ("" if there is none), and the queued job for these bytes."""
        if first := self._known.get(copy.digest):
            return first, None
        result = self.ask("file.check", {**self.fields, "sha256": copy.digest, "size": copy.size})
        known = result["document"]
        return (f"{known['path']} ({known['id']})", None) if known else ("", result.get("job"))

    def _record(self, path: Path | str, status: str, why: str = "", *, job_id: str | None = None) -> dict[str, Any]:
        file = {"path": str(path), "status": status, "reason": why or None, "job_id": job_id, "document_id": None}
        self.files.append(file)
        if why:
            print_message(f"memex: {result_text.line(str(path), 300)}: {result_text.line(why, 400)}")
        return file

    def _record_failure(self, path: Path | str, error: MemexError, file: dict[str, Any] | None = None) -> None:
        self._errors.append(error)
        if file is None:
            self._record(path, "failed", error.message)
        else:
            file["reason"] = error.message
            print_message(f"memex: {result_text.line(str(path), 300)}: {result_text.line(error.message, 400)}")


@contextmanager
def _raise_as_denied() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PermissionDenied(f"can't read the file: {error.strerror}") from error
