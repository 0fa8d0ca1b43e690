"""Keys: known by their secret only, ended at once, stored as hashes."""

import re
import sqlite3
import threading
from contextlib import closing

import pytest

from index.errors import Conflict, InvalidArgument, NotFound, Unavailable
from syncd.state.ledger import Ledger
from syncd.workspaces.api_keys import ApiKeys, make_secret, read_environment_keys
from tests.support.audit_entries import unwritable

NOW = 1_700_000_000_000
DAY = 24 * 3600 * 1000


@pytest.fixture
def keys(ledger):
    return ApiKeys(ledger)


def test_a_key_is_known_by_its_secret_and_by_nothing_else(keys):
    key, secret = keys.create("laptop", workspaces=["work"], now=NOW)
    assert re.fullmatch(r"mx_[0-9a-f]{12}_[0-9a-f]{64}", secret)
    assert keys.authenticate(secret, now=NOW) == key
    for wrong in (
        "",
        "mx_",
        f"mx_{key.id}",
        f"mx_{key.id}_",
        secret[:-1],
        secret + "0",
        secret.upper(),
        "mx__",
        "é",
        "\udcff",
    ):
        assert keys.authenticate(wrong, now=NOW) is None


def test_the_secret_is_nowhere_in_the_files(keys, ledger):
    _, secret = keys.create("laptop", workspaces=None, now=NOW)
    for file in ledger.path.parent.iterdir():
        assert secret.rpartition("_")[2].encode() not in file.read_bytes()


def test_keys_are_there_after_a_restart(keys, ledger):
    made, secret = keys.create(
        "laptop", workspaces=["work", "b,c"], scopes=["read"], surfaces=["mcp"], expires_at=NOW + 5, now=NOW
    )
    again = ApiKeys(ledger)
    assert again.authenticate(secret, now=NOW) == made
    assert made.workspaces == {"work", "b,c"}
    assert made.scopes == {"read"}
    assert made.surfaces == {"mcp"}


def test_a_key_that_another_process_revoked_ends_although_the_ledger_could_not_be_read_at_first(keys, ledger):
    _, secret = keys.create("laptop", workspaces=None, now=NOW)
    assert keys.authenticate(secret, now=NOW)
    with closing(Ledger.open(ledger.path)) as other:
        ApiKeys(other).revoke("laptop", now=NOW)
    refused = lambda action, table, *_: (  # noqa: E731 - one expression
        sqlite3.SQLITE_DENY if (action, table) == (sqlite3.SQLITE_READ, "keys") else sqlite3.SQLITE_OK
    )
    ledger._reader.set_authorizer(refused)
    with pytest.raises(Unavailable):
        keys.authenticate(secret, now=NOW)
    ledger._reader.set_authorizer(None)
    assert keys.authenticate(secret, now=NOW) is None


def test_a_use_that_could_not_be_written_is_written_later(keys, ledger):
    _, secret = keys.create("laptop", workspaces=None, now=NOW)
    keys.authenticate(secret, now=NOW + 1)
    with unwritable(ledger), pytest.raises(Unavailable):
        keys.flush()
    keys.flush()
    assert [key.last_used_at for key in ApiKeys(ledger).list()] == [NOW + 1]


def test_a_key_ends_when_it_expires(keys):
    _, secret = keys.create("short", workspaces=None, expires_at=NOW + 10, now=NOW)
    assert keys.authenticate(secret, now=NOW + 9)
    assert keys.authenticate(secret, now=NOW + 10) is None


def test_a_key_that_replaces_another_is_made_in_the_transaction_that_revokes_it(keys, ledger):
    old, secret = keys.create("laptop", workspaces=None, now=NOW)
    with pytest.raises(Conflict):
        keys.create("laptop", workspaces=None, now=NOW)
    made = make_secret(old.id)
    with pytest.raises(Unavailable):  # the id is taken, so the key can't be inserted
        keys.create("laptop", workspaces=None, secret=made, replaces=True, now=NOW)
    for known in (keys, ApiKeys(ledger)):
        assert known.authenticate(secret, now=NOW) == old
    new, later = keys.create("laptop", workspaces=None, replaces=True, now=NOW + 1)
    for known in (keys, ApiKeys(ledger)):
        assert known.authenticate(secret, now=NOW + 1) is None
        assert known.authenticate(later, now=NOW + 1) == new
    assert [event["event"] for event in keys.history()] == ["created", "revoked", "created"]


