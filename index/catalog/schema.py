"""Define the SQLite schema of the catalog, and convert a document to a row and a row to a record.

The id of a document is not stored: the view `records` computes it, so adding or removing a note changes no other row. The
view implements `index/document_ids.py` in SQL: the claimed id, unless another path of the workspace has a better claim to
it, or else the path's own id. Workspaces are independent of each other, and so are their ids."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from index.document_ids import path_id
from index.model import COLLECTIONS, SEVERAL_COLLECTIONS, UNKNOWN_COLLECTION, Defect, Document, Record, Stat
from index.names import base_name, fold, stem
from index.query import filter_key

VERSION: Final = 17  # of the schema below

VIEW: Final = """create view records as select key,
  case when path = (select other.path from documents as other where other.claimed = documents.claimed
    and other.workspace = documents.workspace order by length(other.path), other.path limit 1) then claimed else key end as id,
  path, scope, workspace, namespace, type, title, digest, content_hash, collection, tags, aliases, summary, source,
  metadata, created_at, updated_at, version, chunks, defects, writable, file, superseded_by, summary_derived, claimed, owner_marks from documents;
"""

SUPERSEDED: Final = "create index documents_superseded on documents (key) where superseded_by is not null;\n"
NAMES: Final = """create index documents_file_name on documents (file_name);
create index links_stem on links (stem);
"""

# How many documents have each spelling of a tag. A write to a note changes a few counts; to count them for each capture would read all tags.
TAG_USES: Final = """create table tag_uses (
  workspace text not null, key text not null, tag text not null, documents integer not null,
  primary key (workspace, key, tag)) without rowid;
create trigger tag_added after insert on tags begin
  insert into tag_uses values (new.workspace, new.key, new.tag, 1)
    on conflict (workspace, key, tag) do update set documents = documents + 1;
end;
create trigger tag_removed after delete on tags begin
  update tag_uses set documents = documents - 1
    where workspace = old.workspace and key = old.key and tag = old.tag;
  delete from tag_uses
    where workspace = old.workspace and key = old.key and tag = old.tag and documents = 0;
end;
"""

# Documents whose rows in the stores are being replaced. Text can change without changing the number of rows, so their number alone
# would not show that the stores are ahead of the catalog.
UNSETTLED: Final = "create table unsettled (key text primary key) without rowid;\n"

# In tables without rowid, columns are in the order of the primary key: otherwise SQLite 3.40 reports an intact table as damaged.
SCHEMA: Final = f"""
create table documents (
  path text primary key, key text not null unique, claimed text,
  scope text not null, workspace text not null, namespace text not null, type text not null, title text not null,
  digest text not null, content_hash text not null, collection text not null,
  tags text not null, aliases text not null, summary text, source text, metadata text not null,
  created_at integer not null, updated_at integer, version integer not null,
  chunks integer not null, embedded integer not null, defects text not null, writable integer not null, file text,
  superseded_by text, owner_marks text not null, summary_derived integer not null, file_name text not null,
  size integer not null, mtime_ns integer not null, ino integer not null);
create index documents_claimed on documents (claimed, length(path), path, workspace) where claimed is not null;
create index documents_content on documents (workspace, content_hash, created_at, path);
create index documents_changed on documents (coalesce(updated_at, created_at) desc, key);
create index documents_changed_here on documents (workspace, coalesce(updated_at, created_at) desc, key);
create index documents_recent_here on documents (workspace, created_at desc, path);
create index documents_file on documents (file) where file is not null;
create index documents_defects on documents (path) where defects <> '[]';
create index documents_chunks on documents (chunks);
{SUPERSEDED}{VIEW}create table tags (
  workspace text not null, key text not null, tag text not null,
  path text not null references documents (path) on delete cascade,
  primary key (workspace, key, tag, path)) without rowid;
create index tags_path on tags (path);
{TAG_USES}create table links (
  path text not null references documents (path) on delete cascade, ord integer not null,
  kind text not null, target text not null, subpath text not null, display text, line integer not null,
  stem text not null, primary key (path, ord)) without rowid;
create table nodes (
  path text primary key references documents (path) on delete cascade, name text not null, entity_type text not null,
  observations integer not null, last_ordinal integer not null, unsettled integer not null,
  summary_updated_at integer, observed_at integer, own_tags text not null) without rowid;
