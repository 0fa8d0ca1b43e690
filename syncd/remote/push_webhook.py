"""Check the webhook that a forge sends after a push: its secret, its signature, and whether the delivery is known.

Law, tested: Memex uses nothing of a delivery's content; a signed, new delivery only makes the daemon fetch from the
remote. Only the body is signed, so each body counts once, whatever its headers say."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from index.document_ids import sha256
from index.errors import Conflict, InvalidArgument, NotFound
from syncd.state.folder import write_private
from syncd.state.ledger import Ledger

SECRET = "hook-secret"  # noqa: S105 - the name of the file that holds it
KEPT = 20_000  # number of ids and digests of the latest deliveries to remember
_BODY = "body/"  # prefix of a body's digest; no id contains a slash
_ID = re.compile(r"[0-9A-Za-z_.:-]{1,100}\Z")
_HEX = re.compile(rb"(?:sha256=)?([0-9a-fA-F]{64})\Z")


def make_secret(state: Path, *, rotate: bool) -> str:
    """Make a new webhook secret, save it and return it. Raises Conflict if one exists and `rotate` is off."""
    file = state / SECRET
    if file.exists() and not rotate:
        raise Conflict("a secret for webhooks exists already: to replace it, run `memex hook secret --rotate`")
    secret = secrets.token_hex(32)
    write_private(file, secret + "\n")
    return secret


def drop_secret(state: Path) -> None:
    """Delete the secret, which turns webhooks off. Raises NotFound if there is none."""
    try:
        (state / SECRET).unlink()
    except FileNotFoundError:
        raise NotFound("there is no secret for webhooks, so webhooks are off already") from None


def is_well_formed(signature: bytes) -> bool:
    """Return whether a header has the form of a signature: GitHub's form, or that of Gitea and Forgejo."""
    return _HEX.match(signature) is not None


class PushWebhook:
    """Checks the webhooks of one daemon. It reads the secret for each check, so a new secret counts at once."""

    def __init__(self, ledger: Ledger, state: Path, on_push: Callable[[], None], *, kept: int = KEPT) -> None:
        self._ledger, self._file, self._on_push, self._kept = ledger, state / SECRET, on_push, kept

    @property
    def is_on(self) -> bool:
        """Return whether there is a usable secret."""
        return self._read_secret() is not None

    @property
    def problem(self) -> str:
        """Return why webhooks are off although the secret's file exists; "" if there is no problem."""
        if self._read_secret() is None and os.path.lexists(self._file):
            return f"webhooks: off, because the file {SECRET} in the state folder is empty, a link, or accessible to other users; create a new secret: memex hook secret --rotate"
        return ""

    def is_signed(self, body: bytes, signatures: Sequence[bytes]) -> bool:
        """Return whether there are signatures and each of them is valid for `body`."""
        secret = self._read_secret()
        if secret is None or not signatures:
            return False
        digest = hmac.new(secret, body, hashlib.sha256).digest()
        matches = [_HEX.match(signature) for signature in signatures]
        return all(
            match is not None and hmac.compare_digest(bytes.fromhex(match[1].decode()), digest) for match in matches
        )

    def accept_delivery(self, delivery: str, body: bytes, *, now: int) -> bool:
        """Make the daemon fetch, unless this delivery's id or body is known; return whether it is new.

        Raises InvalidArgument if the delivery's id is malformed."""
        if not _ID.match(delivery):
            raise InvalidArgument(
                "the delivery has no id; forges send it in a header such as X-GitHub-Delivery or X-Gitea-Delivery"
            )
        with self._ledger.transaction():
            # Body first: a known body adds no row, so replays under new ids push no remembered row out.
            fresh = self._insert(_body_name(body), now) and self._insert(delivery, now)
        if fresh:
            self._on_push()
        return fresh

    def remember(self, body: bytes, *, now: int) -> None:
        """Remember a signed body that announces no push, so that it can't be replayed as one that does."""
        with self._ledger.transaction():
            self._insert(_body_name(body), now)

    def is_known(self, body: bytes) -> bool:
        """Return whether this body is remembered from an earlier delivery."""
        return bool(self._ledger.query("SELECT 1 FROM deliveries WHERE id = ?", (_body_name(body),)))

    def _insert(self, name: str, now: int) -> bool:
        """Remember a name, forget the oldest beyond the limit, and return whether the name is new.

        Call it inside a `transaction`."""
        fresh = self._ledger.execute("INSERT OR IGNORE INTO deliveries (id, at) VALUES (?, ?)", (name, now)) > 0
        self._ledger.execute(
            "DELETE FROM deliveries WHERE rowid <= (SELECT max(rowid) FROM deliveries) - ?", (self._kept,)
        )
        return fresh

    def _read_secret(self) -> bytes | None:
        """Return the secret; None if there is none, or users other than its owner can access the file."""
        try:
            file = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            status = os.fstat(file)
            alone = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
            return (os.read(file, 4096).strip() or None) if alone else None
        finally:
            os.close(file)


def _body_name(body: bytes) -> str:
    return _BODY + sha256(body)
