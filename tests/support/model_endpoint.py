"""A stand-in for the remote models of agents: answers "ok" in the protocols of Anthropic and OpenAI, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# platform.claude.com/docs, "Streaming messages"
MESSAGES: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": "stand-in",
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 1},
    },
    {"type": "message_stop"},
]
# platform.openai.com/docs, "Streaming events" of the Responses API
RESPONSES: list[dict[str, Any]] = [
    {"type": "response.created", "response": {"id": "r1"}},
    {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": {
            "type": "message",
            "role": "assistant",
            "id": "m1",
            "content": [{"type": "output_text", "text": "ok"}],
        },
    },
    {
        "type": "response.completed",
        "response": {"id": "r1", "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}},
    },
]


class ModelEndpoint:
    """Listens on loopback at `url`; `asked` holds the body of each request, oldest first."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                endpoint.asked.append(self.rfile.read(int(self.headers.get("content-length") or 0)).decode())
                events = RESPONSES if self.path.endswith("/responses") else MESSAGES
                self.answer(
                    "text/event-stream", "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
                )

            def do_GET(self) -> None:
                self.answer("application/json", '{"data": [], "models": []}')

            def do_HEAD(self) -> None:
                self.answer("application/json", "")

            def answer(self, kind: str, text: str) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: object) -> None:
                """Write no line for a request."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"


@contextmanager
def model_endpoint() -> Iterator[ModelEndpoint]:
    """Serve until the block ends."""
    endpoint = ModelEndpoint()
    server = endpoint._server
    thread = threading.Thread(target=server.serve_forever, name="model endpoint")
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
