"""Run the page: the process that `memex open` starts. It writes one line of JSON, its address or an error, and serves."""

from __future__ import annotations

import json
import os
import sys

from index.errors import MemexError
from syncd.page.server import serve
from syncd.settings.settings import load


def main() -> None:
    """Serve the page. Arguments, both JSON: the flags of settings, and the words that start `memex` for this vault."""
    flags, command = json.loads(sys.argv[1]), json.loads(sys.argv[2])
    try:
        serve(load(flags, os.environ), command=command, on_bound=lambda url: _report({"url": url}))
    except MemexError as error:
        _report({"error": error.as_dict()})


def _report(answer: object) -> None:
    """Write the line that `memex open` waits for, and close the pipe: later output goes nowhere."""
    os.write(sys.stdout.fileno(), json.dumps(answer, default=str).encode() + b"\n")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


if __name__ == "__main__":
    main()
