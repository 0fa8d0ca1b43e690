"""Serve the owner's operations over the control socket in the state folder, to clients that can read the token beside it.

A client begins with a line that holds the token. The daemon creates a new token at each start and writes it into a file
of mode 0600. A sandboxed process of the same user may reach the socket, but can't read that file. After the token the
protocol is JSON lines: a request `{"op", "args"}` is answered by `{"taken": true}` at once, any number of `{"progress":
{…}}`, and one `{"result": …}` or `{"error": {…}}`. No agent's key opens this socket.

Laws, tested: a client that hangs, floods or disconnects delays no other client. Data of a client without the token
is not parsed."""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import os
import secrets
import selectors
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from index.errors import InvalidArgument, MemexError, PermissionDenied, ResourceExhausted, Unavailable, from_dict
from syncd.notes.secret_patterns import redact_values

Arguments: TypeAlias = Mapping[str, Any]
Progress: TypeAlias = Callable[[dict[str, Any]], None]
Operation: TypeAlias = Callable[[Arguments, Progress], Any]

DAEMON = "daemon.json"  # {"url", "pid", "epoch"} of the running daemon
NAME = "control.sock"
TOKEN = "control.token"  # noqa: S105 - a file: its text shows that a client may read the state folder
LONGEST = (
    100  # longest address in bytes that every platform accepts (108 on Linux, 104 on macOS, including the final NUL)
)
OPENING = 256  # longest first line of a client, the token, in bytes
REQUEST = 64 * 1024 * 1024  # longest request in bytes: a note of 5 MB with every byte escaped, and more
CLIENTS = 64
READ_S = 10.0  # time limit for receiving a request
SEND_S = 30.0  # time limit for sending an answer
TAKEN_S = 5.0  # time limit for a healthy daemon to accept a request

log = logging.getLogger(__name__)


class NoDaemon(Unavailable):
    """Reports that no daemon answers in this state folder."""


class DaemonEnded(Unavailable):
    """Reports that the daemon ended before it answered; it is not known whether it did what was asked."""


class DaemonSilent(Unavailable):
    """Reports that a daemon runs but does not answer in time."""


@contextlib.contextmanager
def short_address(path: Path) -> Iterator[str]:
    """Yield the address for a socket at `path`: the path, or a shorter way to it if the path is too long."""
    if len(os.fsencode(path)) <= LONGEST:
        yield str(path)
    elif sys.platform == "linux":
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{folder}/{path.name}"
        finally:
            os.close(folder)
    else:
        with tempfile.TemporaryDirectory(prefix="mx", dir="/tmp") as folder:  # $TMPDIR is itself too long on macOS
            link = Path(folder, "s")
            link.symlink_to(path.parent, target_is_directory=True)
            yield str(link / path.name)


