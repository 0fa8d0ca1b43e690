"""Which encoder is brought back for the index in use, and how its settings are remembered."""

from __future__ import annotations

import json

import pytest

from index.encoders.embedder import Embedder, EmbedSettings
from index.encoders.settings import BundledSettings, EndpointSettings, LocalSettings, without_secrets
from index.errors import Unavailable
from syncd.indexes.build_inputs import encoder_to_recall, from_table, to_table
from tests.support.fakes import FakeEncoder

OLD, NEW = BundledSettings(), BundledSettings("int8")


@pytest.mark.parametrize(
    "settings",
    [
        BundledSettings(),
        BundledSettings("int8"),
        LocalSettings("a/b", device="cpu", query_prompt="q: ", max_tokens=128, download=True),
        EndpointSettings("http://host:1/v1", "m", dimensions=64, api_key_env="KEY", timeout_s=1.5, retries=0),
    ],
)
def test_settings_are_remembered_as_they_were(settings):
    assert from_table(json.loads(json.dumps(to_table(settings)))) == settings


def test_no_password_is_remembered():
    told = json.dumps(to_table(without_secrets(EndpointSettings("http://me:hunter2@host/v1", "m"))))
    assert "hunter2" not in told
    assert from_table(json.loads(told)) == EndpointSettings("http://host/v1", "m")


@pytest.mark.parametrize(
    "told", [None, {}, "x", {"kind": "later"}, {"kind": "bundled", "precision": "fp8"}, {"kind": "local"}]
)
def test_settings_of_another_version_are_none(told):
    assert from_table(told) is None


def embedder(*places, identity="", broken=False):
    """One that has loaded an encoder of `identity`, could load none, or has not been started."""

    def load(*_):
        if broken:
            raise Unavailable("it is not there")
        return FakeEncoder(identity=identity)

    made = Embedder(EmbedSettings(places), cache=None, load=load, retry_s=(60, 60))
    if identity or broken:
        made.start()
        made.wait(10)
    return made


@pytest.mark.parametrize(
    ("configured", "identity", "broken", "expected"),
    [
        pytest.param((NEW,), "new", False, OLD, id="another one is set"),
        pytest.param((NEW,), "", False, OLD, id="another one is set and still loading"),
        pytest.param((NEW,), "", True, OLD, id="another one is set and can't be loaded"),
        pytest.param((NEW,), "old", False, None, id="the same model, set in another way"),
        pytest.param((OLD,), "new", False, None, id="what is set has become another model"),
        pytest.param((OLD,), "", True, None, id="what is set can't be loaded"),
        pytest.param((NEW, OLD), "", True, None, id="it takes the first one's place by itself"),
        pytest.param((NEW, OLD), "new", False, OLD, id="it was in the first one's place, which is back"),
    ],
)
def test_the_encoder_of_an_index_is_brought_back_where_that_helps(configured, identity, broken, expected):
    made = embedder(*configured, identity=identity, broken=broken)
    assert encoder_to_recall(made, OLD, "old") == expected
    made.close()


def test_an_index_of_words_alone_or_of_an_older_version_misses_no_encoder():
    made = embedder(NEW, identity="new")
    assert encoder_to_recall(made, OLD, "") is None
    assert encoder_to_recall(made, None, "old") is None
    made.close()
