"""syncd/installation/encoder_choice.py: an encoder becomes the first one, and every other line stays."""

from __future__ import annotations

import tomllib

import pytest

from index.errors import Conflict
from syncd.installation.encoder_choice import put_encoder_first, write_first_encoder

LOCAL = {"kind": "local", "model": "org/m", "query_prompt": 'q "x": ', "document_prompt": "検索: "}
BUNDLED = {"kind": "bundled"}
OLD = """# my settings
[vault]
path = "/v" # here

# the model of the office
[[embed.encoders]]
kind = "endpoint" # the server
base_url = "http://s/v1"
model = "m"

# and if it is down
[[embed.encoders]]
kind = "bundled"

# how long
[log]
level = "info"
"""


def put(text, encoder=LOCAL):
    return put_encoder_first(text, encoder, lambda table: table == encoder)


def encoders(text):
    return tomllib.loads(text)["embed"]["encoders"]


@pytest.mark.parametrize(
    "text",
    ["", '[vault]\npath = "/v"\n', "[embed]\nthreads = 2\n\n[log]\n", '[vault]\npath = "/v" # here'],
)
def test_settings_without_an_encoder_get_it_before_the_bundled_one(text):
    edited = put(text)
    assert edited.startswith(text.rstrip())
    assert encoders(edited) == [LOCAL, BUNDLED]


def test_the_bundled_model_needs_no_other_encoder():
    assert encoders(put("", BUNDLED)) == [BUNDLED]


def test_a_new_encoder_comes_first_and_every_line_stays():
    edited = put(OLD)
    assert encoders(edited) == [LOCAL, *encoders(OLD)]
    assert [line for line in OLD.splitlines() if line not in edited.splitlines()] == []
    assert edited.index("org/m") < edited.index("# the model of the office") < edited.index('kind = "endpoint"')


def test_an_encoder_that_is_there_moves_to_the_front_with_its_comments():
    edited = put(OLD, BUNDLED)
    assert encoders(edited) == list(reversed(encoders(OLD)))
    assert sorted(filter(None, edited.splitlines())) == sorted(filter(None, OLD.splitlines()))
    assert put(edited, BUNDLED) is not None
    assert encoders(put(edited, BUNDLED)) == encoders(edited)


def test_line_ends_stay():
    edited = put(OLD.replace("\n", "\r\n"))
    assert "\n" not in edited.replace("\r\n", "")
    assert encoders(edited) == [LOCAL, *encoders(OLD)]


@pytest.mark.parametrize(
    "text",
    [
        'embed = {encoders = [{kind = "bundled"}]}\n',
        '[embed]\nencoders = [{kind = "bundled"}]\n',
        '[vault]\nname = """\n[[embed.encoders]]\n"""\n[[embed.encoders]]\nkind = "bundled"\n',
    ],
)
def test_what_can_t_be_changed_line_by_line_is_refused_and_stays(text, tmp_path):
    assert put(text) is None
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(Conflict, match=r'(?s)can\'t be changed line by line.*\[\[embed\.encoders\]\]\nkind = "local"'):
        write_first_encoder(file, LOCAL, lambda table: table == LOCAL)
    assert file.read_text() == text


def test_the_file_is_written_behind_a_link(tmp_path):
    (tmp_path / "real.toml").write_text(OLD)
    (tmp_path / "config.toml").symlink_to(tmp_path / "real.toml")
    write_first_encoder(tmp_path / "config.toml", LOCAL, lambda table: table == LOCAL)
    assert (tmp_path / "config.toml").is_symlink()
    assert encoders((tmp_path / "real.toml").read_text())[0] == LOCAL
