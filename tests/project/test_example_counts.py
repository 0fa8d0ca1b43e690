"""tests/support/example_counts.py: `make test` tries a share of the examples that a property states, `make test-all` all of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.paths import ROOT

PRINTED = "from hypothesis import settings; from tests.support import example_counts; settings.load_profile({!r}); print([example_counts.examples(count).max_examples for count in (3, 5, 10, 1000)], settings.default.derandomize)"


@pytest.mark.parametrize(("profile", "tried"), [("default", "[3, 5, 10, 1000] False"), ("ci", "[3, 5, 5, 200] True")])
def test_a_profile_has_its_share(profile, tried):
    command = [sys.executable, "-c", PRINTED.format(profile)]
    done = subprocess.run(command, cwd=ROOT, env={}, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == tried
