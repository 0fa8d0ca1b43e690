"""Define the command `doctor`: explain what is wrong with the installation, and repair what is safe to repair."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace

import click

from index.errors import InvalidArgument
from syncd.cli.framework.commands import (
    Command,
    has_color,
    load_settings,
    print_answer,
    print_text,
    show_progress,
    wants_json,
)
from syncd.cli.framework.printed_commands import complete_commands

# ruff: noqa: PLC0415 - what the checks need takes longer to import than most commands to run
WRONG = 7


@click.command(cls=Command)
@click.option(
    "--fix",
    is_flag=True,
    help="Repair derived data (the index, sockets of a dead daemon) and permissions of Memex's own files.",
)
def doctor(fix: bool) -> int:
    """Check the installation, report problems, and name the command that fixes each one.

    The command changes nothing without --fix. With --fix it touches no note and asks nothing. It works whether or not the
    daemon runs. Exits with 7 if there is a problem, and with 0 if there is at most advice.

    With --json: `{"well", "findings": [{"check", "is", "says", "mend", "fixable", "mended"}]}`, where "is" is ok, advice
    or wrong."""
    from syncd.cli.doctor.agent_checks import AGENT_CHECKS
    from syncd.cli.doctor.doctor import Finding, examine, format_finding, format_summary, is_healthy
    from syncd.cli.doctor.host_checks import HOST_CHECKS
    from syncd.cli.doctor.service_checks import SERVICE_CHECKS, SETTINGS_CHECKS
    from syncd.cli.doctor.state_checks import STATE_CHECKS

    findings: list[Finding] = []
    width = min(shutil.get_terminal_size().columns if sys.stdout.isatty() else 80, 120)
    with show_progress() as progress:
        try:
            checks = (*SETTINGS_CHECKS, *STATE_CHECKS, *HOST_CHECKS, *SERVICE_CHECKS, *AGENT_CHECKS)
            looks = examine(load_settings(), os.environ, checks, fix=fix, progress=progress)
        except InvalidArgument as error:
            mend = "correct the settings named above, then: memex doctor" if "mistakes" in error.details else ""
            looks = iter([Finding("wrong", error.message, mend, check="settings")])
        for look in looks:
            finding = replace(look, says=complete_commands(look.says), mend=complete_commands(look.mend))
            findings.append(finding)
            if not wants_json():
                progress({})
                print_text(format_finding(finding, width=width, color=has_color()))
    result = {"well": is_healthy(findings), "findings": [finding.as_dict() for finding in findings]}
    print_answer(result, lambda: "\n" + complete_commands(format_summary(findings, color=has_color())))
    return 0 if result["well"] else WRONG