class ControlServer:
    """Answers the owner's commands, each client on its own thread."""

    def __init__(self, state: Path, operations: Mapping[str, Operation]) -> None:
        self._path, self._token_file = state / NAME, state / TOKEN
        self._token = secrets.token_hex(32).encode()
        self._operations = operations
        self._listener: socket.socket | None = None
        self._wake = socket.socketpair()
        self._stopping = threading.Event()
        self._clients: dict[threading.Thread, socket.socket] = {}
        self._busy: set[threading.Thread] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start answering.

        The caller holds the lock of the state folder, so an existing socket belongs to a dead daemon."""
        fresh = self._path.with_name(f".{NAME}.{os.getpid()}")
        fresh.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # Before the socket exists, so that a client always finds the token.
            _write_token(self._token_file, self._token)
            with short_address(fresh) as where:
                listener.bind(where)
            fresh.chmod(0o600)  # before it listens, so that no other user could connect
            listener.listen(CLIENTS)
            fresh.replace(self._path)
        except OSError as error:
            listener.close()
            fresh.unlink(missing_ok=True)
            raise Unavailable(f"the control socket {self._path} can't be created: {error.strerror}") from error
        listener.setblocking(False)
        self._listener = listener
        self._thread = threading.Thread(target=self._accept_clients, args=(listener,), name="control", daemon=True)
        self._thread.start()

    def stop(self, grace: float = 5.0) -> None:
        """Accept no more requests, give those under way `grace` seconds to answer, and disconnect."""
        self._stopping.set()
        self._wake[1].close()  # wakes _accept_clients
        if self._listener is not None:
            self._path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                if self._token_file.read_bytes() == self._token:  # not the token of a newer daemon
                    self._token_file.unlink()
        until = time.monotonic() + grace
        with self._changed:
            for thread, client in self._clients.items():
                if thread not in self._busy:
                    _hang_up(client)
            me = threading.current_thread()
            self._changed.wait_for(lambda: not self._busy - {me}, timeout=max(0.0, until - time.monotonic()))
            for thread, client in self._clients.items():
                if thread is not me:
                    _hang_up(client)
        if self._listener is not None and self._thread is not None:
            self._thread.join(timeout=2)
            self._listener.close()
        self._wake[0].close()

    def _accept_clients(self, listener: socket.socket) -> None:
        waiting = selectors.DefaultSelector()
        waiting.register(listener, selectors.EVENT_READ)
        waiting.register(self._wake[0], selectors.EVENT_READ)
        with waiting:
            while not self._stopping.is_set():
                waiting.select()
                self._accept_client(listener)

    def _accept_client(self, listener: socket.socket) -> None:
        try:
            client, _ = listener.accept()
        except BlockingIOError:  # woken up, or the client has left
            return
        except OSError:  # out of file descriptors: wait for some to be closed
            self._stopping.wait(0.1)
            return
        client.setblocking(True)
        thread = threading.Thread(target=self._serve_client, args=(client,), name="control-client", daemon=True)
        with self._changed:
            full = len(self._clients) >= CLIENTS
            if not full:
                self._clients[thread] = client
        if full:
            _refuse(client, "too many commands at the same time; try again")
            return
        try:
            thread.start()
        except RuntimeError:  # the system allows no more threads: wait for some to end
            with self._changed:
                del self._clients[thread]
            _refuse(client, "the system allows the daemon no more threads now; try again")
            self._stopping.wait(0.1)

    def _serve_client(self, client: socket.socket) -> None:
        me = threading.current_thread()
        try:
            with client:
                if is_own_user(client):
                    self._serve_requests(client)
        except OSError:
            pass  # the client disconnected or was too slow
        finally:
            with self._changed:
                self._busy.discard(me)
                self._clients.pop(me, None)
                self._changed.notify_all()

    def _serve_requests(self, client: socket.socket) -> None:
        """Answer a client that shows the token until it leaves; refuse any other client with the reason."""
        me, reader = threading.current_thread(), _Lines(client)
        try:
            self._check_token(reader.read_line(READ_S, most=OPENING))
            while not self._stopping.is_set() and (line := reader.read_line(READ_S)) is not None:
                with self._changed:
                    self._busy.add(me)
                self._answer_request(client, line)
                with self._changed:
                    self._busy.discard(me)
                    self._changed.notify_all()
        except (ResourceExhausted, PermissionDenied) as error:
            _send(client, {"error": error.as_dict()})

    def _check_token(self, line: bytes | None) -> None:
        if line is None or not hmac.compare_digest(line, self._token):
            raise PermissionDenied(
                f"the daemon accepts commands only with its current token, in {self._token_file}; if it has just been "
                "restarted, try again; if its version differs from this command's, restart it"
            )

    def _answer_request(self, client: socket.socket, line: bytes) -> None:
        client.settimeout(SEND_S)
        gone = False

        def send_progress(event: dict[str, Any]) -> None:
            nonlocal gone
            if not gone:  # the work continues even if the client has left
                try:
                    _send(client, {"progress": event})
                except OSError:
                    gone = True

        try:
            operation, arguments = self._parse_request(line)
            _send(client, {"taken": True})
            answer = {"result": operation(arguments, send_progress)}
        except MemexError as error:
            answer = {"error": redact_values(error.as_dict())}
        except OSError as error:
            log.exception("an owner's command failed")
            answer = {"error": Unavailable(f"{error.strerror or error}").as_dict()}
        except Exception as error:  # top of the loop: one failing command must not stop the server
            log.exception("an owner's command failed")
            text = f"the daemon failed to carry out the command ({type(error).__name__}); see its log"
            answer = {"error": Unavailable(text, retryable=False).as_dict()}
        _send(client, answer)

    def _parse_request(self, line: bytes) -> tuple[Operation, dict[str, Any]]:
        try:
            request = json.loads(line)
            name, arguments = request["op"], request.get("args", {})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InvalidArgument('a request is one line of JSON: {"op": …, "args": {…}}') from None
        operation = self._operations.get(name) if isinstance(name, str) else None
        if operation is None or not isinstance(arguments, dict):
            raise InvalidArgument(
                f"the daemon does not know the operation {name!r}; its version may be older than this command"
            )
        return operation, arguments


def call(
    state: Path,
    operation: str,
    arguments: Mapping[str, Any],
    *,
    on_progress: Progress | None = None,
    timeout: float | None = None,
) -> Any:
    """Return the daemon's answer.

    Raises NoDaemon when none runs, Unavailable when it stops or is silent for `timeout` seconds."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(TAKEN_S)
        try:
            with short_address(state / NAME) as where:
                client.connect(where)
        except OSError:
            raise NoDaemon(f"no daemon runs for {state}: start it with `memex serve`") from None
        if not is_own_user(client):
            raise NoDaemon(f"the socket in {state} belongs to another user")
        token = _read_token(state)
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused; the answer gives the reason
                client.sendall(token + b"\n" + _encode({"op": operation, "args": dict(arguments)}))
            return _read_outcome(_Lines(client), on_progress, timeout)
        except TimeoutError:
            raise DaemonSilent("the daemon does not answer; check `memex status`, or restart it") from None
        except OSError:
            raise DaemonEnded("the daemon closed the connection: it was stopped, or it crashed; see its log") from None


