"""An identity provider like Cloudflare Access: a real HTTP server that signs assertions with rotating keys."""

from __future__ import annotations

import base64
import json
import threading
import time
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE = "4714c1358e65fe4b408ad6d432a5f878f08194bdb4752441fd56faefa9b2b6f2"


@cache
def _rsa_key(kid: str, bits: int) -> rsa.RSAPrivateKey:
    """Return the same key for the same name and size during a run, because making one takes 50 ms."""
    del kid
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


class Team:
    """Signs assertions, and publishes its keys at `url`/cdn-cgi/access/certs."""

    def __init__(self) -> None:
        self.signing: dict[str, Any] = {}
        self.published: dict[str, Any] = {"keys": []}
        self.status = 200
        self.body: bytes | None = None  # instead of the keys
        self.gate = threading.Event()
        self.gate.set()
        self.fetched = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()

    def add(self, kid: str, *, alg: str = "RS256", bits: int = 2048) -> None:
        """Add and publish a new signing key."""
        if alg == "RS256":
            self.signing[kid] = _rsa_key(kid, bits)
            public = json.loads(RSAAlgorithm.to_jwk(self.signing[kid].public_key()))
        else:
            self.signing[kid] = ec.generate_private_key(ec.SECP256R1())
            public = json.loads(ECAlgorithm.to_jwk(self.signing[kid].public_key()))
        self.published["keys"].append({**public, "kid": kid, "alg": alg, "use": "sig"})

    def retire(self, kid: str) -> None:
        """Remove a key."""
        self.published["keys"] = [key for key in self.published["keys"] if key["kid"] != kid]

    def claims(self, **changed: Any) -> dict[str, Any]:
        now = int(time.time())
        told = {"iss": self.url, "aud": [AUDIENCE], "exp": now + 600, "iat": now, "nbf": now, "type": "app"}
        told |= {"email": "Ann@example.org", "sub": "7335d417-61da-459d-899c-0a01c76a2f94"} | changed
        return {name: value for name, value in told.items() if value is not None}

    def assertion(self, kid: str, *, key: Any = None, alg: str = "RS256", named: Any = None, **changed: Any) -> str:
        """Return an assertion signed by `kid`, or by `key` in its name."""
        return jwt.encode(
            self.claims(**changed),
            key or self.signing[kid],
            algorithm=alg,
            headers={"kid": kid if named is None else named},
        )

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        team = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                team.fetched += 1
                team.gate.wait(30)
                known = self.path == "/cdn-cgi/access/certs"
                body = json.dumps(team.published).encode() if team.body is None else team.body
                try:
                    self.send_response(team.status if known else 404)
                    if team.status == 302:
                        self.send_header("location", team.url + "/cdn-cgi/access/certs?again")
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # it was given up

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


def unsigned(head: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    """Return an unsigned token."""
    parts = (json.dumps(head).encode(), json.dumps(claims).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
