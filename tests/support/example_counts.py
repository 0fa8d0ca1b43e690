"""Count the examples of a property test: the stated number in `make test-all`, a share of it in `make test`."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

LEAST = 5  # a property that states more is tried on so many in any profile
# Of hundred examples, which is what a property has that states no number. As before, the same ones each time.
settings.register_profile("ci", settings.get_profile("ci"), max_examples=20)
# An example of a busy machine takes longer than 200 ms, the limit of the library; the profile ci has none.
settings.register_profile("default", settings.get_profile("default"), deadline=None)


def share(count: int) -> int:
    """Return how many of `count` examples the profile tries."""
    return max(min(count, LEAST), count * settings.default.max_examples // 100)


def examples(count: int, **more: Any) -> settings:
    """Return the settings of a property that is tried on `count` examples."""
    return settings(max_examples=share(count), deadline=None, **more)