def _write_token(path: Path, token: bytes) -> None:
    """Write the token into a new file that only this user can read; it need not survive a crash."""
    path.unlink(missing_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, token)
    finally:
        os.close(file)


def _read_token(state: Path) -> bytes:
    try:
        return (state / TOKEN).read_bytes()
    except FileNotFoundError:
        raise Unavailable(
            f"{state / TOKEN} is missing: the daemon's version is older than this command's; restart the daemon"
        ) from None
    except OSError as error:
        raise PermissionDenied(f"the token {state / TOKEN} can't be read: {error.strerror}") from None


def _read_outcome(reader: _Lines, on_progress: Progress | None, timeout: float | None) -> Any:
    wait: float | None = TAKEN_S if timeout is None else min(TAKEN_S, timeout)
    while (line := reader.read_line(wait)) is not None:
        message = json.loads(line)
        if "result" in message:
            return message["result"]
        if "error" in message:
            raise from_dict(message["error"])
        wait = timeout
        if "progress" in message and on_progress is not None:
            on_progress(message["progress"])
    raise ConnectionResetError


def is_own_user(peer: socket.socket) -> bool:
    """Return whether the other end runs as this user or as root; where that is unknown, the socket's mode decides."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return uid in (os.geteuid(), 0)


class _Lines:
    """Reads lines from a socket, each within a time and size limit."""

    def __init__(self, peer: socket.socket) -> None:
        self._peer = peer
        self._rest = bytearray()

    def read_line(self, seconds: float | None, *, most: int | None = None) -> bytes | None:
        """Return the next line; None at the end.

        Raises TimeoutError, or ResourceExhausted for a line that is too long."""
        until = None if seconds is None else time.monotonic() + seconds
        searched, most = 0, REQUEST if most is None else most
        while (end := self._rest.find(b"\n", searched)) < 0:
            searched = len(self._rest)
            if searched > most:
                raise ResourceExhausted(f"the line is longer than {most:,} bytes")
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError
            self._peer.settimeout(left)
            piece = self._peer.recv(1 << 18)
            if not piece:
                return None
            self._rest += piece
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return line


def _send(peer: socket.socket, message: dict[str, Any]) -> None:
    peer.sendall(_encode(message))


def _encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message, default=str).encode() + b"\n"


def _refuse(client: socket.socket, reason: str) -> None:
    """Send `reason` to a client that gets no thread, and disconnect it; a client that does not read it delays nobody."""
    client.settimeout(0.1)
    with contextlib.suppress(OSError):
        _send(client, {"error": ResourceExhausted(reason).as_dict()})
    client.close()


def _hang_up(peer: socket.socket) -> None:
    with contextlib.suppress(OSError):
        peer.shutdown(socket.SHUT_RDWR)
