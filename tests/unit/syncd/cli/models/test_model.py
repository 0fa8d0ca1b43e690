"""`memex model` lists models, measures one without changing anything, and chooses one that was not found to be worse."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib

import pytest

from syncd.cli.main import run_command
from syncd.measurement.last_measurements import keep_measurement
from syncd.settings.known_vaults import default_settings_file
from syncd.settings.settings import load
from tests.support.paths import ROOT

pytestmark = pytest.mark.usefixtures("clean")

FP32, INT8 = {"kind": "bundled"}, {"kind": "bundled", "precision": "int8"}
BODY = "What is known about the {0} is written here, so that the {0} is found again when somebody asks for it. "
TOPICS = ("grey heron", "white stork", "old kiln", "rye bread", "night train")


@pytest.fixture
def vault(tmp_path, monkeypatch):
    """A vault that is set up, in whose settings a person has written something."""
    (tmp_path / "home").mkdir()
    folder = tmp_path / "vault"
    folder.mkdir()
    for topic in TOPICS:
        (folder / f"About the {topic}.md").write_text(f"## More on the {topic}\n\n{BODY.format(topic) * 3}")
    monkeypatch.chdir(tmp_path)
    assert run_command(["init", str(folder), "--yes"]) == 0
    with settings_file().open("a") as file:
        file.write("\n[log]\nlevel = 'info' # as I like it\n")
    return folder


def settings_file():
    return default_settings_file(os.environ)


def state():
    return load({}, os.environ).state


def run(capfd, *words):
    """Return the exit code, what was printed, and the messages."""
    capfd.readouterr()
    code = run_command(["model", *words])
    out, err = capfd.readouterr()
    return code, out, err


def measured(verdict, present=FP32, changed=INT8):
    keep_measurement(state(), present, changed, {"verdict": verdict, "search": {}, "meaning": {}}, 1_700_000_000_000)


def encoders():
    return tomllib.loads(settings_file().read_text()).get("embed", {}).get("encoders")


def files(folder):
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*") if path.is_file()}


def test_the_list_has_every_preset_and_marks_the_model_in_use(vault, capfd):
    code, out, _ = run(capfd, "--json")
    rows = json.loads(out)
    assert code == 0
    assert [row["name"] for row in rows if row["in_use"]] == ["minilm"]
    assert {"multilingual-e5-small", "ruri-v3-30m", "snowflake-arctic-embed-s"} < {row["name"] for row in rows}
    assert next(row["query_prompt"] for row in rows if row["name"] == "multilingual-e5-small") == "query: "
    assert "* " in run(capfd)[1]


def test_a_model_in_use_that_is_no_preset_is_listed_too(vault, capfd, monkeypatch):
    monkeypatch.setenv("MEMEX_EMBED__ENCODERS", '[{"kind": "endpoint", "base_url": "http://s/v1", "model": "nomic"}]')
    rows = json.loads(run(capfd, "--json")[1])
    assert [row["name"] for row in rows if row["in_use"]] == ["nomic"]


@pytest.mark.slow  # memex eval measures likewise, in test_evaluation.py
def test_a_try_measures_keeps_the_result_and_changes_nothing_else(vault, capfd):
    before = files(vault), files(state()), settings_file().read_bytes()
    code, out, _ = run(capfd, "try", "minilm-int8", "--json")
    result = json.loads(out)
    assert code == 0
    assert (result["present"], result["changed"]) == (FP32, INT8)
    assert result["notes"] == result["notes_in_all"] >= len(TOPICS)
    assert set(result["search"]) == {"present", "changed", "difference"}
    assert result["verdict"] == "too few questions"
    after = files(state())
    assert {path.name for path in after.keys() - before[1].keys()} == {"measurements.json"}
    assert (files(vault), {path: after[path] for path in before[1]}, settings_file().read_bytes()) == before
    assert run(capfd, "use", "minilm-int8")[0] == 0, "it was measured, and no loss was found"


@pytest.mark.slow
def test_the_table_names_both_models_the_figures_and_the_verdict(vault, capfd):
    _, out, _ = run(capfd, "try", "minilm-int8")
    for text in (
        "minilm ",
        "minilm-int8",
        "difference",
        "R@1",
        "R@5",
        "MRR",
        "memory",
        "95 % intervals",
        "too few questions",
    ):
        assert text in out


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["try", "minilm"], 2, "is the model in use"),
        (["try", "minlm"], 2, 'Did you mean "minilm"?'),
        (["try", "minilm", "--query-prompt", "q"], 2, "no prompts"),
        pytest.param(
            ["try", "org/nowhere"], 7, "to fetch it from its hub: --download", marks=pytest.mark.slow
        ),  # it loads torch
    ],
)
def test_what_can_t_be_measured_is_refused(vault, capfd, words, code, text):
    given, _, err = run(capfd, *words)
    assert given == code
    assert text in err


@pytest.mark.slow  # it loads torch
def test_a_folder_without_a_model_is_not_looked_for_on_the_hub(vault, capfd, tmp_path):
    code, _, err = run(capfd, "try", str(tmp_path))
    assert (code, "can't be loaded" in err, "hub" in err) == (7, True, False)


@pytest.mark.slow
def test_ctrl_c_ends_a_try_and_its_process_and_leaves_no_folder(vault, tmp_path):
    (tmp_path / "temporary").mkdir()
    environment = os.environ | {"TMPDIR": str(tmp_path / "temporary"), "PYTHONPATH": str(ROOT)}
    trial = subprocess.Popen(
        [sys.executable, "-m", "syncd.cli", "model", "try", "minilm-int8"],
        env=environment,
        start_new_session=True,
        stderr=subprocess.PIPE,
    )
    end = time.monotonic() + 60
    while not list((tmp_path / "temporary").glob("memex-*/*")) and time.monotonic() < end:
        time.sleep(0.05)
    os.killpg(trial.pid, signal.SIGINT)
    _, errors = trial.communicate(timeout=30)
    assert trial.returncode == 130
    assert b"Traceback" not in errors
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not (state() / "measurements.json").exists()


def test_a_model_that_was_not_measured_is_refused_without_force(vault, capfd):
    code, _, err = run(capfd, "use", "minilm-int8")
    assert (code, encoders()) == (5, None)
    assert "not measured" in err and "memex model try" in err and "--force" in err
    assert run(capfd, "use", "minilm-int8", "--force")[0] == 0
    assert encoders()[0] == INT8


@pytest.mark.parametrize("name", ["no-such-model-of-mine", "nobody/no-such-model", "./no-such-folder"])
def test_a_model_that_is_not_on_this_machine_is_refused_also_with_force(vault, capfd, name):
    before = settings_file().read_bytes()
    code, _, err = run(capfd, "use", name, "--force")
    assert code == 4
    assert err.startswith(f"memex: no model '{name}' on this machine; to fetch it from its hub: --download;")
    assert settings_file().read_bytes() == before


def test_a_measured_loss_is_refused_without_force(vault, capfd):
    measured("worse")
    code, _, err = run(capfd, "use", "minilm-int8")
    assert (code, encoders()) == (5, None)
    assert "found less" in err
    assert run(capfd, "use", "minilm-int8", "--force")[0] == 0
    assert encoders()[0] == INT8


@pytest.mark.parametrize("verdict", ["better", "no difference", "too few questions"])
def test_a_model_without_a_measured_loss_is_chosen(vault, capfd, verdict):
    measured(verdict)
    before = settings_file().read_text()
    code, out, err = run(capfd, "use", "minilm-int8", "--json")
    assert code == 0
    assert json.loads(out) == {
        "name": "minilm-int8",
        "config": str(settings_file()),
        "changed": True,
        "verdict": verdict,
    }
    assert "memex index" in err
    assert settings_file().read_text().startswith(before.rstrip())
    assert [row["name"] for row in json.loads(run(capfd, "--json")[1]) if row["in_use"]] == ["minilm-int8"]


def test_the_way_back_is_a_loss_where_the_way_was_a_gain(vault, capfd):
    measured("better")
    assert run(capfd, "use", "minilm-int8")[0] == 0
    assert run(capfd, "use", "minilm")[0] == 5
    assert run(capfd, "use", "minilm", "--force")[0] == 0
    assert encoders() == [FP32, INT8]


def test_the_model_in_use_is_not_written_again(vault, capfd):
    before = settings_file().read_bytes()
    code, out, _ = run(capfd, "use", "minilm", "--json")
    assert (code, json.loads(out)["changed"]) == (0, False)
    assert settings_file().read_bytes() == before


def test_a_variable_that_overrides_the_file_is_named(vault, capfd, monkeypatch):
    monkeypatch.setenv("MEMEX_EMBED__ENCODERS", '[{"kind": "bundled"}]')
    code, _, err = run(capfd, "use", "minilm-int8", "--force")
    assert code == 2
    assert "MEMEX_EMBED__ENCODERS" in err


def test_a_model_that_other_settings_do_not_fit_is_refused(vault, capfd):
    with settings_file().open("a") as file:
        file.write('\n[index]\nchunk_tokens = 400\n\n[[embed.encoders]]\nkind = "local"\nmodel = "m"\n')
    before = settings_file().read_bytes()
    code, _, err = run(capfd, "use", "minilm", "--force")
    assert code == 2
    assert "chunk_tokens" in err
    assert settings_file().read_bytes() == before


@pytest.mark.slow
def test_a_chosen_model_is_indexed_beside_the_present_index(vault, capfd):
    assert run_command(["index"]) == 0
    assert run(capfd, "use", "minilm-int8", "--force")[0] == 0
    assert run_command(["index"]) == 0
    (made,) = [json.loads(path.read_text()) for path in (state() / "index").glob("*/made.json")]
    assert made["encoder"]["precision"] == "int8"
