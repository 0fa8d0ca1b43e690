"""Names that coding agents take for instructions are recognized in whatever spelling."""

from __future__ import annotations

import pytest

from syncd.vault.instruction_files import is_instruction_stem


@pytest.mark.parametrize(
    "stem",
    [
        *("CLAUDE", "claude", "Claude.local", "AGENTS", "Agents.Override", "AGENT", "SKILL", "GEMINI", "QWEN", "WARP"),
        *("MEMORY", "Soul", "RULES.md", "instructions", "JULES", "Identity", "HEARTBEAT", "tools", "bootstrap"),
        *("copilot-instructions", "python.instructions", "Plan.Prompt", "x.chatmode", "reviewer.agent", "llms"),
        *(
            "CLAUDE.md",
            "CLAUDE.md.MD",
            "agents.mdc",
            "ＣＬＡＵＤＥ",
            "CLA\u00adUDE",
            "AGENTS\ufe0f",
            "\u200bSKILL ",
            "opencode",
        ),
    ],
)
def test_instruction_files_are_recognized(stem):
    assert is_instruction_stem(stem)


@pytest.mark.parametrize(
    "stem",
    [
        "CLAUDE note",
        "Claude Shannon",
        "Agents of change",
        "skills",
        "prompt",
        "Memory palace",
        "House rules",
        "",
        ".md",
    ],
)
def test_other_names_are_not(stem):
    assert not is_instruction_stem(stem)
