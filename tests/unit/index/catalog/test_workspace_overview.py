"""index/catalog/workspace_overview.py: the newest documents of a workspace, on real SQLite files."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from index.catalog.catalog import Catalog
from index.catalog.recent_documents import changed_at
from index.catalog.workspace_overview import newest_paths
from tests.support.catalog_rows import document, write
from tests.support.example_counts import examples

TIMES = st.integers(-3, 3)


@examples(40)
@given(
    st.lists(
        st.tuples(TIMES, st.none() | TIMES, st.sampled_from("ab"), st.none() | st.sampled_from("xyz"), st.booleans())
    ),
    st.integers(1, 4),
    st.sets(st.integers(0, 9)),
)
def test_the_newest_documents_are_those_of_a_list_of_all(rows, limit, chosen):
    with tempfile.TemporaryDirectory() as folder:
        catalog = Catalog(Path(folder, "captures.db"))
        write(
            catalog,
            *(
                document(
                    f"{n}.md",
                    created_at=made,
                    updated_at=changed,
                    workspace=where,
                    claimed_id=claimed,
                    type="file" if is_file else "note",
                )
                for n, (made, changed, where, claimed, is_file) in enumerate(rows)
            ),
        )
        records = catalog.recent(workspace="a", limit=99)
        records.sort(key=lambda record: (-changed_at(record), record.id))
        assert newest_paths(catalog, "a", limit) == [record.path for record in records[:limit]]
        ids = {record.id for n, record in enumerate(records) if n in chosen} | {"of no document"}
        among = [record.path for record in records if record.id in ids]
        assert newest_paths(catalog, "a", limit, ids) == among[:limit]
        notes = [record.path for record in records if record.type == "note"]
        assert newest_paths(catalog, "a", limit, without="file") == notes[:limit]
        noted = [path for path in notes if path in among]
        assert newest_paths(catalog, "a", limit, ids, without="file") == noted[:limit]
        catalog.close()