create table observations (
  path text not null references nodes (path) on delete cascade, ordinal integer not null, content text not null,
  primary key (path, ordinal)) without rowid;
create table relations (
  path text not null references nodes (path) on delete cascade, ord integer not null,
  type text not null, target text not null, primary key (path, ord)) without rowid;
create table facets (
  path text primary key references nodes (path) on delete cascade, workspace text not null, perspectives text not null,
  observations integer not null, embedded integer not null, rows integer not null) without rowid;
create index facets_here on facets (workspace, perspectives, observations, embedded);
create index facets_lacking on facets (workspace) where embedded < observations;
create table memo_relations (
  path text not null references documents (path) on delete cascade, ord integer not null,
  target text, link text not null, stem text not null, tag text not null, weight real not null, reason text,
  version integer not null, created_at integer, updated_at integer, primary key (path, ord)) without rowid;
create index memo_relations_target on memo_relations (target);
create index memo_relations_stem on memo_relations (stem) where target is null;
create table skipped (path text primary key, workspace text not null, reason text not null) without rowid;
create table meta (name text primary key, value text not null) without rowid;
{UNSETTLED}{NAMES}"""

# What the steps below call on the rows.
UPGRADE_FUNCTIONS: Final[Mapping[str, Callable[[str], str]]] = {
    "fold_file_name": lambda path: fold(base_name(path)),
    "fold_stem": stem,
    "fold_tag": filter_key,
    "compose": partial(unicodedata.normalize, "NFC"),
}
FOLDED_NAMES: Final = """
alter table documents add column file_name text not null default '';
alter table links add column stem text not null default '';
update documents set file_name = fold_file_name(path);
update links set stem = fold_stem(target);
"""
# Before version 17: documents with tags that no agent can write, such as `R & D` or a very long one, had other keys; the stem of a
# link to "A.MD" was "a.md"; a namespace had the Unicode form of its folder on disk, and a source that of its property; the first
# sentence of a text, which is the derived summary, was another one, and the view lacked that column. What can't be computed here
# is read again.
CHANGED_VALUES: Final = f"""
update links set stem = fold_stem(target) where stem like '%.md';
update memo_relations set stem = fold_stem(link) where stem like '%.md';
update documents set digest = '', size = -1, mtime_ns = -1, ino = -1
  where summary_derived or namespace <> compose(namespace) or coalesce(source, '') <> compose(coalesce(source, ''))
    or path in (select path from tags where key <> fold_tag(tag));
drop view records;
{VIEW}
"""  # noqa: S608 - no value of a user

COUNTED_TAGS: Final = (
    TAG_USES + "insert into tag_uses select workspace, key, tag, count(*) from tags group by workspace, key, tag;\n"  # noqa: S608 - no value of a user
)

# The steps that upgrade a catalog of an earlier version without embedding any note again. From version 10, the next listing
# reads the captures, because only their files contain the values of the new columns.
UPGRADES: Final = {
    10: f"""
