"""Save, search and delete memos: the notes of a namespace, for the tool family `memory`.

Laws, tested: a person's changes to a memo are never overwritten unread; a call that fails changed nothing."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from index.document_ids import ID, path_id
from index.errors import Conflict, InvalidArgument, NotFound
from index.memos.relations import NO_MEMOS, end_of
from index.model import Document, Filter, Record
from index.names import fold
from index.query import check_query_text
from index.scope.index import Index
from index.tracing import span
from syncd.captures import note_update
from syncd.captures.batch_writer import Change, NoteDrafts, write_batch
from syncd.captures.writer import check_workspace_indexed, create_note, lock_workspace
from syncd.documents.capture_note import check_content, properties_of, split_metadata
from syncd.documents.collection_membership import choose_collection, tag_changes
from syncd.files.document_removal import deletion_changes
from syncd.notes.front_matter import PropertyValue, is_publishing
from syncd.notes.secret_patterns import refuse_secret
from syncd.vault.location import namespace_path

if TYPE_CHECKING:
    from syncd.captures.inbox import Inbox

Metric: TypeAlias = Literal["cosine", "l2"]
MOST: Final = 100  # most memos of one search
TRIES: Final = 8  # a try fails when somebody creates or removes the memo at the same time


@dataclass(frozen=True, slots=True)
class SaveOutcome:
    """Holds a saved memo, and whether it is new."""

    record: Record
    created: bool


@dataclass(frozen=True, slots=True)
class FoundMemo:
    """Holds a found memo. `score` is its cosine similarity or its distance; None when nothing was compared."""

    record: Record
    score: float | None


@dataclass(frozen=True, slots=True)
class FoundMemos:
    """Holds the memos that a search found, best first, and the reasons why it may be incomplete."""

    items: tuple[FoundMemo, ...]
    degraded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Wish:
    """Holds the wanted state of a memo."""

    content: str
    namespace: str
    memo_id: str | None
    titles: Mapping[str, PropertyValue]  # the title under its property's name, if given; None removes it
    title: str | None  # for a new memo
    collection: str | None  # if given
    tags: tuple[str, ...]
    retag: bool  # whether tags are given; they replace the existing ones
    fields: Mapping[str, Any]  # the other metadata
    replace: bool
    version: int | None


class Memos:
    """Manages the memos of one workspace. Changes run one after the other; reads don't wait for them."""

    def __init__(self, workspace: str, inbox: Inbox, progress: Callable[[int], None] | None = None) -> None:
        self.workspace, self._inbox, self._progress = workspace, inbox, progress

    def save(
        self,
        content: str,
        *,
        namespace: str = "default",
        memo_id: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        replace: bool = False,
        version: int | None = None,
    ) -> SaveOutcome:
        """Create a memo, or change the one with this id; an unchanged memo is not written.

        `metadata` is merged as in RFC 7396, or replaces everything with `replace`. `version` is the version that the
        memo must have, 0 for no memo. Raises Conflict, with the version, if it has another."""
        check_content(content)
        metadata = metadata or {}
        fields, titled, labels = split_metadata(metadata)
        collection, tags = choose_collection(None, labels, self._inbox.collections)
        namespace_path(namespace)
        if memo_id is not None and not ID.match(memo_id):
            raise InvalidArgument("memo_id must be 1 to 64 letters, digits, - or _, as in a UUID", field="memo_id")
        if memo_id is None and version:
            raise InvalidArgument("version belongs to the memo to change: give its memo_id too", field="version")
        new_title = title or titled or None
        titles = {"title": new_title} if title is not None or "title" in metadata else {}
        retag = "tags" in metadata
        wish = _Wish(
            content, namespace, memo_id, titles, title=new_title, collection=collection, tags=tags,
            retag=retag, fields=fields, replace=replace, version=version,
        )  # fmt: skip
        if memo_id is not None:
            check_workspace_indexed(self._inbox, self.workspace)
        for _ in range(TRIES):
            if saved := self._attempt(wish):
                return saved
        raise Conflict("memos with this id kept being created and removed; try again in a moment", retryable=True)

    def search(
        self,
        *,
        namespace: str = "default",
        query: str | None = None,
        pivot: str | None = None,
        wanted: Mapping[str, Any] | None = None,
        k: int = 10,
        minimum: float | None = None,
        metric: Metric = "cosine",
        exclude_pivot: bool = True,
    ) -> FoundMemos:
        """Return the memos whose metadata matches `wanted`: the `k` nearest to a query or a memo, or the last changed.

        Every matching memo is compared; `minimum` is a cosine similarity. Raises Unavailable without an encoder."""
        _check_search(query, pivot, k, minimum, metric)
        rows = self.index.memos
        points = None
        around = None if pivot is None else path_id(self.memo(pivot, namespace).path)
        with span("embed"):
            if query is not None:
                points = rows.embed_query(check_query_text(query))
            elif around is not None:
                points = rows.stored_vectors(around)
        keys = rows.find_matching(self.workspace, namespace, wanted or {})
        if around is not None and exclude_pivot:
            keys = [key for key in keys if key != around]
        scored: Sequence[tuple[str, float | None]] = [(key, None) for key in keys[:k]]
        unseen = 0
        if points is not None:
            with span("vector", memos=len(keys)):
                nearest, unseen = rows.find_nearest(points, keys, Filter(self.workspace, namespace), k)
            scored = [(key, _score(cosine, metric)) for key, cosine in nearest if minimum is None or cosine >= minimum]
        records = self.index.catalog.records([key for key, _ in scored])
        items = tuple(FoundMemo(records[key], score) for key, score in scored if key in records)
        degraded = [f"{unseen} of the memos have no vector yet, so they were not compared"] if unseen else []
        return FoundMemos(items, tuple(dict.fromkeys((*degraded, *self._inbox.degraded_search(self.workspace)))))

    def delete(self, memo_id: str, *, namespace: str = "default", version: int | None = None) -> tuple[Record, int]:
        """Remove a memo with its relations in both directions; return it and the number of relations.

        Raises Conflict, with the version, if it has another than `version`."""
        with lock_workspace(self._inbox, self.workspace):
            return write_batch(self._inbox, partial(self._plan_removal, memo_id, namespace, version))

    # For code that writes memos

    @property
    def index(self) -> Index:
        """Return the index of the captures."""
        return self._inbox.captures.index

    def memo(self, memo_id: str, namespace: str) -> Record:
        """Return the memo with this id. Raises NotFound, also if it is not a memo or is elsewhere."""
        record = self.index.record(memo_id, self.workspace)
        if record is None or not self._is_here(record, namespace):
            raise NotFound(
                f"no memo {memo_id[:64]!r} in namespace {namespace[:200]!r}; a search returns the id of each memo"
            )
        return record

    def read(self, drafts: NoteDrafts, record: Record) -> tuple[str, Document]:
        """Read the memo from its file. Raises Conflict when it can't be written to, or not yet."""
        return note_update.read_note(self._inbox, drafts, record)

    def _is_here(self, record: Record, namespace: str) -> bool:
        here = (record.workspace, record.namespace) == (self.workspace, namespace)
        return here and record.type not in NO_MEMOS

    def _attempt(self, wish: _Wish) -> SaveOutcome | None:
        """Create the memo, or change the one with this id; None when somebody else created it at the same moment."""
        if wish.memo_id is not None and self._find_existing(wish.memo_id, wish.namespace) is not None:
            return self._revise(wish.memo_id, wish)
        if wish.version:
            raise Conflict(f"there is no memo {wish.memo_id!r}, so version {wish.version} does not exist", version=0)
        return self._create(wish)

    def _create(self, wish: _Wish) -> SaveOutcome | None:
        # Checked only here, so that an existing memo with such an id can still be changed.
        refuse_secret("memo_id", wish.memo_id or "")
        now = self._inbox.now()
        record = create_note(
            self._inbox,
            folder=self._inbox.namespace_folder(self.workspace, wish.namespace),
            title=wish.title,
            content=wish.content,
            properties=partial(
                properties_of,
                id=wish.memo_id or str(uuid.uuid4()),
                created_at=now,
                source=None,
                collection=wish.collection or "memory",
                tags=wish.tags,
                metadata=merge_patch({}, wish.fields),
            ),
            now=now,
            instead=partial(self._is_id_taken, wish.memo_id),
            progress=self._progress,
        )
        return None if record is True else SaveOutcome(record, created=True)

    def _revise(self, memo_id: str, wish: _Wish) -> SaveOutcome:
        with lock_workspace(self._inbox, self.workspace):
            revision = write_batch(self._inbox, partial(self._plan_revision, memo_id, wish), self._progress)
            return SaveOutcome(note_update.record_revision(self._inbox, revision), created=False)

    def _is_id_taken(self, memo_id: str | None) -> Literal[True] | None:
        return True if memo_id is not None and self.index.record(memo_id, self.workspace) is not None else None

    def _find_existing(self, memo_id: str, namespace: str) -> Record | None:
        """Return the memo to change, if it exists.

        Raises Conflict if another note has the id, InvalidArgument for a file."""
        record = self.index.record(memo_id, self.workspace)
        if record is not None and not self._is_here(record, namespace):
            raise Conflict(f"the id {memo_id!r} is in use; omit memo_id, or choose another")
        if record is not None and record.type in note_update.ELSEWHERE:
            raise InvalidArgument(
                f"this memo can't be changed here: {note_update.ELSEWHERE[record.type]}", type=record.type
            )
        return record

    def _plan_revision(self, memo_id: str, wish: _Wish, _: Index) -> tuple[list[Change], note_update.Revision]:
        """Plan the writes that change the memo."""
        record = self._find_existing(memo_id, wish.namespace)
        if record is None:
            raise Conflict("the memo was removed a moment ago; try again in a moment", retryable=True)

        def changes(front: str, document: Document) -> dict[str, PropertyValue]:
            filed = tag_changes(front, wish.tags, wish.collection) if wish.retag else {}
            return {**wish.titles, **_metadata_changes(document.metadata, wish.fields, replace=wish.replace), **filed}

        from_caller = {name for name, named in (("title", wish.title), ("tags", wish.retag)) if named}
        revision = note_update.plan_changes(
            self._inbox, record, changes, content=wish.content, version=wish.version, from_caller=from_caller
        )
        return revision.changes, revision

    def _plan_removal(
        self, memo_id: str, namespace: str, version: int | None, index: Index
    ) -> tuple[list[Change], tuple[Record, int]]:
        """Plan the writes that remove the memo and the relations to it."""
        record = self.memo(memo_id, namespace)
        drafts = NoteDrafts(self._inbox)
        try:
            text = drafts.text(record.path)
        except NotFound as error:
            raise NotFound(f"no memo {memo_id!r}: its file was removed a moment ago") from error
        document = note_update.parse_note(self._inbox, text, record)
        note_update.check_version(document, version)
        ties, end = index.memos.ties, [end_of(record)]
        count = len({tie.key for tie in (*ties.incoming(end), *ties.outgoing(end))})
        return deletion_changes(self._inbox, index, record, drafts), (record, count)