def test_a_renamed_key_takes_the_place_of_the_earlier_one_and_never_ends_itself(keys):
    _, earlier = keys.create("agent", workspaces=None, now=NOW)
    pending, secret = keys.create("pending", workspaces=None, now=NOW)
    for _ in range(2):  # the second time, the key has the name already
        renamed = keys.rename(pending.id, "agent", now=NOW)
        assert (renamed.id, renamed.name) == (pending.id, "agent")
        assert keys.authenticate(secret, now=NOW) == renamed
    assert keys.authenticate(earlier, now=NOW) is None
    other, _ = keys.create("other", workspaces=None, now=NOW)
    keys.revoke(other.id, now=NOW)
    for gone in (other.id, "0" * 12):
        with pytest.raises(NotFound, match="no live key"):
            keys.rename(gone, "agent", now=NOW)
    assert keys.authenticate(secret, now=NOW) == renamed


def test_a_key_ends_at_a_time_that_a_calendar_has(keys):
    for far in (253_402_300_800_000, 606_000_000_000_000, 2**62):
        with pytest.raises(InvalidArgument, match="before the year 9999"):
            keys.create("far", workspaces=None, expires_at=far, now=NOW)
    _, secret = keys.create("near", workspaces=None, now=NOW)
    for more in ({"overlap_ms": 2**62}, {"overlap_ms": 0, "expires_at": 2**62}):
        with pytest.raises(InvalidArgument, match="before the year 9999"):
            keys.rotate("near", **more, now=NOW)
    assert keys.authenticate(secret, now=NOW).serial == 1


def test_a_revoked_key_ends_at_once_even_when_another_process_did_it(keys, ledger, tmp_path):
    key, secret = keys.create("laptop", workspaces=None, now=NOW)
    other_ledger = Ledger.open(ledger.path)
    ApiKeys(other_ledger).revoke("laptop", now=NOW + 1)
    other_ledger.close()
    assert keys.authenticate(secret, now=NOW + 1) is None
    assert not keys.is_live(key, now=NOW + 1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda keys, _, secret: keys.authenticate(secret, now=NOW),
        lambda keys, key, _: keys.is_live(key, now=NOW),
        lambda keys, key, _: keys.find_live(key.name, now=NOW),
        lambda keys, *_: keys.is_bound("work", "team"),
    ],
    ids=["authenticate", "is_live", "find_live", "is_bound"],
)
def test_the_first_question_after_another_process_has_changed_a_key_is_answered_by_the_change(keys, ledger, ask):
    with closing(Ledger.open(ledger.path)) as opened:
        other = ApiKeys(opened)
        made = other.create("laptop", workspaces=["work"], namespace="team", now=NOW)
        assert ask(keys, *made)
        other.revoke("laptop", now=NOW)
        assert not ask(keys, *made)


def test_a_namespace_has_the_unicode_form_of_the_index(keys, ledger):
    key, secret = keys.create("laptop", workspaces=None, namespace="Cafe\u0301", now=NOW)
    assert key.namespace == keys.authenticate(secret, now=NOW).namespace == "Caf\u00e9"
    ledger.execute("UPDATE keys SET namespace = ?", ("Cafe\u0301",))  # as an earlier version stored it
    assert ApiKeys(ledger).authenticate(secret, now=NOW).namespace == "Caf\u00e9"


def test_a_workspace_counts_in_either_unicode_form(keys, ledger):
    key, secret = keys.create("laptop", workspaces=["Cafe\u0301"], now=NOW)
    assert key.can_see("Caf\u00e9") and key.can_see("Cafe\u0301") and not key.can_see("Cafe")
    ledger.execute("UPDATE keys SET workspaces = ?", ('["Cafe\u0301"]',))  # as an earlier version stored it
    assert ApiKeys(ledger).authenticate(secret, now=NOW).can_see("Caf\u00e9")


