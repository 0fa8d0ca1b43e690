"""Define the tables of the ledger, and find what keeps a file from having them.

Law, tested: a file of any earlier schema version fits, and a file without one of the tables or columns does not."""

from __future__ import annotations

import contextlib
import functools
import sqlite3

NEWER = "it was written by a newer Memex"
_INDEX = "index "

# One entry per schema version, in order; `PRAGMA user_version` counts those that were applied. Never edit an entry
# that was released: append.
SCHEMA: tuple[str, ...] = (
    """
    CREATE TABLE keys (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        digest BLOB NOT NULL,
        scopes TEXT NOT NULL,
        workspaces TEXT,
        surfaces TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER,
        revoked_at INTEGER,
        last_used_at INTEGER
    ) STRICT;
    CREATE UNIQUE INDEX keys_live_name ON keys (name) WHERE revoked_at IS NULL;
    """,
    """
    CREATE TABLE job_runs (
        id INTEGER PRIMARY KEY,
        job TEXT NOT NULL,
        started_at INTEGER NOT NULL,
        seconds REAL NOT NULL,
        error TEXT NOT NULL
    ) STRICT;
    CREATE INDEX job_runs_of ON job_runs (job, id);
    """,
    """
    ALTER TABLE keys ADD COLUMN serial INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE keys ADD COLUMN old_digest BLOB;
    ALTER TABLE keys ADD COLUMN old_until INTEGER;
    CREATE TABLE key_events (
        at INTEGER NOT NULL,
        event TEXT NOT NULL,
        key_id TEXT NOT NULL,
        name TEXT NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE deliveries (id TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT;
    """,
    """
    CREATE TABLE enrichment (id TEXT PRIMARY KEY, failures INTEGER NOT NULL, due_at INTEGER NOT NULL) STRICT;
    """,
    """
    CREATE TABLE audit (
        seq INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,
        surface TEXT NOT NULL,
        tool TEXT NOT NULL,
        request TEXT NOT NULL,
        key TEXT NOT NULL,
        name TEXT NOT NULL,
        workspace TEXT NOT NULL,
        type TEXT NOT NULL,
        id TEXT NOT NULL,
        path TEXT NOT NULL,
        bytes INTEGER NOT NULL,
        before TEXT NOT NULL,
        after TEXT NOT NULL,
        outcome TEXT NOT NULL,
        undoes INTEGER NOT NULL,
        seal TEXT NOT NULL
    ) STRICT;
    CREATE INDEX audit_path ON audit (path, seq);
    CREATE INDEX audit_nodes ON audit (workspace, at) WHERE type = 'entity';
    CREATE INDEX audit_pruned ON audit (seq) WHERE kind = 'pruned';
    """,
    """
    CREATE TABLE perspectives (
        workspace TEXT NOT NULL,
        place INTEGER NOT NULL,
        name TEXT NOT NULL,
        prompt TEXT NOT NULL,
        PRIMARY KEY (workspace, place)
    ) STRICT;
    """,
    """
    CREATE TABLE queue (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        key TEXT NOT NULL,
        workspace TEXT NOT NULL,
        kind TEXT NOT NULL,
        given TEXT NOT NULL,
        document_id TEXT NOT NULL,
        status TEXT NOT NULL,
        stage TEXT NOT NULL,
        error TEXT NOT NULL,
        tries INTEGER NOT NULL,
        due_at INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        started_at INTEGER,
        finished_at INTEGER,
        size INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX queue_next ON queue (kind, key, seq) WHERE status = 'queued';
    CREATE INDEX queue_due ON queue (kind, due_at) WHERE status = 'queued';
    CREATE INDEX queue_held ON queue (key, kind, size) WHERE status IN ('queued', 'running');
    CREATE INDEX queue_of ON queue (key, workspace, seq);
    CREATE INDEX queue_counts ON queue (workspace, status);
    CREATE INDEX queue_document ON queue (document_id);
    CREATE TABLE handled (
        path TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        document_id TEXT NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE edits (
        path TEXT PRIMARY KEY,
        id TEXT NOT NULL,
        was TEXT NOT NULL,
        version INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER,
        edited_at INTEGER NOT NULL
    ) STRICT;
    """,
    """
    CREATE INDEX queue_failed ON queue (key, seq) WHERE kind = 'file' AND status = 'failed' AND size > 0;
    """,
    """
    CREATE TABLE promotions (
        seq INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        document_id TEXT NOT NULL,
        state TEXT NOT NULL,
        source TEXT NOT NULL,
        target TEXT NOT NULL,
        by TEXT NOT NULL,
        at INTEGER NOT NULL,
        commit_id TEXT NOT NULL,
        about TEXT NOT NULL
    ) STRICT;
    CREATE INDEX promotions_of ON promotions (document_id, seq);
    CREATE INDEX promotions_begun ON promotions (seq) WHERE state = 'begun';
    CREATE INDEX promotions_uncommitted ON promotions (at) WHERE state = 'done' AND commit_id = '';
    CREATE TABLE promoted_files (
        promotion INTEGER NOT NULL,
        place INTEGER NOT NULL,
        path TEXT NOT NULL,
        before BLOB,
        after BLOB,
        was TEXT NOT NULL,
        now TEXT NOT NULL,
        twin TEXT NOT NULL,
        PRIMARY KEY (promotion, place)
    ) STRICT;
    CREATE TABLE proposals (
        key TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        subject TEXT NOT NULL,
        about TEXT NOT NULL,
        state TEXT NOT NULL,
        said TEXT NOT NULL,
        report TEXT NOT NULL,
        at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX proposals_of ON proposals (kind, subject);
    CREATE INDEX proposals_state ON proposals (state);
    CREATE TABLE tended (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    """,
    """
    CREATE INDEX audit_id ON audit (id, seq);
    """,
    """
    CREATE TABLE automatic (id TEXT PRIMARY KEY, digests TEXT NOT NULL) STRICT;
    """,
    """
    ALTER TABLE keys ADD COLUMN namespace TEXT;
    """,
    """
    ALTER TABLE audit ADD COLUMN address TEXT NOT NULL DEFAULT '';
    """,
    """
    CREATE TABLE reviewed (
        path TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        visible TEXT NOT NULL,
        generation INTEGER NOT NULL,
        at INTEGER NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE note_uses (id TEXT PRIMARY KEY, uses REAL NOT NULL) STRICT;
    """,
    """
    CREATE TABLE shares (workspace TEXT NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (workspace, entry)) STRICT;
    """,
    # An id is unique only within its workspace. "" = recorded before the workspace was: it counts for the id in any of them.
    """
    ALTER TABLE note_uses RENAME TO note_uses_before;
    CREATE TABLE note_uses (workspace TEXT NOT NULL, id TEXT NOT NULL, uses REAL NOT NULL, PRIMARY KEY (workspace, id)) STRICT;
    INSERT INTO note_uses SELECT '', id, uses FROM note_uses_before;
    DROP TABLE note_uses_before;
    ALTER TABLE automatic RENAME TO automatic_before;
    CREATE TABLE automatic (workspace TEXT NOT NULL, id TEXT NOT NULL, digests TEXT NOT NULL, PRIMARY KEY (workspace, id)) STRICT;
    INSERT INTO automatic SELECT '', id, digests FROM automatic_before;
    DROP TABLE automatic_before;
    ALTER TABLE enrichment RENAME TO enrichment_before;
    CREATE TABLE enrichment (
        workspace TEXT NOT NULL,
        id TEXT NOT NULL,
        failures INTEGER NOT NULL,
        due_at INTEGER NOT NULL,
        PRIMARY KEY (workspace, id)
    ) STRICT;
    INSERT INTO enrichment SELECT '', id, failures, due_at FROM enrichment_before;
    DROP TABLE enrichment_before;
    """,
    """
    CREATE TABLE departed (
        workspace TEXT NOT NULL,
        id TEXT NOT NULL,
        was TEXT NOT NULL,
        version INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER,
        at INTEGER NOT NULL,
        PRIMARY KEY (workspace, id)
    ) STRICT;
    CREATE INDEX promotions_from ON promotions (source);
    CREATE INDEX promotions_to ON promotions (target);
    """,
    """
    ALTER TABLE edits ADD COLUMN node TEXT NOT NULL DEFAULT '';
    """,
)


