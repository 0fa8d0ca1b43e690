"""The events of nodes that the audit log knows, those by hand included, each once."""

from __future__ import annotations

from index.timings import now_ms
from syncd.history import audit_log as log
from syncd.history.audit_log import Author, Events, acting_as, take_back
from tests.support.audit_entries import change, log_write, owner, sha, told, unwritable
from tests.support.world import World

# Events


def node(path, before, after, id="n1", **more):
    return change(path=f"Captures/default/Entities/{path}.md", before=before, after=after, id=id, type="entity", **more)


def test_events_are_those_of_nodes_that_are_there_and_the_ends_of_others(audit):
    with acting_as(Author("mcp", "create_entities")):
        log_write(audit, node("Ada", "", "1"))
        log_write(audit, node("Ada", "1", "2"))
        log_write(audit, node("Bob", "", "3", id="n2"))
        log_write(audit, node("Bob", "3", "4", id="n2"))
        log_write(audit, node("Bob", "4", "", id="n2"))
        log_write(audit, change(path="Captures/default/note.md"))
    assert audit.count_events("default", 0, {"n1"}) == Events(0, 1, 1, 1)
    assert audit.count_events("default", 0, set()) == Events(0, 0, 0, 1)
    assert audit.count_events("other", 0, {"n1"}) == Events(0, 0, 0, 0)
    later = audit.find(1)[0].at + 1
    assert audit.count_events("default", later, {"n1"}) == Events(later, 0, 0, 0)


def test_what_did_not_come_about_is_no_event(audit):
    with acting_as(Author("mcp", "create_entities")):
        made = log_write(audit, node("Ada", "", "1"))
        audit.log_undone({made: node("Ada", "", "1")}, "CONFLICT")
        log_write(audit, node("Ada", "", "2"))
        gone = log_write(audit, node("Ada", "2", ""))
        take_back(lambda: audit.log_taken_back(node("Ada", "", "2")))
    assert audit.find(1)[0].undoes == gone
    assert audit.count_events("default", 0, {"n1"}) == Events(0, 1, 0, 0)
    assert [entry.outcome for entry in audit.find(9)] == ["done", "CONFLICT", "done", "done", "UNAVAILABLE"]


def test_a_node_changed_by_hand_before_a_tool_changes_it_is_logged_first(audit):
    log_write(audit, node("Ada", "", "1"))
    log_write(audit, node("Ada", "2", "3"))
    told = [(entry.surface, entry.kind, entry.before, entry.after) for entry in audit.entries()]
    assert told == [("daemon", "create", "", "1"), ("file", "update", "1", "2"), ("daemon", "update", "2", "3")]
    assert audit.count_events("default", 0, {"n1"}) == Events(0, 1, 2, 0)


def test_a_note_by_hand_whose_type_is_a_list_is_indexed(tmp_path):
    world = World(tmp_path)
    try:
        world.write("Captures/default/Kyoto.md", "---\ntype: ['[[Places]]']\n---\nA city of many temples.\n")
        world.run()
        assert world.found("temples") == ["Captures/default/Kyoto.md"]
    finally:
        world.close()


def test_a_node_that_is_given_its_id_counts_from_its_beginning(audit):
    audit.log_hand_edits([("", node("Ada", "", "1", id="of the path"))])
    with acting_as(log.ADOPTION):
        log_write(audit, node("Ada", "1", "2", id="n1"))
    assert audit.count_events("default", 0, {"n1"}) == Events(0, 1, 0, 0)


# The whole: real files, a real index


def ada(facts=1, *, settled=True):
    """A node's note with so many observations, as a tool leaves it, or as a person does."""
    listed = [f"- fact {n}{f' ^o{n}' if settled else ''}\n" for n in range(1, facts + 1)]
    return (
        f"---\nid: ada\ntype: entity\nlast_ordinal: {facts if settled else 0}\n---\n## Observations\n{''.join(listed)}"
    )