def test_each_command_sees_the_keys_that_another_process_has_just_made(keys, ledger):
    with closing(Ledger.open(ledger.path)) as opened:
        made = lambda name: ApiKeys(opened).create(name, workspaces=None, now=NOW)[1]  # noqa: E731 - one expression
        secrets = [made("laptop")]
        keys.revoke("laptop", now=NOW)
        secrets.append(made("phone"))
        keys.rotate("phone", overlap_ms=0, now=NOW)
        secrets.append(made("owner"))
        keys.reset("owner", make_secret(), instead_of=(), now=NOW)
        made("tablet")
        with pytest.raises(Conflict, match="tablet"):
            keys.create("tablet", workspaces=None, now=NOW)
    assert [keys.authenticate(secret, now=NOW) for secret in secrets] == [None, None, None]


def test_a_reset_leaves_the_new_key_with_all_rights_and_the_keys_that_were_not_named(keys):
    _, old = keys.create("owner", workspaces=None, now=NOW)
    named, stale = keys.create("laptop", workspaces=None, now=NOW)
    _, other = keys.create("phone", workspaces=["work"], now=NOW)
    keys.reset("owner", secret := make_secret(), instead_of=[named.id], now=NOW + 1)
    key = keys.authenticate(secret, now=NOW + 1)
    assert (key.name, key.workspaces, key.scopes) == ("owner", None, {"read", "write", "admin"})
    assert [keys.authenticate(each, now=NOW + 1) is None for each in (old, stale, other)] == [True, True, False]
    assert [event["event"] for event in keys.history()[3:]] == ["revoked", "revoked", "created", "reset"]


def test_the_status_names_live_keys_that_expire_within_two_weeks_and_says_when_the_ledger_fails(keys, ledger):
    for name, days in (("soon", 14), ("later", 15), ("ended", 14)):
        keys.create(name, workspaces=None, expires_at=NOW + days * DAY, now=NOW)
    keys.create("always", workspaces=None, now=NOW)
    keys.revoke("ended", now=NOW)
    assert keys.facts(NOW) == {"live": 3, "expiring": ["soon"]}
    ledger.close()
    assert keys.facts(NOW)["problem"]


def test_revoking_takes_the_live_key_of_a_name_and_twice_is_once(keys):
    old, _ = keys.create("laptop", workspaces=None, now=NOW)
    assert keys.revoke("laptop", now=NOW + 1).revoked_at == NOW + 1
    new, secret = keys.create("laptop", workspaces=None, now=NOW + 2)
    assert keys.revoke("laptop", now=NOW + 3).id == new.id != old.id
    assert keys.revoke(new.id, now=NOW + 9).revoked_at == NOW + 3
    assert keys.authenticate(secret, now=NOW + 3) is None
    with pytest.raises(NotFound):
        keys.revoke("nobody", now=NOW)


def test_a_name_belongs_to_one_live_key(keys):
    keys.create("laptop", workspaces=None, now=NOW)
    with pytest.raises(Conflict, match="laptop"):
        keys.create("laptop", workspaces=None, now=NOW)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "\u3164"},
        {"name": " x"},
        {"name": "a\nb"},
        {"name": "x" * 65},
        {"workspaces": ()},
        {"scopes": ("read", "root")},
        {"scopes": ()},
        {"surfaces": ("telnet",)},
        {"expires_at": NOW},
    ],
    ids=str,
)
def test_what_a_key_can_not_be_is_refused(keys, wrong):
    with pytest.raises(InvalidArgument):
        keys.create(**({"name": "laptop", "workspaces": None, "now": NOW} | wrong))
    assert keys.list() == []


def test_keys_of_the_environment_work_on_their_surface_and_are_never_stored(ledger):
    keys = ApiKeys(ledger, static={"mcp": "one", "rest": "two"})
    found = keys.authenticate("one", now=NOW)
    assert found.surfaces == {"mcp"}
    assert found.scopes == {"read", "write"}
    assert found.can_see("anything")
    assert keys.is_live(found, now=NOW)
    assert keys.authenticate("two", now=NOW).surfaces == {"rest"}
    assert ApiKeys(ledger, static={"mcp": "same", "rest": "same"}).authenticate("same", now=NOW).surfaces == {
        "mcp",
        "rest",
    }
    assert ApiKeys(ledger, static={"mcp": ""}).authenticate("", now=NOW) is None
    assert keys.list() == []


