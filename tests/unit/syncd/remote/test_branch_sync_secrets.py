"""A secret in a capture keeps the commits from the vault's remote."""

from __future__ import annotations

import shutil
import tracemalloc

import pytest

from index.errors import Conflict
from syncd.remote import outgoing_secrets
from tests.support.git_states import run
from tests.support.remote_vault import SECRET

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("person"),
]


@pytest.mark.slow
@pytest.mark.parametrize("later", [True, False])
def test_a_secret_in_a_capture_keeps_all_commits_back_until_none_holds_it(device, later):
    device.here("ok.md", f"the vault proper is the person's own: {SECRET}\n")
    assert device.remote.sync().sent == 1
    device.here("Captures/default/a ü.md", f"token {SECRET}\n")
    if later:
        device.here("Captures/default/a ü.md", "it was taken out\n")
    sent = device.head(device.bare, "main")
    with pytest.raises(
        Conflict, match=r"Captures/default/a ü\.md looks as if it contains a secret \(github-token\).*reset --soft"
    ) as told:
        device.remote.sync()
    assert SECRET not in str(told.value.as_dict())
    assert device.head(device.bare, "main") == sent
    run(device.vault, "reset", "--soft", "origin/main")
    device.here("Captures/default/a ü.md", "it was taken out\n")
    assert device.remote.sync().sent == 1
    assert SECRET not in run(device.bare, "log", "-p", "--", "Captures")


@pytest.mark.parametrize("other", ["a.bin", "z.bin"])
def test_a_secret_in_a_note_with_a_nul_byte_is_not_sent(device, other):
    text = f"from a terminal\0 token {SECRET}\n"
    device.here(f"Captures/default/{other}", text, commit=False)
    device.here("Captures/default/n.md", text)
    with pytest.raises(Conflict, match=r"n\.md looks as if it contains a secret \(github-token\)"):
        device.remote.sync()


@pytest.mark.slow
def test_many_files_are_searched_without_all_of_them_in_memory(device, monkeypatch):
    monkeypatch.setattr(outgoing_secrets, "_TOGETHER", 1_000_000)
    for number in range(12):
        device.here(f"Captures/default/{number}.txt", f"{number} text of a report\n" * 40_000, commit=number == 11)
    device.here("Captures/default/z.md", f"token {SECRET}\n")
    tracemalloc.start()
    try:
        with pytest.raises(Conflict, match=r"z\.md looks as if it contains a secret"):
            device.remote.sync()
        assert tracemalloc.get_traced_memory()[1] < 9_000_000
    finally:
        tracemalloc.stop()


def test_a_secret_in_the_name_of_a_capture_is_not_sent(device):
    device.here(f"Captures/default/{SECRET}.md", "nothing secret\n")
    with pytest.raises(Conflict, match=r"looks as if it contains a secret \(github-token\)"):
        device.remote.sync()


@pytest.mark.slow
@pytest.mark.parametrize("later", [True, False])
def test_a_secret_in_the_name_of_a_moved_capture_is_not_sent(device, later):
    device.here("Captures/default/a.md", "nothing secret\n")
    device.remote.sync()
    run(device.vault, "mv", "Captures/default/a.md", f"Captures/default/{SECRET}.md")
    run(device.vault, "commit", "-qm", "renamed")
    if later:
        run(device.vault, "mv", f"Captures/default/{SECRET}.md", "Captures/default/b.md")
        run(device.vault, "commit", "-qm", "renamed again")
    with pytest.raises(Conflict, match=r"looks as if it contains a secret \(github-token\)"):
        device.remote.sync()


def test_a_secret_in_one_of_the_names_of_two_equal_captures_is_not_sent(device):
    device.here(f"Captures/default/{SECRET}.md", "equal\n", commit=False)
    device.here("Captures/default/z.md", "equal\n")
    with pytest.raises(Conflict, match=r"looks as if it contains a secret \(github-token\)"):
        device.remote.sync()


@pytest.mark.slow
def test_a_name_that_the_remote_has_had_does_not_keep_ours_back(device):
    device.there(f"Captures/default/{SECRET}.md", "theirs\n")
    device.here("Captures/default/ours.md", "nothing secret\n")
    assert device.remote.sync().sent == 2
    device.there(f"Captures/default/{SECRET}.md", None)
    device.remote.sync()
    device.here(f"Captures/default/{SECRET}.md", "again\n")
    assert device.remote.sync().sent == 1


def test_a_secret_that_the_remote_has_already_does_not_keep_ours_back(device):
    device.there("Captures/default/theirs.md", f"token {SECRET}\n")
    device.here("Captures/default/ours.md", "nothing secret\n")
    assert device.remote.sync().sent == 2
