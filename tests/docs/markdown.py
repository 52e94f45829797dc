"""Read a Markdown file the way its reader does: blocks of code, links, headings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block, and the output shown right below it, if any."""

    language: str
    text: str
    line: int
    output: str | None


def blocks(text: str) -> list[Block]:
    fences = list(_FENCE.finditer(text))
    found = []
    for i, fence in enumerate(fences):
        after = fences[i + 1] if i + 1 < len(fences) else None
        shown = after and after[1] == "text" and not text[fence.end() : after.start()].strip()
        line = text.count("\n", 0, fence.start()) + 1
        found.append(Block(fence[1], fence[2], line, after[2] if after and shown else None))
    return found


def prose(text: str) -> str:
    return _FENCE.sub("", text)


def links(text: str) -> list[str]:
    return _LINK.findall(prose(text))


def headings(text: str) -> list[str]:
    return re.findall(r"^#+ +(.+?)\s*$", prose(text), re.MULTILINE)


def anchor(heading: str) -> str:
    """GitHub's anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def documents(root: Path) -> list[Path]:
    return [root / "README.md", *sorted((root / "docs").glob("**/*.md"))]