@pytest.mark.parametrize("name", ["KB_API_KEY", "KB_MCP_API_KEY"])
def test_a_key_of_the_environment_that_could_be_guessed_is_refused_and_not_shown(name):
    for secret in ("hunter2", "x" * 15, " " * 40, f"{'x' * 15}\n"):
        with pytest.raises(
            InvalidArgument, match=rf"^{name} has \d+ characters, but a key needs at least 16"
        ) as refused:
            read_environment_keys({"KB_API_KEY": "y" * 16, "KB_MCP_API_KEY": "y" * 16} | {name: secret})
        assert secret.strip() == "" or secret.strip() not in refused.value.message
    assert read_environment_keys({"KB_API_KEY": "", "KB_MCP_API_KEY": f"{'é' * 16}\n"}) == {"mcp": "é" * 16}
    assert read_environment_keys({}) == {}


def test_the_last_use_is_remembered_without_a_write_for_each_request(keys, ledger):
    _, secret = keys.create("laptop", workspaces=None, now=NOW)
    keys.authenticate(secret, now=NOW + 7)
    assert keys.list()[0].last_used_at == NOW + 7
    assert ledger.query("SELECT last_used_at FROM keys") == [(None,)]
    keys.flush()
    keys.flush()
    assert ledger.query("SELECT last_used_at FROM keys") == [(NOW + 7,)]
    assert ApiKeys(ledger).list()[0].last_used_at == NOW + 7 == keys.list()[0].last_used_at


def test_many_threads_make_keys_and_none_is_lost(keys):
    errors = []

    def work(number):
        try:
            for turn in range(5):
                _, secret = keys.create(f"{number}-{turn}", workspaces=None, now=NOW)
                assert keys.authenticate(secret, now=NOW)
                keys.flush()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(keys.list()) == 30


def test_a_key_sees_its_workspaces_and_may_only_its_scopes(keys):
    key, _ = keys.create("laptop", workspaces=["work"], scopes=["admin"], now=NOW)
    assert key.can_see("work")
    assert not key.can_see("Work")
    assert not key.can_see("")
    assert key.has_scope("admin")
    assert not key.has_scope("read")


def test_while_a_key_is_rotated_both_secrets_open_and_then_only_the_new_one(keys, ledger):
    made, old = keys.create("laptop", workspaces=["work"], scopes=["read"], now=NOW)
    rotated, new = keys.rotate("laptop", overlap_ms=DAY, now=NOW + 1)
    assert (rotated.id, rotated.name, rotated.workspaces, rotated.scopes) == (made.id, "laptop", {"work"}, {"read"})
    for known in (keys, ApiKeys(ledger)):
        assert known.authenticate(new, now=NOW + DAY) == rotated
        assert known.authenticate(old, now=NOW + DAY).id == made.id
        assert known.authenticate(old, now=NOW + 1 + DAY) is None
        assert known.authenticate(new, now=NOW + 1 + DAY) == rotated
    assert [key.name for key in keys.list()] == ["laptop"]


def test_what_came_in_with_the_old_secret_goes_out_with_it(keys):
    _, old = keys.create("laptop", workspaces=None, now=NOW)
    before = keys.authenticate(old, now=NOW)
    _, new = keys.rotate("laptop", overlap_ms=DAY, now=NOW)
    after = keys.authenticate(new, now=NOW)
    assert keys.is_live(before, now=NOW + DAY - 1)
    assert not keys.is_live(before, now=NOW + DAY)
    assert keys.is_live(after, now=NOW + DAY)


@pytest.mark.parametrize("expires", [None, NOW + 1, NOW + DAY + 1])
def test_an_old_secret_expires_with_the_overlap_or_earlier_with_its_key(keys, expires):
    _, old = keys.create("laptop", workspaces=None, expires_at=expires, now=NOW)
    _, new = keys.rotate("laptop", overlap_ms=DAY, now=NOW)
    assert keys.authenticate(old, now=NOW).expires_at == min(expires or NOW + DAY, NOW + DAY)
    assert keys.authenticate(new, now=NOW).expires_at == expires