def test_nodes_changed_by_hand_are_events_like_others(world):
    path = "Captures/default/Entities/Ada.md"

    def events():
        return world.app.opened.audit.count_events("default", 0, {"ada"})

    world.write(path, ada())
    world.run()
    assert events() == Events(0, 1, 0, 0)
    world.write(path, ada(2))
    world.run()
    assert events() == Events(0, 1, 1, 0)
    (world.vault / path).rename(world.vault / "Captures/default/Entities/Ada Lovelace.md")
    world.run()
    assert events() == Events(0, 1, 2, 0)
    assert [entry.kind for entry in world.app.opened.audit.find(2)] == ["update", "moved"]
    (world.vault / "Captures/default/Entities/Ada Lovelace.md").unlink()
    world.run()
    assert world.app.opened.audit.count_events("default", 0, set()) == Events(0, 0, 0, 1)
    by_whom = {(entry.surface, entry.tool) for entry in world.app.opened.audit.entries()}
    assert by_whom == {("file", ""), ("daemon", "adoption")}, "adoption stamps what was edited"
    assert owner(world, "audit.verify")["gone"] == []


def test_a_node_that_a_person_left_to_be_settled_counts_once(world):
    world.write("Captures/default/Entities/Ada.md", ada(settled=False))
    world.run()
    events = world.app.opened.audit.count_events("default", 0, {"ada"})
    kinds = [(entry.kind, entry.surface, entry.tool) for entry in world.app.opened.audit.entries()]
    assert kinds == [("create", "file", ""), ("update", "daemon", "adoption")]
    assert events == Events(0, 1, 0, 0)


def test_a_rebuilt_index_and_a_restart_are_no_change_by_hand(world):
    world.write("Captures/default/Entities/Ada.md", ada())
    world.write("Captures/default/other.md", "---\nid: x\ntype: entity\n---\nby property\n")
    world.write("Captures/default/note.md", "---\nid: y\n---\nno node\n")
    world.run()
    world.app.opened.unlogged_changes.log_hand_edits()
    seen = world.app.opened.audit.head
    assert seen.seq == 2
    owner(world, "index", full=True)
    world.app.opened.unlogged_changes.log_hand_edits()
    world.reopen()
    world.run()
    world.app.opened.unlogged_changes.log_hand_edits()
    assert world.app.opened.audit.head == seen


def test_a_change_by_hand_while_the_daemon_is_down_is_noticed(world):
    world.write("Captures/default/Entities/Ada.md", ada())
    world.run()
    world.app.close()
    world.write("Captures/default/Entities/Ada.md", ada(2))
    world.app = world._open()
    world.run()
    assert world.app.opened.audit.count_events("default", 0, {"ada"}) == Events(0, 1, 1, 0)


def test_what_a_look_can_not_log_is_logged_at_the_next(world):
    world.write("Captures/default/Entities/Ada.md", ada())
    world.run()
    with unwritable(world.app.opened.ledger):
        world.app.opened.unlogged_changes.log_hand_edits()
        assert told(world) == []
    world.app.opened.unlogged_changes.log_hand_edits()
    assert told(world) == [("create", "file", "", "Captures/default/Entities/Ada.md")]


def test_a_write_of_the_pipe_that_is_under_way_is_no_change_by_hand(world):
    path = "Captures/default/Entities/Ada.md"
    world.write(path, ada())
    world.run()
    world.app.opened.unlogged_changes.log_hand_edits()
    with acting_as(log.ADOPTION):  # logged, and the file and the index are to follow
        log_write(world.app.opened.audit, node("Ada", sha(ada().encode()), "9", id="ada"))
    seen = world.app.opened.audit.head
    world.app.opened.unlogged_changes._on_commit([path])
    world.app.opened.unlogged_changes.log_hand_edits()
    assert world.app.opened.audit.head == seen
    assert world.app.opened.unlogged_changes._paths == {path}  # looked at once more


def test_a_write_of_the_pipe_from_while_the_clock_was_ahead_is_not_waited_for(world):
    path, audit = "Captures/default/Entities/Ada.md", world.app.opened.audit
    world.write(path, ada())
    world.run()
    world.app.opened.unlogged_changes.log_hand_edits()
    audit.now = lambda: now_ms() + 3_600_000
    with acting_as(log.ADOPTION):
        log_write(audit, node("Ada", sha(ada().encode()), "9", id="ada"))
    audit.now, seen = now_ms, audit.head
    world.app.opened.unlogged_changes._on_commit([path])
    world.app.opened.unlogged_changes.log_hand_edits()
    assert audit.head != seen
    assert world.app.opened.unlogged_changes._paths == set()
