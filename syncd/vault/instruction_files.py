"""Recognize the names of instruction files, which coding agents follow when they work in the folder of such a file.

Hidden files and folders (`.cursorrules`, `.claude/`) are not listed: no name that Memex makes begins with a dot."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from index.text.hidden_characters import remove_ignorable

# Names without extension, in lower case; the extension does not count, because programs may accept others than ".md".
_STEMS: Final = frozenset(
    {
        *("agents", "agents.override", "agents.local", "agent"),  # https://agents.md, Codex, Amp, Zed
        *("claude", "claude.local"),  # https://code.claude.com/docs/en/memory
        "skill",  # https://agentskills.io/specification
        *("gemini", "qwen", "iflow", "codebuddy"),  # Gemini CLI and programs derived from it
        "copilot-instructions",  # https://code.visualstudio.com/docs/agent-customization/custom-instructions
        *("opencode", "context"),  # OpenCode: opencode.json, and CONTEXT.md in older versions
        *("crush", "crush.local"),  # https://github.com/charmbracelet/crush
        "warp",  # https://docs.warp.dev/agents/capabilities/rules
        *("codex", "knowledge", "replit", "firebender"),  # older Codex, Codebuff, Replit, Firebender
        # https://docs.openclaw.ai/concepts/system-prompt; `memory` also https://code.claude.com/docs/en/memory
        *("soul", "identity", "user", "tools", "heartbeat", "boot", "bootstrap", "memory"),
        *("instructions", "rules", "jules"),  # older Codex; common in lists of rule files; Jules, beside AGENTS.md
        "conventions",  # https://aider.chat/docs/usage/conventions.html
        *("llms", "llms-full"),  # https://llmstxt.org
    }
)
# What precedes ".md" in the files of Copilot and Codebuff.
_ENDINGS: Final = (".instructions", ".prompt", ".chatmode", ".agent", ".knowledge")
_MARKDOWN: Final = re.compile(r"(?:\.(?:md|mdc|mdx|markdown))+\Z")


def is_instruction_stem(stem: str) -> bool:
    """Return whether a coding agent may take a file with this base name, in any extension, for instructions.

    Letter case, width and invisible characters do not count: some disks and programs ignore them."""
    plain = remove_ignorable(unicodedata.normalize("NFKC", stem)).casefold()
    plain = _MARKDOWN.sub("", plain.strip(" ."))
    return plain in _STEMS or plain.endswith(_ENDINGS)