def _check_search(query: str | None, pivot: str | None, k: int, minimum: float | None, metric: Metric) -> None:
    """Raise InvalidArgument for arguments that are not valid, or not valid together."""
    if not 1 <= k <= MOST:
        raise InvalidArgument(f"k must be from 1 to {MOST}", field="k")
    if query is not None and pivot is not None:
        raise InvalidArgument("give query or pivot_memo_id, not both", field="query")
    if minimum is not None and metric != "cosine":
        raise InvalidArgument("minimum_similarity requires distance_metric cosine", field="minimum_similarity")
    if minimum is not None and query is None and pivot is None:
        raise InvalidArgument("minimum_similarity requires a query or a pivot_memo_id", field="minimum_similarity")


def _score(cosine: float, metric: Metric) -> float:
    """Return the score for a cosine similarity; vectors have unit length, so the distance follows from it."""
    return cosine if metric == "cosine" else round(sqrt(max(0.0, 2 - 2 * cosine)), 6)


def merge_patch(old: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return `old` after a merge patch (RFC 7396): null removes a key, objects are merged, all else is replaced."""
    merged = dict(old)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            held = merged.get(key)
            merged[key] = merge_patch(held if isinstance(held, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged


def _metadata_changes(old: Mapping[str, Any], fields: Mapping[str, Any], *, replace: bool) -> dict[str, PropertyValue]:
    """Return the properties to set; None = remove. Keys that differ only in letter case are one property."""
    spelt = {fold(key): key for key in old}
    named = {key if key in old else spelt.get(fold(key), key): value for key, value in fields.items()}
    merged = merge_patch({} if replace else old, named)
    kept = {key for key in old if is_publishing(key)}  # an agent can neither set nor remove them
    return {key: merged.get(key) for key in ({**old, **named} if replace else named) if key not in kept}