def find_misfit(connection: sqlite3.Connection) -> str:
    """Return why this version of Memex can't use the tables of a ledger; "" = it can, once they have the newest schema.

    No SQL of the file is run, because a backup may come from anywhere. Raises sqlite3.Error if the file can't be read."""
    connection.execute("BEGIN")  # version and tables of one moment: another process may be migrating the file
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        parts = _list_parts(connection)
    finally:
        connection.execute("ROLLBACK")
    if version > len(SCHEMA):
        return f"{NEWER} (schema {version}, known {len(SCHEMA)})"
    if version < 0:
        return f"it has the impossible schema {version}"
    expected = _parts_after(version)
    if missing := sorted(part for part in expected - parts if not part.startswith(_INDEX)):
        return f"it lacks the column {missing[0]} of schema {version}"
    if early := sorted((_parts_after(len(SCHEMA)) - expected) & parts):
        return f"it has {early[0]}, which is not in schema {version}"
    return ""


@functools.cache
def _parts_after(version: int) -> frozenset[str]:
    """Return the parts of a ledger of this schema version."""
    with contextlib.closing(sqlite3.connect(":memory:")) as made:
        made.executescript(" ".join(SCHEMA[:version]))
        return frozenset(_list_parts(made))


def _list_parts(connection: sqlite3.Connection) -> set[str]:
    """Return the columns of all tables, such as `keys.id`, and the indexes, such as `index audit_id`."""
    parts = """
        SELECT t.name || '.' || c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'
        UNION ALL SELECT 'index ' || name FROM sqlite_master WHERE type = 'index'
    """
    return {name for (name,) in connection.execute(parts)}
