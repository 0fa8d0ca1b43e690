"""The settings: who wins, and every mistake told at once."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from index.encoders.settings import BundledSettings, LocalSettings
from index.errors import InvalidArgument
from syncd.settings.settings import FIELDS, SECTIONS, NamedFolder, Settings, all_settings, load, resolve_state_and_vault
from syncd.state.folder import default_state_folder


@pytest.fixture
def home(tmp_path):
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "cfg"), "XDG_STATE_HOME": str(tmp_path / "st")}


def write(home, text):
    file = Path(home["XDG_CONFIG_HOME"]) / "memex" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_a_vault_is_all_that_is_needed(home, tmp_path):
    settings = load({"vault.path": str(tmp_path / "My Vault")}, home)
    assert settings.vault.path == tmp_path / "My Vault"
    assert settings.state.parent == tmp_path / "st" / "memex"
    assert settings.state.name.startswith("My Vault-")
    assert len(settings.state.name) == len("My Vault-") + 8
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8765)
    assert settings.file is None


def test_flags_win_over_the_environment_and_it_over_the_file(home, tmp_path):
    write(home, f'[vault]\npath = "{tmp_path}"\n[server]\nport = 1\nhost = "file"\npublic_url = "http://file"\n')
    environ = home | {"MEMEX_SERVER__PORT": "2", "MEMEX_SERVER__HOST": "env"}
    settings = load({"server.port": 3}, environ)
    assert (settings.server.port, settings.server.host, settings.server.public_url) == (3, "env", "http://file")
    assert settings.origins["server.port"] == "--port"
    assert settings.origins["server.host"] == "MEMEX_SERVER__HOST"
    assert settings.origins["server.public_url"].endswith("config.toml")


def test_all_mistakes_are_told_at_once_with_their_origin(home):
    file = write(home, '[server]\nprot = 1\nport = "x"\n[sync]\nquiet_s = -1\n[nonsense]\n')
    environ = home | {"MEMEX_SEARCH__MODE": "hybird", "MEMEX_SERVER__HOTS": "x"}
    with pytest.raises(InvalidArgument) as caught:
        load({"server.port": "70000"}, environ)
    told = caught.value.details["mistakes"]
    assert f"server.prot in {file} is not a setting; did you mean server.port?" in told
    assert f"server.port = 'x' in {file}: must be a whole number" in told
    assert f"sync.quiet_s = -1 in {file}: must be at least 0" in told
    assert f"[nonsense] in {file} is not a section" in told
    assert "search.mode = 'hybird' in MEMEX_SEARCH__MODE: must be one of hybrid, vector, text" in told
    assert "MEMEX_SERVER__HOTS is not a setting; did you mean MEMEX_SERVER__HOST?" in told
    assert "server.port = '70000' in --port: must be at most 65535" in told
    assert len(told) == 7
    assert all(one in caught.value.message for one in told)


def test_a_file_that_is_not_toml_is_one_mistake_among_others(home):
    write(home, "[vault\n")
    with pytest.raises(InvalidArgument) as caught:
        load({}, home | {"MEMEX_SERVER__PORT": "x"})
    assert len(caught.value.details["mistakes"]) == 2


@pytest.mark.parametrize("value", ["1" * 5000, "[" * 3000 + "]" * 3000])
def test_a_value_that_no_parser_reads_is_a_mistake(home, value):
    file = write(home, f"[server]\nport = {value}\n")
    with pytest.raises(
        InvalidArgument, match="a number that is too long, or values that are nested too deep"
    ) as caught:
        load({"vault.path": "/v"}, home)
    assert str(file) in caught.value.message


@pytest.mark.parametrize(
    ("encoding", "reason"),
    [("utf-8-sig", "without one"), ("utf-16", "is not UTF-8 text"), ("latin-1", "is not UTF-8 text")],
)
def test_a_file_in_another_encoding_names_the_one_that_is_needed(home, encoding, reason):
    write(home, "").write_bytes('[vault]\nname = "Zürich"\n'.encode(encoding))
    with pytest.raises(InvalidArgument, match=reason) as caught:
        load({}, home)
    assert "UTF-8" in caught.value.message


def test_a_file_that_was_named_must_exist(home, tmp_path):
    with pytest.raises(InvalidArgument, match="does not exist"):
        load({"config": "no.toml", "vault.path": "v"}, home, cwd=tmp_path)
    with pytest.raises(InvalidArgument, match="does not exist"):
        load({"vault.path": "v"}, home | {"MEMEX_CONFIG": "no.toml"}, cwd=tmp_path)


@pytest.mark.parametrize("name", ["a\0b.toml", "\ud83d.toml"])
def test_a_path_that_no_file_can_have_is_a_mistake(home, tmp_path, name):
    with pytest.raises(InvalidArgument, match="can't be read: "):
        load({"config": name, "vault.path": "v"}, home, cwd=tmp_path)


def test_a_pipe_in_place_of_the_file_is_not_waited_for_and_an_empty_device_is_no_setting(home, tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe.toml")
    with pytest.raises(InvalidArgument, match=r"pipe\.toml can't be read: not a regular file"):
        load({"config": str(pipe), "vault.path": "v"}, home)
    assert load({"config": os.devnull, "vault.path": str(tmp_path)}, home).vault.path == tmp_path


def test_a_shell_may_give_the_settings_through_a_descriptor(home, tmp_path):
    reading, writing = os.pipe()
    os.write(writing, f"[vault]\npath = {str(tmp_path)!r}\ninbox = 'Mine'\n".encode())
    os.close(writing)
    try:
        settings = load({"config": f"/dev/fd/{reading}"}, home)
    finally:
        os.close(reading)
    assert (settings.vault.path, settings.vault.inbox) == (tmp_path, "Mine")


def test_other_variables_of_the_name_are_none_of_our_business(home):
    assert load({"vault.path": "v"}, home | {"MEMEX_KEY": "x", "MEMEX_HOMEPAGE": "y"})


def test_the_short_variables_name_vault_state_and_file(home, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text("[server]\nport = 9\n")
    settings = load({}, home | {"MEMEX_VAULT": "/v", "MEMEX_STATE": "/s", "MEMEX_CONFIG": str(file)})
    assert (settings.vault.path, settings.state, settings.server.port) == (Path("/v"), Path("/s"), 9)
    assert settings.origins["vault.path"] == "MEMEX_VAULT"


def test_relative_paths_start_where_they_were_written(home, tmp_path):
    file = write(home, '[vault]\npath = "vault"\n')
    assert load({}, home, cwd=tmp_path).vault.path == file.parent / "vault"
    assert load({"vault.path": "vault"}, home, cwd=tmp_path).vault.path == tmp_path / "vault"
    assert load({"vault.path": "../v"}, home, cwd=tmp_path / "a").vault.path == tmp_path / "v"


def test_without_a_vault_the_way_out_is_told(home):
    with pytest.raises(InvalidArgument, match="memex init"):
        load({}, home)


def test_the_files_state_is_not_used_for_another_vault(home):
    write(home, 'state = "/of-a"\n[vault]\npath = "/a"\n')
    assert load({}, home).state == Path("/of-a")
    assert load({"vault.path": "/a"}, home).state == Path("/of-a")
    assert load({"vault.path": "/b"}, home).state == default_state_folder(Path("/b"), home)
    assert load({"vault.path": "/b", "state": "/c"}, home).state == Path("/c")


def test_a_state_folder_that_is_named_brings_its_vault_along(home, tmp_path):
    write(home, '[vault]\npath = "/a"\n')
    (tmp_path / "s").mkdir()
    assert load({"state": str(tmp_path / "s")}, home).vault.path == Path("/a")
    (tmp_path / "s" / "vault").write_text("/b\n")
    assert load({"state": str(tmp_path / "s")}, home).vault.path == Path("/b")
    assert load({}, home | {"MEMEX_STATE": str(tmp_path / "s")}).vault.path == Path("/b")
    assert load({"state": str(tmp_path / "s"), "vault.path": "/c"}, home).vault.path == Path("/c")


A, B = Path("/a"), Path("/b")
FILE_A, FLAG_A, FLAG_B = (
    NamedFolder(A, "file", True),
    NamedFolder(A, "--vault", False),
    NamedFolder(B, "--vault", False),
)
FILE_S, FLAG_S = NamedFolder(Path("/s"), "file", True), NamedFolder(Path("/s"), "--state", False)
BROUGHT = NamedFolder(B, "/s", False)


@pytest.mark.parametrize(
    ("state", "vault", "vault_in_file", "own_vault", "wanted"),
    [
        pytest.param(None, None, None, B, (None, None), id="nothing is named"),
        pytest.param(None, FLAG_A, None, B, (None, FLAG_A), id="a vault"),
        pytest.param(FLAG_S, None, None, B, (FLAG_S, BROUGHT), id="a state folder that has a vault"),
        pytest.param(FILE_S, None, None, B, (FILE_S, BROUGHT), id="the same in the file"),
        pytest.param(FLAG_S, None, None, None, (FLAG_S, None), id="a state folder that has none"),
        pytest.param(FILE_S, FILE_A, A, B, (FILE_S, FILE_A), id="both in the file"),
        pytest.param(FILE_S, FLAG_A, A, B, (FILE_S, FLAG_A), id="the file's vault named once more"),
        pytest.param(FILE_S, FLAG_B, A, B, (None, FLAG_B), id="the file's state is that of the file's vault"),
        pytest.param(FILE_S, FLAG_B, None, A, (FILE_S, FLAG_B), id="the file's state, and no vault in the file"),
        pytest.param(FLAG_S, FILE_A, A, B, (FLAG_S, BROUGHT), id="a state folder brings its vault along"),
        pytest.param(FLAG_S, FILE_A, A, None, (FLAG_S, FILE_A), id="if it has one"),
        pytest.param(FLAG_S, FLAG_A, B, B, (FLAG_S, FLAG_A), id="unless a vault is named too"),
    ],
)
def test_state_and_vault_fit_together(state, vault, vault_in_file, own_vault, wanted):
    assert resolve_state_and_vault(state, vault, vault_in_file, {Path("/s"): own_vault}.get) == wanted


def test_one_entry_of_a_table_has_a_variable_of_its_own(home):
    write(home, '[index]\nuri = "s3://b/p"\n[index.storage_options]\nregion = "file"\nendpoint = "file"\n')
    settings = load({"vault.path": "/v"}, home | {"MEMEX_INDEX__STORAGE_OPTIONS__REGION": "env"})
    assert settings.index.storage_options == {"region": "env", "endpoint": "file"}


def test_a_table_in_one_variable_is_completed_by_another_and_a_value_that_is_none_is_a_mistake(home):
    entry = home | {"MEMEX_INDEX__STORAGE_OPTIONS__REGION": "env"}
    written = {"MEMEX_INDEX__STORAGE_OPTIONS": '{"region": "a", "endpoint": "b"}'}
    settings = load({"vault.path": "/v"}, entry | written)
    assert settings.index.storage_options == {"region": "env", "endpoint": "b"}
    for text in ("x", "3", '{"a": 1}'):
        with pytest.raises(InvalidArgument, match=r"index\.storage_options = … in MEMEX_INDEX__STORAGE_OPTIONS:"):
            load({"vault.path": "/v"}, entry | {"MEMEX_INDEX__STORAGE_OPTIONS": text})
    write(home, "[index]\nstorage_options = 3\n")
    with pytest.raises(InvalidArgument, match=r"storage_options = … in .*config\.toml: must be a table of text"):
        load({"vault.path": "/v"}, entry)


def test_a_secret_is_not_repeated_in_a_message(home):
    with pytest.raises(InvalidArgument) as caught:
        load({"vault.path": "/v"}, home | {"MEMEX_INDEX__STORAGE_OPTIONS": "hunter2"})
    assert "hunter2" not in str(caught.value.as_dict())


def test_every_setting_has_a_sentence_and_a_default_of_its_type():
    for name, one in all_settings().items():
        assert one.doc.endswith("."), name
        assert one.type, name


def test_every_section_is_a_part_of_the_settings():
    sections = {FIELDS.get(section, section) for section in SECTIONS}
    assert sections == Settings.__dataclass_fields__.keys() - {"state", "file", "origins"}


def test_the_bundled_model_is_used_when_no_encoder_is_named(home):
    embedding = load({"vault.path": "/v", "embed.threads": "3"}, home).embed
    assert (embedding.encoders, embedding.threads) == ((BundledSettings(),), 3)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("chunk_tokens = 512", "index.chunk_tokens is 512 .*config.toml.* reads only 254 tokens: set it to 254 or less"),
        ("chunk_overlap = 128", "index.chunk_overlap is 128 .* passage of 254 tokens: set it to 127 or less"),
        ("chunk_tokens = 100\nchunk_overlap = 51", "of 100 tokens: set it to 50 or less"),
        ('chunk_tokens = 600\n[[embed.encoders]]\nkind = "endpoint"\nbase_url = "http://x/v1"\nmodel = "m"', "512 or less"),
    ],
)  # fmt: skip
def test_a_passage_that_the_encoder_can_not_read_is_refused(home, tmp_path, written, told):
    write(home, f'[vault]\npath = "{tmp_path}"\n[index]\n{written}\n')
    with pytest.raises(InvalidArgument, match=told):
        load({}, home)


@pytest.mark.parametrize(
    "written",
    ["chunk_tokens = 254\nchunk_overlap = 127", 'chunk_tokens = 600\n[[embed.encoders]]\nkind = "local"\nmodel = "m"'],
)
def test_a_passage_that_fits_or_that_only_the_model_can_judge_is_taken(home, tmp_path, written):
    write(home, f'[vault]\npath = "{tmp_path}"\n[index]\n{written}\n')
    settings = load({}, home)
    assert settings.embed.passage == settings.index.chunk_tokens


@pytest.mark.parametrize(
    ("inbox", "reason"),
    [("", "is empty"), ("../x", "relative"), ("/x", "relative"), ("a/", "relative"), (".git", "Git"), (".x", "hidden")],
)
def test_an_inbox_that_can_not_be_a_folder_of_the_vault_is_refused(home, tmp_path, inbox, reason):
    with pytest.raises(InvalidArgument, match=rf"vault\.inbox = .*{reason}"):
        load({"vault.path": str(tmp_path)}, home | {"MEMEX_VAULT__INBOX": inbox})


@pytest.mark.parametrize(
    ("name", "written", "example"),
    [
        ("server.public_url", "notes.example:8765", "https://notes.example"),
        ("server.allowed_hosts", ["https://notes.example"], "notes.example:8765"),
        ("server.allowed_origins", ["app.example"], "https://app.example"),
        ("share.never", ["a//b"], "Private"),
        ("share.never", ["../Private"], "Private"),
        ("vault.ignore", ["./Archive/**"], "Diary/**"),
    ],
)
def test_an_address_or_pattern_that_nothing_can_match_is_refused_with_an_example(home, name, written, example):
    section, key = name.split(".")
    write(home, f"[{section}]\n{key} = {written!r}\n")
    with pytest.raises(InvalidArgument, match=re.escape(f"{name} = {written!r} in ")) as caught:
        load({"vault.path": "/v"}, home)
    assert f"`{example}`" in caught.value.message


def test_encoders_are_read_in_their_order(home):
    write(
        home,
        '[[embed.encoders]]\nkind = "local"\nmodel = "m"\n[[embed.encoders]]\nkind = "bundled"\nprecision = "int8"\n',
    )
    assert load({"vault.path": "/v"}, home).embed.encoders == (LocalSettings("m"), BundledSettings("int8"))
    with pytest.raises(InvalidArgument, match="precision must be one of fp32, int8"):
        load({"vault.path": "/v"}, home | {"MEMEX_EMBED__ENCODERS": '[{"kind": "bundled", "precision": "fp8"}]'})


def test_rules_of_promotion_are_tables(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(
        '[vault]\npath = "x"\n[promote]\nfolder = ""\nname = "{date} {title}"\n'
        '[[promote.rules]]\ntag = "project"\nfolder = "Projects"\n[[promote.rules]]\nfolder = "All"\nname = "{title}"\n'
    )
    found = load({"config": str(file)}, {"HOME": str(tmp_path)}).promote
    assert [(rule.folder, rule.tag, rule.name) for rule in found.rules] == [
        ("Projects", "project", ""),
        ("All", "", "{title}"),
    ]
    assert (found.folder, found.name) == ("", "{date} {title}")


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("folder = '../x'", "promote.folder"),
        ("folder = '.obsidian'", "hidden name"),
        ("name = '{titel}'", "placeholder {titel}; use {title}"),
        ("name = ' '", "must not be empty"),
        ("attachments = '/etc'", "relative to the vault"),
        ("rules = ['Projects']", "must be a list of tables"),
        ("rules = [{tag = 'a'}]", "folder is missing in table 1"),
        ("rules = [{folder = 'a'}, {folder = 'b', tags = 'c'}]", "tags is not known in table 2; did you mean tag?"),
        ("rules = [{folder = 'a', tag = 1}]", "tag must be text in table 1"),
        ("rules = [{tag = 'a'}, {folder = 'b'}, {folder = '../c'}]", "missing in table 1; folder must"),
        ("rules = [{tag = 'a'}, {folder = 'b'}, {folder = '../c'}]", "slashes in table 3"),
        ("rules = [{folder = 'a/../b'}]", "one name between slashes in table 1"),
        ("rules = [{folder = 'a', name = 'b/c'}]", "without a folder in table 1"),
    ],
)
def test_settings_of_promotion_that_can_not_be_are_told(tmp_path, written, told):
    file = tmp_path / "config.toml"
    file.write_text(f'[vault]\npath = "x"\n[promote]\n{written}\n')
    with pytest.raises(InvalidArgument) as refused:
        load({"config": str(file)}, {"HOME": str(tmp_path)})
    assert told in refused.value.message


def test_rules_of_promotion_may_come_from_the_environment(tmp_path):
    environ = {
        "HOME": str(tmp_path),
        "MEMEX_VAULT": "x",
        "MEMEX_PROMOTE__RULES": '[{"folder": "A", "source": "codex"}]',
    }
    assert [rule.source for rule in load({}, environ).promote.rules] == ["codex"]
