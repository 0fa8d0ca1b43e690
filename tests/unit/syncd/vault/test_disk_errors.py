"""Which error of the vault each error of the system becomes."""

from __future__ import annotations

import errno
import os

import pytest

from index.errors import Conflict, InvalidArgument, NotFound, Unavailable
from syncd.vault.disk_errors import FolderBlocked, NameTaken, failure


@pytest.mark.parametrize(
    ("code", "making", "kind", "words"),
    [
        (errno.EEXIST, True, NameTaken, "a/n.md already exists"),
        (errno.ENOTEMPTY, False, Conflict, "is not empty"),
        (errno.ENOENT, False, NotFound, "does not exist"),
        (errno.ELOOP, True, FolderBlocked, "can't be created: a link or a file blocks the path"),
        (errno.ELOOP, False, NotFound, "a link or a file blocks the path"),
        (errno.ENAMETOOLONG, True, InvalidArgument, "too long for the disk"),
        (errno.ENOSPC, False, Unavailable, "the disk is full"),
        (errno.EMFILE, False, Unavailable, "too many files are open"),
        (errno.EROFS, False, Unavailable, "mounted read-only"),
        (errno.EACCES, False, Unavailable, "permission denied"),
    ],
)
def test_an_error_of_the_system_becomes_one_of_the_vault(code, making, kind, words):
    error = failure(OSError(code, os.strerror(code), "/home/ada/vault/a/n.md"), "a/n.md", making=making)
    assert type(error) is kind
    assert words in error.message
    assert "/home" not in error.message


def test_what_lasts_until_a_person_acts_is_not_to_be_tried_again():
    codes = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EIO)
    assert [failure(OSError(code, ""), "n.md", making=False).retryable for code in codes] == [False] * 3 + [True] * 2