def test_a_second_rotation_ends_the_first_secret_at_once(keys):
    _, first = keys.create("laptop", workspaces=None, now=NOW)
    came = keys.authenticate(first, now=NOW)
    _, second = keys.rotate("laptop", overlap_ms=DAY, now=NOW)
    _, third = keys.rotate("laptop", overlap_ms=DAY, now=NOW)
    assert keys.authenticate(first, now=NOW) is None
    assert not keys.is_live(came, now=NOW)
    assert keys.authenticate(second, now=NOW)
    assert keys.authenticate(third, now=NOW)


def test_without_an_overlap_the_old_secret_ends_at_once(keys):
    _, old = keys.create("laptop", workspaces=None, now=NOW)
    _, new = keys.rotate("laptop", overlap_ms=0, now=NOW)
    assert keys.authenticate(old, now=NOW) is None
    assert keys.authenticate(new, now=NOW)


def test_a_key_that_has_expired_comes_back_by_a_new_secret_only(keys, ledger):
    _, old = keys.create("laptop", workspaces=None, expires_at=NOW + 10, now=NOW)
    with pytest.raises(InvalidArgument, match="expired"):
        keys.rotate("laptop", overlap_ms=DAY, now=NOW + 10)
    key, new = keys.rotate("laptop", overlap_ms=DAY, expires_at=NOW + DAY, now=NOW + 10)
    assert key.expires_at == NOW + DAY
    for known in (keys, ApiKeys(ledger)):
        assert known.authenticate(old, now=NOW + 11) is None
        assert known.authenticate(new, now=NOW + 11)


def test_revoking_ends_both_secrets(keys):
    _, old = keys.create("laptop", workspaces=None, now=NOW)
    _, new = keys.rotate("laptop", overlap_ms=DAY, now=NOW)
    keys.revoke("laptop", now=NOW)
    assert keys.authenticate(old, now=NOW) is keys.authenticate(new, now=NOW) is None
    with pytest.raises(NotFound):
        keys.rotate("laptop", overlap_ms=0, now=NOW)


def test_another_process_sees_a_rotation_and_says_so(keys, ledger, caplog):
    _, old = keys.create("laptop", workspaces=None, now=NOW)
    other = Ledger.open(ledger.path)
    _, new = ApiKeys(other).rotate("laptop", overlap_ms=0, now=NOW)
    other.close()
    caplog.clear()
    assert keys.authenticate(old, now=NOW) is None
    assert keys.authenticate(new, now=NOW)
    assert "another process changed the keys" in caplog.text
    assert new.rpartition("_")[2] not in caplog.text


def test_what_became_of_keys_is_written_down_and_logged_without_secrets(keys, caplog):
    caplog.set_level("INFO")
    key, first = keys.create("laptop", workspaces=None, now=NOW)
    _, second = keys.rotate("laptop", overlap_ms=0, now=NOW + 1)
    keys.revoke("laptop", now=NOW + 2)
    keys.revoke("laptop", now=NOW + 3)
    assert [(one["at"], one["event"], one["name"], one["id"]) for one in keys.history()] == [
        (NOW, "created", "laptop", key.id),
        (NOW + 1, "rotated", "laptop", key.id),
        (NOW + 2, "revoked", "laptop", key.id),
    ]
    assert "'laptop') has a new secret" in caplog.text
    assert "'laptop') was revoked" in caplog.text
    assert not {first.rpartition("_")[2], second.rpartition("_")[2]} & set(re.findall(r"[0-9a-f]{64}", caplog.text))


def test_a_live_key_is_found_by_its_name(keys):
    key, _ = keys.create("laptop", workspaces=None, expires_at=NOW + 10, now=NOW)
    assert keys.find_live("laptop", now=NOW) == key
    assert keys.find_live("laptop", now=NOW + 10) is None
    assert keys.find_live(key.id, now=NOW) is None
