"""What commands share: here, how a list says that it was cut."""

from syncd.cli.framework.arguments import LISTED, cut_rows


def test_a_list_with_one_row_more_is_cut_and_names_an_option_that_the_command_takes(capfd):
    assert cut_rows(range(3), 3, "jobs") == range(3)
    assert capfd.readouterr().err == ""
    assert cut_rows(range(4), 3, "jobs") == range(3)
    assert capfd.readouterr().err == "memex: there are more jobs; this list ends after 3; to list more: --limit\n"
    cut_rows(range(LISTED + 1), LISTED, "jobs")
    assert (
        capfd.readouterr().err == "memex: there are more jobs; this list ends after 10,000; a list has at most 10,000\n"
    )
