"""index/encoders/model_presets.py: names become the settings of encoders, and tiny models of each architecture take the prompts."""

from __future__ import annotations

import pytest

from index.encoders.model_presets import PRESETS, ModelOptions, choose_encoder, find_preset
from index.encoders.settings import BundledSettings, EndpointSettings, LocalSettings
from index.errors import InvalidArgument
from tests.support.tiny_models import ARCHITECTURES, build_tiny_model


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_preset_is_chosen_by_its_name_and_known_again(preset):
    encoder = choose_encoder(preset.name, ModelOptions())
    assert encoder == preset.encoder
    assert find_preset(encoder) is preset


def test_a_model_in_the_home_of_an_unknown_user_is_a_name_like_others():
    chosen = choose_encoder("~no-such-user/model", ModelOptions())
    assert isinstance(chosen, LocalSettings)
    assert chosen.model == "~no-such-user/model"


def test_the_device_and_a_download_make_no_other_model():
    chosen = choose_encoder("multilingual-e5-small", ModelOptions(download=True))
    assert isinstance(chosen, LocalSettings)
    assert chosen.download
    assert find_preset(chosen).name == "multilingual-e5-small"


def test_another_prompt_makes_another_model():
    chosen = choose_encoder("multilingual-e5-small", ModelOptions(query_prompt="search: "))
    assert chosen == LocalSettings(
        "intfloat/multilingual-e5-small", query_prompt="search: ", document_prompt="passage: "
    )
    assert find_preset(chosen) is None


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("ollama:nomic", ModelOptions(), EndpointSettings("http://127.0.0.1:11434/v1", "nomic")),
        ("m", ModelOptions("http://s/v1", "KEY", "q: "), EndpointSettings("http://s/v1", "m", api_key_env="KEY", query_prompt="q: ")),
        ("org/some-model", ModelOptions(), LocalSettings("org/some-model")),
    ],
)  # fmt: skip
def test_other_names_are_models_of_servers_or_of_the_hub(name, options, expected):
    assert choose_encoder(name, options) == expected


def test_a_folder_is_named_by_its_whole_path(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    assert choose_encoder("mine", ModelOptions()) == LocalSettings(str(tmp_path / "mine"))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("minilm", ModelOptions(query_prompt="q: ")),
        ("minilm", ModelOptions(download=True)),
        ("minilm", ModelOptions(api_key_env="KEY")),
        ("minlm", ModelOptions()),
    ],
)
def test_what_a_model_does_not_have_is_refused(name, options):
    with pytest.raises(InvalidArgument):
        choose_encoder(name, options)


def test_the_bundled_preset_has_the_facts_of_the_bundled_model(bundled):
    assert PRESETS[0].encoder == BundledSettings()
    assert PRESETS[0].dimensions == bundled.dimensions


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "name"),
    list(zip(ARCHITECTURES, ("snowflake-arctic-embed-s", "multilingual-e5-small", "ruri-v3-30m"), strict=True)),
)
def test_a_tiny_model_of_the_architecture_takes_the_prompts_of_its_preset(architecture, name, tmp_path):
    pytest.importorskip("sentence_transformers", reason="the extra `models` is not installed")
    from index.encoders.sentence_transformer import LocalEncoder

    preset = next(preset for preset in PRESETS if preset.name == name)
    folder = build_tiny_model(architecture, tmp_path / "model")
    options = ModelOptions(query_prompt=preset.encoder.query_prompt, document_prompt=preset.encoder.document_prompt)
    prompted = LocalEncoder(choose_encoder(str(folder), options))
    plain = LocalEncoder(LocalSettings(str(folder), device="cpu", query_prompt="", document_prompt=""))
    texts = ["the oven is warm", "東京の天気"]
    for kind, prompt in (("query", preset.encoder.query_prompt), ("document", preset.encoder.document_prompt)):
        vectors = prompted.encode(texts, kind=kind, urgent=True)
        assert vectors == pytest.approx(
            plain.encode([f"{prompt}{text}" for text in texts], kind=kind, urgent=True), abs=1e-5
        )
    assert prompted.identity != plain.identity
