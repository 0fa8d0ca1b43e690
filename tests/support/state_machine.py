"""Run a Hypothesis state machine for a number of examples (or the profile's share) and steps, with a check at the end of each example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine

from tests.support.example_counts import share


def run_machine(machine: type[RuleBasedStateMachine], last: Callable[[Any], object], examples: int, steps: int) -> None:
    """Call `last` with each machine before its teardown; `last` may fail."""

    class Ending(machine):  # type: ignore[misc, valid-type]  # the class is known when it runs
        def teardown(self) -> None:
            try:
                last(self)
            finally:
                super().teardown()

    case = Ending.TestCase
    case.settings = settings(
        max_examples=share(examples),
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    case().runTest()
