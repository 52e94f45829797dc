"""Messages for people. Text from outside is shown as text: as Markdown it could load images."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Mapping

import streamlit as st

from rise_core.exceptions import (
    ArtifactStoreError,
    AuthenticationError,
    RiseError,
    ServerUnreachableError,
)

__all__ = [
    "as_text",
    "is_ending",
    "is_passing",
    "problem_of",
    "show_error",
    "show_notes",
    "told_apart",
]

_log = logging.getLogger(__name__)


def as_text(words: str) -> str:
    """Return words from outside for a place that reads Markdown, such as a help or a caption."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", words)


def is_passing(error: Exception) -> bool:
    """Whether asking again may help: a server or a file store that did not answer, or a fault."""
    if isinstance(error, RiseError):
        return isinstance(error, ServerUnreachableError | ArtifactStoreError | AuthenticationError)
    return True


def problem_of(error: Exception) -> str:
    """Say what went wrong: our own errors speak for themselves, others are faults for the log."""
    if isinstance(error, RiseError):
        return str(error)
    if is_ending(error):
        return "The server ends."
    _log.error("A computation failed", exc_info=error)
    return f"RISE itself failed here ({type(error).__name__}); its log says more. Please report it."


def is_ending(error: Exception) -> bool:
    """Whether something failed because the interpreter ends, which is no fault.

    Python says so only in words: "cannot schedule new futures after interpreter shutdown", or
    "after shutdown" where a pool's own thread was told first, "can't create new thread at
    interpreter shutdown".
    """
    return isinstance(error, RuntimeError) and "shutdown" in str(error)


def told_apart(names: Mapping[str, str]) -> dict[str, str]:
    """Return names by id, no two alike: one that occurs twice is followed by its id."""
    times = Counter(names.values())
    return {key: name if times[name] == 1 else f"{name} ({key[:8]})" for key, name in names.items()}


def show_error(heading: str, error: RiseError | str) -> None:
    """Say what failed, why, and how to mend it.

    ``heading`` is the app's own words; a name from outside goes into it through `as_text`.
    """
    with st.container(border=True):
        st.markdown(f"**:red[{heading}]**")
        st.text(str(error))


def show_notes(notes: tuple[str, ...]) -> None:
    """Show remarks on a table, one a line."""
    for note in notes:
        st.text(f"ⓘ {note}")
