"""index/storage/chunk_store.py on an object store: the same code on an S3 server of this machine."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

import pytest

from index.model import Filter
from index.storage.chunk_store import ChunkStore
from index.storage.crash_repair import StoreDamaged
from index.storage.lancedb_table import discard
from syncd.settings.settings import IndexSettings
from tests.support.chunk_rows import DIMENSIONS, row, unit
from tests.support.index_dump import dump_index, dump_store
from tests.support.paths import ROOT
from tests.support.world import World

BUCKET = "memex-index"


@pytest.fixture(scope="module")
def options():
    from moto.server import ThreadedMotoServer  # it brings Flask and boto3, which no other test needs

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    given = {
        "aws_endpoint": f"http://{host}:{port}",
        "allow_http": "true",
        "aws_access_key_id": "of-a-test",
        "aws_secret_access_key": "of-a-test",
        "aws_region": "us-east-1",
        "aws_virtual_hosted_style_request": "false",
    }
    _client(given).create_bucket(Bucket=BUCKET)
    yield given
    server.stop()


def _client(options):
    import boto3

    return boto3.client(
        "s3",
        endpoint_url=options["aws_endpoint"],
        aws_access_key_id=options["aws_access_key_id"],
        aws_secret_access_key=options["aws_secret_access_key"],
        region_name=options["aws_region"],
    )


def opened(options, name):
    return ChunkStore(f"s3://{BUCKET}/{name}/captures.lance", dimensions=DIMENSIONS, options=options)


OTHER = """
import json, sys
from index.model import Filter
from index.storage.chunk_store import ChunkStore
from syncd.settings.settings import IndexSettings
from tests.support.chunk_rows import DIMENSIONS, row, unit
from tests.support.world import World
store = ChunkStore(sys.argv[1], dimensions=DIMENSIONS, options=json.loads(sys.argv[2]))
assert not store.may_lack_rows
near, words = store.search(vector=unit("text 3"), words="third", filter=Filter(workspace="w0"), pool=5)
store.replace({"other": [row("other", 0, "from another process")]})
print(json.dumps([store.row_counts(), near[0].doc_id, [match.doc_id for match in words]]))
store.close()
"""


@pytest.mark.slow
def test_it_works_on_an_object_store_as_on_a_disk(options):
    store = opened(options, "whole")
    assert store.count() == 0
    store.replace(
        {
            f"d{n}": [row(f"d{n}", 0, f"text {n}", workspace=f"w{n % 2}", tags=("a/b",) if n < 3 else ())]
            for n in range(8)
        }
    )
    store.replace(
        {"d3": [row("d3", 0, "text 3", workspace="w0"), row("d3", 1, "third thing", workspace="w0")], "d7": []}
    )
    near, words = store.search(vector=unit("text 2"), words="text", filter=Filter(workspace="w0", tags=("A",)), pool=10)
    assert near[0].doc_id == "d2"
    assert {match.doc_id for match in near} == {match.doc_id for match in words} == {"d0", "d2"}
    assert store.vectors([row(text="text 5").digest])[row(text="text 5").digest] == pytest.approx(
        unit("text 5"), abs=1e-3
    )
    dump = dump_store(store, vectors=True)
    store.maintain()
    assert dump_store(store, vectors=True) == dump
    assert [passage.ord for passage in store.rows_of("d3")] == [0, 1]
    store.close()

    ran = subprocess.run(
        [sys.executable, "-c", OTHER, f"s3://{BUCKET}/whole/captures.lance", json.dumps(options)],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    documents, nearest, third = json.loads(ran.stdout)
    assert documents == {"d0": 1, "d1": 1, "d2": 1, "d3": 2, "d4": 1, "d5": 1, "d6": 1, "other": 1}
    assert (nearest, third) == ("d3", ["d3"])

    again = opened(options, "whole")
    assert not again.may_lack_rows
    assert again.rows_of("other")[0].text == "from another process"
    again.close()


@pytest.mark.slow
def test_a_table_whose_versions_are_gone_is_not_taken_for_an_empty_one(options):
    store = opened(options, "torn")
    store.replace({"a": [row()]})
    store.close()
    s3 = _client(options)
    prefix = "torn/captures.lance/chunks.lance/"
    keys = [item["Key"] for item in s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix)["Contents"]]
    for key in keys:
        if "/_versions/" in key:
            s3.delete_object(Bucket=BUCKET, Key=key)
    with pytest.raises(StoreDamaged):
        opened(options, "torn")
    discard(f"s3://{BUCKET}/torn/captures.lance", options)
    store = opened(options, "torn")
    assert store.count() == 0
    store.close()


@pytest.mark.slow
def test_a_whole_daemon_keeps_its_chunks_there(options, tmp_path):
    on_s3 = IndexSettings(uri=f"s3://{BUCKET}/daemon", storage_options=options)
    world = World(tmp_path, index=on_s3)
    try:
        world.write("Note.md", "the shoveler in the vault\n")
        world.run()
        kept = world.app.agent_access.workspace("default").capture("a shoveler was seen at dawn").record
        assert world.found("shoveler vault", scope="vault") == ["Note.md"]
        world.reopen()
        world.run()
        assert kept.path in world.found("shoveler dawn", scope="captures")
        world.app.operations["index"]({"full": True}, lambda _: None)
        assert kept.path in world.found("shoveler dawn", scope="captures")
        assert world.dump() == {
            scope: dump_index(scope_index.index) for scope, scope_index in world.app.opened.builds.scopes.items()
        }
        assert not list((world.state / "index").rglob("*.lance"))
        world.app.opened.builds.drop_retired(grace=0)
        keys = [one["Key"] for one in _client(options).list_objects_v2(Bucket=BUCKET, Prefix="daemon/")["Contents"]]
        assert {key.split("/")[1] for key in keys} == {world.app.opened.builds.live.folder.name}
    finally:
        world.close()