alter table documents add column owner_marks text not null default '';
alter table documents add column summary_derived integer not null default 0;
update documents set digest = '', size = -1, mtime_ns = -1, ino = -1 where scope = 'captures';
{SUPERSEDED}{FOLDED_NAMES}{NAMES}{COUNTED_TAGS}{UNSETTLED}{CHANGED_VALUES}""",  # noqa: S608 - no value of a user
    11: SUPERSEDED + FOLDED_NAMES + NAMES + COUNTED_TAGS + UNSETTLED + CHANGED_VALUES,
    12: FOLDED_NAMES + NAMES + COUNTED_TAGS + UNSETTLED + CHANGED_VALUES,
    13: COUNTED_TAGS + UNSETTLED + CHANGED_VALUES,
    14: COUNTED_TAGS + UNSETTLED + CHANGED_VALUES,
    15: UNSETTLED + CHANGED_VALUES,
    16: CHANGED_VALUES,
}

CHANGED: Final = "coalesce(updated_at, created_at)"  # of a document; the same expression as in the indexes above
# Writable documents that name several collections; documents whose collection depends on which collections are known.
_DEFECT: Final = """defects <> '[]' and defects like '%["{}",%'"""
CONTESTED: Final = f"select path from documents where writable and {_DEFECT.format(SEVERAL_COLLECTIONS)}"  # noqa: S608 - names of our own
FILED: Final = (
    f"select path from documents where collection not in {COLLECTIONS} "  # noqa: S608 - as above
    f"or {_DEFECT.format(SEVERAL_COLLECTIONS)} or {_DEFECT.format(UNKNOWN_COLLECTION)}"
)

PLAIN: Final = (
    "path", "scope", "workspace", "namespace", "type", "title", "digest", "content_hash", "collection", "summary", "source",
    "created_at", "updated_at", "version", "writable", "file",
    "superseded_by", "owner_marks", "summary_derived",
)  # fmt: skip


def document_columns(document: Document, stat: Stat, chunks: int, *, embedded: bool) -> dict[str, Any]:
    """Return the columns of `documents` for this document."""
    return {name: getattr(document, name) for name in PLAIN} | {
        "key": path_id(document.path),
        "file_name": fold(base_name(document.path)),
        "claimed": document.claimed_id,
        "tags": _to_json(document.tags),
        "aliases": _to_json(document.aliases),
        "metadata": _to_json(dict(document.metadata)),
        "defects": _to_json([(defect.name, defect.detail) for defect in document.defects]),
        "chunks": chunks,
        "embedded": embedded,
        "size": stat.size,
        "mtime_ns": stat.mtime_ns,
        "ino": to_signed(stat.ino),
    }


def insert_statements(
    document: Document, stat: Stat, chunks: int, *, embedded: bool
) -> Iterator[tuple[str, list[dict[str, Any]] | list[tuple[Any, ...]]]]:
    """Yield the statements that put this document into the tables, each with the rows it is executed for."""
    path, values = document.path, document_columns(document, stat, chunks, embedded=embedded)
    names = ", ".join(f":{name}" for name in values)
    yield f"insert into documents ({', '.join(values)}) values ({names})", [values]  # noqa: S608 - our columns
    tags = {(document.workspace, filter_key(tag), tag, path) for tag in document.tags}
    yield "insert into tags values (?, ?, ?, ?)", list(tags)
    if node := document.node:
        numbers = (len(node.observations), node.last_ordinal, node.unsettled, node.summary_updated_at, node.observed_at)
        node_row = (path, node.name, node.entity_type, *numbers, _to_json(node.tags))
        yield "insert into nodes values (?, ?, ?, ?, ?, ?, ?, ?, ?)", [node_row]
        facts = [(path, observation.ordinal, observation.content) for observation in node.observations]
        yield "insert into observations values (?, ?, ?)", facts
        stated = [(path, n, relation.type, relation.target) for n, relation in enumerate(node.relations)]
        yield "insert into relations values (?, ?, ?, ?)", stated
    memo = [
        (path, n, relation.target, relation.link, stem(relation.link), relation.tag, relation.weight, relation.reason,
         relation.version, relation.created_at, relation.updated_at)
        for n, relation in enumerate(document.memo_relations)
    ]  # fmt: skip
    yield "insert into memo_relations values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", memo
    links = [
        (path, n, link.kind, link.target, link.subpath, link.display, link.line, stem(link.target))
        for n, link in enumerate(document.links)
    ]
    yield "insert into links values (?, ?, ?, ?, ?, ?, ?, ?)", links


def to_record(values: Sequence[Any]) -> Record:
    """Make a record of a row of the view `records`."""
    columns = dict(zip(RECORD, values, strict=True))
    for name in ("tags", "aliases", "defects"):
        columns[name] = () if columns[name] == "[]" else tuple(json.loads(columns[name]))
    if columns["defects"]:
        columns["defects"] = tuple(Defect(*defect) for defect in columns["defects"])
    columns["metadata"] = json.loads(columns["metadata"])
    columns["writable"] = bool(columns["writable"])
    columns["summary_derived"] = bool(columns["summary_derived"])
    return Record(**columns)


RECORD: Final = tuple(Record.__dataclass_fields__)


def to_signed(number: int) -> int:
    """Convert an unsigned 64-bit number to SQLite's signed integer: an inode number may use the highest bit."""
    return number - (1 << 64) if number >= 1 << 63 else number


def to_unsigned(number: int) -> int:
    """Return the number that `to_signed` was given."""
    return number % (1 << 64)


def _to_json(value: Any) -> str:
    """Encode a value as ASCII JSON, which can carry every value of a property."""
    return json.dumps(value, separators=(",", ":"))
