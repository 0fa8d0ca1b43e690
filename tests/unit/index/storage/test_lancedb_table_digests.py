"""Which digests a table may have stored."""

from __future__ import annotations

from hashlib import sha256

from index.storage.lancedb_table import UNSORTED, StoredDigests


def test_every_added_digest_is_found_and_no_other():
    digests = [sha256(str(number).encode()).hexdigest() for number in range(3 * UNSORTED)]
    present, absent = digests[: 2 * UNSORTED + 7], digests[2 * UNSORTED + 7 :]
    stored = StoredDigests(present[:UNSORTED])
    for start in range(UNSORTED, len(present), 37):
        stored.add(present[start - 5 : start + 37])  # some for a second time
    assert all(digest in stored for digest in present)
    assert not any(digest in stored for digest in absent)
    assert "" not in StoredDigests()
