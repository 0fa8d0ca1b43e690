"""Models whose validators are built when they are first used."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import BaseModel, ValidationError

from index.deferred_models import DEFER, defer_models
from tests.support.paths import ROOT

# As the daemon imports it; the models of the protocol that it needs first must work.
SERVER = """
from index.deferred_models import defer_models
with defer_models():
    from mcp_server import server
from mcp.types import CallToolRequest, InitializeRequestParams, Tool
deferred = [model for model in (CallToolRequest, InitializeRequestParams, Tool) if not model.__pydantic_complete__]
asked = CallToolRequest.model_validate({"method": "tools/call", "params": {"name": "recall", "arguments": {"limit": 3}}})
print(len(deferred) > 0, asked.params.name, asked.model_dump(by_alias=True)["params"]["arguments"])
"""


def test_a_model_is_built_at_its_first_use_and_works_like_any_other():
    with defer_models():

        class Note(BaseModel):
            title: str
            tags: list[str] = []

    class Other(BaseModel):
        title: str

    assert (Note.__pydantic_complete__, Other.__pydantic_complete__) == (False, True)
    assert Note(title="weir", tags=["water"]).model_dump() == {"title": "weir", "tags": ["water"]}
    with pytest.raises(ValidationError):
        Note.model_validate({"title": []})


def test_of_two_blocks_the_last_one_to_end_ends_the_deferral():
    one, other = defer_models(), defer_models()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)

    class Made(BaseModel):
        title: str

    other.__exit__(None, None, None)
    assert not Made.__pydantic_complete__
    assert DEFER not in BaseModel.model_config


@pytest.mark.slow
def test_the_server_is_imported_so_and_reads_a_request():
    done = subprocess.run(
        [sys.executable, "-c", SERVER], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("True recall {'limit': 3}\n", "")
