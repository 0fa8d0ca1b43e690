"""What comes in as a file: names, chunks, base64, and what is missing; no path is made of anything."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import InvalidArgument, MemexError, ResourceExhausted
from syncd.uploads import upload_request
from syncd.uploads.upload_request import CHUNK, CHUNKS, LARGEST
from syncd.vault.path_rules import file_name

MIB = 1_048_576
KNOWN = ("documents", "memory", "workspace")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        pytest.param("report.pdf", "report.pdf", id="plain"),
        pytest.param("  report.pdf ", "report.pdf", id="blanks around it"),
        pytest.param("../../etc/passwd", "passwd", id="out of the folder"),
        pytest.param("/etc/passwd", "passwd", id="absolute"),
        pytest.param("C:\\Users\\ann\\report.pdf", "report.pdf", id="a path of another system"),
        pytest.param("a/b\\c/d.md", "d.md", id="mixed"),
        pytest.param("NUL.txt", "NUL.txt", id="a device, which is metadata here"),
        pytest.param(".bashrc", ".bashrc", id="hidden"),
        pytest.param("cafe\u0301.md", "caf\u00e9.md", id="decomposed"),
        pytest.param("会議 2026.docx", "会議 2026.docx", id="another script"),
        pytest.param("👨\u200d👩\u200d👧.png", "👨\u200d👩\u200d👧.png", id="joiners that mean something"),
        pytest.param("x" * 251 + ".pdf", "x" * 251 + ".pdf", id="255 bytes"),
    ],
)
def test_the_name_of_a_file_is_the_last_part_of_what_is_given(given, kept):
    assert upload_request.check_filename(given) == kept


@pytest.mark.parametrize(
    ("given", "why"),
    [
        *((name, "not a file name") for name in ("", " ", ".", "..", "...", "a/", "a\\", "/", "a/..", " .. ")),
        *((f"a{mark}b.pdf", "control character") for mark in "\0\n\r\t\x1b\x7f\u202e\u2066\u2028\U000e0041"),
        ("x" * 296 + ".pdf", "300 bytes"),
        ("議" * 90, "270 bytes"),
        ("a\ud800.pdf", "not Unicode"),
    ],
)
def test_a_name_that_hides_something_or_is_none_is_refused_in_words(given, why):
    with pytest.raises(InvalidArgument, match=why) as refused:
        upload_request.check_filename(given)
    assert refused.value.details["field"] == "filename"
    assert "\ud800" not in refused.value.message


@given(st.text())
def test_no_name_ever_leads_anywhere(text):
    try:
        name = upload_request.check_filename(text)
    except InvalidArgument:
        return
    assert not set(name) & {"/", "\\", "\0", "\n"}
    assert name not in (".", "..", "")
    assert len(name.encode()) <= 255
    assert "/" not in file_name(name)


@given(st.binary(min_size=1, max_size=300), st.integers(1, 80))
def test_base64_comes_back_as_it_was_however_its_lines_are_broken(data, width):
    text = base64.b64encode(data).decode()
    broken = "\r\n".join(text[at : at + width] for at in range(0, len(text), width))
    assert upload_request.decode_chunk(broken) == data


@pytest.mark.parametrize(
    "data",
    ["!", "a", "YQ", "YQ=", "YQ===", "Y=Q=", "YWJj=", "YQ==YQ==", "_-8=", "data:text/plain;base64,YQ==", "é", "\ud800"],
)
def test_what_is_not_base64_is_refused(data):
    with pytest.raises(InvalidArgument, match="base64"):
        upload_request.decode_chunk(data)


def test_base64_that_is_far_too_long_is_not_even_decoded():
    with pytest.raises(ResourceExhausted) as refused:
        upload_request.decode_chunk("!" * (4 * LARGEST))
    assert refused.value.details["limit"] == LARGEST


@pytest.mark.parametrize(
    ("index", "size", "total", "others", "error", "why"),
    [
        (-1, 1, 10, 0, InvalidArgument, "from 0 to 9 "),
        (10, 1, 10, 0, InvalidArgument, "from 0 to 9 "),
        (10**30, 1, 10, 0, InvalidArgument, "from 0 to 9 "),
        (CHUNKS, 1, MIB, 0, InvalidArgument, "fewer, larger chunks"),
        (0, 0, 10, 0, InvalidArgument, "empty"),
        (0, 11, 10, 0, InvalidArgument, "11 bytes, but its total_size is 10"),
        (1, 1, 10, 10, InvalidArgument, "11 bytes"),
        (0, LARGEST + 1, 10 * MIB, 0, ResourceExhausted, "1,048,576 are recommended"),
    ],
)
def test_a_chunk_that_can_t_be_a_part_is_refused(index, size, total, others, error, why):
    with pytest.raises(error, match=why):
        upload_request.check_chunk(index, size, total=total, others=others)


@pytest.mark.parametrize(
    ("index", "size", "total", "others"),
    [(0, 10, 10, 0), (9, 1, 10, 9), (0, LARGEST, LARGEST, 0), (CHUNKS - 1, 1, MIB, 0), (0, CHUNK, 2 * CHUNK, CHUNK)],
)
def test_a_chunk_at_the_very_bound_is_taken(index, size, total, others):
    assert upload_request.check_chunk(index, size, total=total, others=others) is None
    with pytest.raises((InvalidArgument, ResourceExhausted)):  # one byte or one chunk further
        upload_request.check_chunk(index + (index > 0), size + 1, total=total, others=others)


@pytest.mark.parametrize(
    ("parts", "total", "why", "missing"),
    [
        ({}, 10, "chunks are missing: 0;", [0]),
        ({1: 5}, 10, "chunks are missing: 0;", [0]),
        ({0: 1, 5: 1, 7: 1}, 10, r"chunks are missing: 1-4, 6;", [1, 2, 3, 4, 6]),
        ({0: 4, 1: 4}, 10, "2 of 10 bytes are missing: send the chunks from 2 on", [2]),
        (dict.fromkeys(range(0, 600, 2), 1), 600, "and more", list(range(1, 201, 2))),
    ],
)
def test_what_is_missing_at_the_end_is_named(parts, total, why, missing):
    with pytest.raises(InvalidArgument, match=why) as refused:
        upload_request.check_complete(parts, total)
    assert refused.value.details["missing"] == missing
    assert refused.value.details["received_bytes"] == sum(parts.values())
    assert refused.value.details["total_size"] == total


def test_nothing_is_missing_of_what_is_whole():
    parts = {0: 4, 2: 2, 1: 4}
    assert upload_request.check_complete(parts, 10) is None
    for index in parts:
        with pytest.raises(InvalidArgument, match="missing"):
            upload_request.check_complete({other: size for other, size in parts.items() if other != index}, 10)


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"title": "x" * 501}, "title"),
        ({"title": "a\nb"}, "title"),
        ({"title": "\ud800"}, "title"),
        ({"source": "a\0"}, "source"),
        ({"namespace": "../x"}, None),
        ({"namespace": "Reports"}, None),
        ({"collection": "memos"}, None),
        ({"tags": ["a", "collection:memos"]}, None),
        ({"tags": ["\ud800"]}, "tags"),
        ({"tags": [f"t{n}" for n in range(101)]}, "tags"),
    ],
)
def test_what_is_said_of_a_file_is_checked(said, field):
    with pytest.raises(InvalidArgument) as refused:
        upload_request.check_description(KNOWN, **said)
    assert field is None or refused.value.details["field"] == field


def test_what_is_said_of_a_file_is_kept_plain():
    assert upload_request.check_description(
        KNOWN, title=" A title ", tags=["#a b", "c", "c", " "], namespace="alpha/beta"
    ) == {
        "title": "A title",
        "tags": ["a-b", "c"],
        "collection": None,
        "namespace": "alpha/beta",
        "source": None,
    }
    said = upload_request.check_description(KNOWN, tags=["collection:workspace", "a", "collection:memory"])
    assert (said["collection"], said["tags"]) == ("memory", ["a"])
    assert upload_request.check_description(KNOWN)["namespace"] == "default"


def test_sizes_and_digests_are_checked():
    assert upload_request.check_size(1, largest=1) == 1
    assert upload_request.check_sha256(None) is None
    assert upload_request.check_sha256("AB" * 32) == "ab" * 32
    wrong: list[tuple[type[MemexError], object]] = [
        (InvalidArgument, lambda: upload_request.check_size(0, largest=5)),
        (InvalidArgument, lambda: upload_request.check_size(-1, largest=5)),
        (ResourceExhausted, lambda: upload_request.check_size(6, largest=5)),
        (InvalidArgument, lambda: upload_request.check_sha256("ab" * 31)),
        (InvalidArgument, lambda: upload_request.check_sha256("")),
    ]
    for error, act in wrong:
        with pytest.raises(error):
            act()
