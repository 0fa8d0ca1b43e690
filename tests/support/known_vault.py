"""A vault that commands use by default, as after `memex init`."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncd.installation.vault_setup import toml_string


def make_default_vault(monkeypatch: pytest.MonkeyPatch, home: Path, vault: Path, state: Path) -> Path:
    """Let commands use this vault by default, and return the settings file that names it; no variable of Memex stays."""
    for name in ("MEMEX_VAULT", "MEMEX_STATE", "MEMEX_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    file = home / ".config/memex/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"state = {toml_string(state)}\n\n[vault]\npath = {toml_string(vault)}\n")
    return file
