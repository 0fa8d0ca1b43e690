"""What commands share: how a list says that it was cut, and which times are read."""

import pytest

from index.errors import InvalidArgument
from syncd.cli.framework.arguments import LISTED, cut_rows, parse_time

NOW = 1_700_000_000_000


def test_a_list_with_one_row_more_is_cut_and_names_an_option_that_the_command_takes(capfd):
    assert cut_rows(range(3), 3, "jobs") == range(3)
    assert capfd.readouterr().err == ""
    assert cut_rows(range(4), 3, "jobs") == range(3)
    assert capfd.readouterr().err == "memex: there are more jobs; this list ends after 3; to list more: --limit\n"
    cut_rows(range(LISTED + 1), LISTED, "jobs")
    assert (
        capfd.readouterr().err == "memex: there are more jobs; this list ends after 10,000; a list has at most 10,000\n"
    )


def test_a_span_is_taken_from_now_unless_it_leads_out_of_the_calendar():
    assert parse_time("1d", NOW) == parse_time("1d ago", NOW) == NOW - 86_400_000  # as the help says it
    for text in ("999999w", "105570w", "0000-01-01", "x"):
        with pytest.raises(InvalidArgument, match=f"'{text}' is not a time"):
            parse_time(text, NOW)
