"""Check the webhook that a forge sends after a push: its secret, its signature, and whether the delivery is known.

Law, tested: nothing that a delivery says is used; a delivery that is signed and new makes the daemon look at the
remote, and that is all. Only the body is signed, so a body counts once, whatever its headers say."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from index.errors import Conflict, InvalidArgument, NotFound
from syncd.state.folder import write_private
from syncd.state.ledger import Ledger

SECRET = "hook-secret"  # noqa: S105 - the name of the file that holds it
KEPT = 20_000  # ids and bodies of the latest deliveries that are remembered
_BODY = "body/"  # before the digest of a body; no id has a slash
_ID = re.compile(r"[0-9A-Za-z_.:-]{1,100}\Z")
_HEX = re.compile(rb"(?:sha256=)?([0-9a-fA-F]{64})\Z")


def make_secret(state: Path, *, rotate: bool) -> str:
    """A new secret for webhooks, which is shown this once. Conflict when there is one and it is not to be replaced."""
    file = state / SECRET
    if file.exists() and not rotate:
        raise Conflict("there is a secret for webhooks already: `memex hook secret --rotate` makes another and ends it")
    secret = secrets.token_hex(32)
    write_private(file, secret + "\n")
    return secret


def drop_secret(state: Path) -> None:
    """End the secret: webhooks are off."""
    try:
        (state / SECRET).unlink()
    except FileNotFoundError:
        raise NotFound("there is no secret for webhooks, so they are off already") from None


def is_well_formed(signature: bytes) -> bool:
    """Whether a header can be a signature: GitHub's form, or that of Gitea and Forgejo."""
    return _HEX.match(signature) is not None


class PushWebhook:
    """The webhooks of one daemon. The secret is read when asked for, so that a new one is in force at once."""

    def __init__(self, ledger: Ledger, state: Path, on_push: Callable[[], None], *, kept: int = KEPT) -> None:
        self._ledger, self._file, self._on_push, self._kept = ledger, state / SECRET, on_push, kept

    @property
    def is_on(self) -> bool:
        """Whether there is a secret to sign with."""
        return self._read_secret() is not None

    @property
    def problem(self) -> str:
        """Why webhooks are off although there is a secret; "" when nothing is wrong."""
        if self._read_secret() is None and os.path.lexists(self._file):
            return f"webhooks: off, as the file {SECRET} of the state folder is not its owner's alone; make a new one with memex hook secret --rotate"
        return ""

    def is_signed(self, body: bytes, signatures: Sequence[bytes]) -> bool:
        """Whether every one of these signatures, and at least one, is that of `body`."""
        secret = self._read_secret()
        if secret is None or not signatures:
            return False
        digest = hmac.new(secret, body, hashlib.sha256).digest()
        matches = [_HEX.match(signature) for signature in signatures]
        return all(
            match is not None and hmac.compare_digest(bytes.fromhex(match[1].decode()), digest) for match in matches
        )

    def accept_delivery(self, delivery: str, body: bytes, *, now: int) -> bool:
        """Make the daemon look, unless this delivery or its body is known; False for a known one."""
        if not _ID.match(delivery):
            raise InvalidArgument(
                "the delivery has no id; forges send it as X-GitHub-Delivery, X-Gitea-Delivery or the like"
            )
        with self._ledger.transaction():
            # The body first: a known one adds no row, so that replays of it under new ids push nothing out.
            fresh = self._insert(_body_name(body), now) and self._insert(delivery, now)
        if fresh:
            self._on_push()
        return fresh

    def remember(self, body: bytes, *, now: int) -> None:
        """Keep a signed body that asks for nothing, so that it can't come again as one that does."""
        with self._ledger.transaction():
            self._insert(_body_name(body), now)

    def is_known(self, body: bytes) -> bool:
        """Whether this body has come before."""
        return bool(self._ledger.query("SELECT 1 FROM deliveries WHERE id = ?", (_body_name(body),)))

    def _insert(self, name: str, now: int) -> bool:
        """Remember a name in place of the oldest (inside a `transaction`); whether it is new."""
        fresh = self._ledger.execute("INSERT OR IGNORE INTO deliveries (id, at) VALUES (?, ?)", (name, now)) > 0
        self._ledger.execute(
            "DELETE FROM deliveries WHERE rowid <= (SELECT max(rowid) FROM deliveries) - ?", (self._kept,)
        )
        return fresh

    def _read_secret(self) -> bytes | None:
        """The secret; None when there is none that is its owner's alone."""
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
    return _BODY + hashlib.sha256(body).hexdigest()
