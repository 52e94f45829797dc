"""The selection, and the address that holds it: every view is a link.

The address and the session both remember what is chosen. Where they differ because somebody opened
a link or went back, the address wins; where a widget changed, the widget does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import streamlit as st

__all__ = ["chosen", "linked", "query_for", "remember"]

T = TypeVar("T", str, float, int)

_STATE = "selection"
_SEEN = "address seen"
# The parts of the selection that mean something on every page.
SHARED = ("experiment", "run", "environment", "attribute", "residual", "threshold", "rates")


def _selection() -> dict[str, str]:
    return st.session_state.setdefault(_STATE, {})


def _take_in_address(name: str) -> bool:
    """Adopt a value from the address if it is news; whether it was."""
    seen: dict[str, str | None] = st.session_state.setdefault(_SEEN, {})
    current = st.query_params.get(name)
    if current is None or current == seen.get(name):
        return False
    seen[name] = current
    _selection()[name] = current
    return True


def chosen(name: str) -> str | None:
    """Return what is chosen for ``name``, as text; None when nothing is."""
    _take_in_address(name)
    return _selection().get(name)


def remember(name: str, value: str | None, *, default: str | None = None) -> None:
    """Keep a choice and write it into the address; the default leaves the address alone."""
    seen: dict[str, str | None] = st.session_state.setdefault(_SEEN, {})
    if value is None:
        _selection().pop(name, None)
    else:
        _selection()[name] = value
    shown = None if value is None or value == default else value
    seen[name] = shown
    if shown is None:
        if name in st.query_params:
            del st.query_params[name]
    elif st.query_params.get(name) != shown:
        st.query_params[name] = shown


def linked(
    widget: Any, label: str, options: Sequence[str], name: str, *, default: str, **arguments: Any
) -> str:
    """Draw a choice among options and tie it to the address.

    Parameters
    ----------
    widget : `st.selectbox`, `st.segmented_control`, or another with (label, options, key)
    options : the values, as they stand in the address; ``format_func`` makes them readable
    name : name in the address
    default : value that the address does not mention

    Returns
    -------
    The chosen value; a value that is not among the options falls back to the default.
    """
    key = f"choose {name}"
    _take_in_address(name)
    wanted = _selection().get(name, default)
    if wanted not in options:
        wanted = default

    def take() -> None:
        picked = st.session_state[key]
        if picked is not None:  # a second click on a button takes the choice back: it stays
            keep(picked)

    def keep(value: str) -> None:
        # A default is no choice: another page, data set or attribute has its own.
        remember(name, None if value == default else value)

    # Set before every drawing: on another page the same key is another widget, which would begin
    # at its first option while the session still answers with the old page's value.
    st.session_state[key] = wanted
    widget(label, options, key=key, on_change=take, **arguments)
    keep(wanted)
    return wanted


def query_for(**changes: str | None) -> dict[str, str]:
    """Return the shared selection as query parameters for a link, with changes (None drops)."""
    query = {name: value for name in SHARED if (value := st.query_params.get(name))}
    query |= {name: value for name, value in changes.items() if value is not None}
    return {name: value for name, value in query.items() if changes.get(name, value) is not None}
