"""Write notes on many topics, for tests of a daemon with many notes."""

from __future__ import annotations

TOPICS = ["heron", "compost", "gateway", "sourdough", "lighthouse", "glacier", "violin", "orchard", "turbine", "quartz"]


def notes(memex, count, *, folder="Notes", words=60):
    """Write `count` notes, each with a unique word."""
    for number in range(count):
        topic = TOPICS[number % len(TOPICS)]
        text = f"# Note {number}\n\nzq{number}x is about {topic}. " + f"The {topic} and its keeper. " * (words // 6)
        memex.write(f"{folder}/{number % 7}/Note {number}.md", text + "\n")
