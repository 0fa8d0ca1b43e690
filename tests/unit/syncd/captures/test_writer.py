"""syncd/captures/writer.py: errors without the names of files."""

from __future__ import annotations

import pytest

from index.errors import Conflict, NotFound
from syncd.captures.writer import hide_file_name

PATH = "Captures/default/Rent 2.md"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NotFound(f"there is no file at {PATH}"), "there is no file at the place of the note"),
        (Conflict(f"{PATH} has changed since it was read"), "the file of the note has changed since it was read"),
    ],
    ids=["missing", "changed"],
)
def test_an_error_without_the_name_of_the_file_is_a_sentence(error, words):
    with pytest.raises(type(error)) as raised, hide_file_name("Captures/default", PATH):
        raise error
    assert raised.value.message == words
