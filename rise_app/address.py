"""The selection, and the address that holds it: every view is a link.

The address and the session both remember what is chosen. Where they differ because somebody opened
a link or went back, the address wins; where a widget changed, the widget does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import isnan
from typing import Any, TypeVar

import streamlit as st

__all__ = [
    "chosen",
    "is_linked",
    "leave_server",
    "linked",
    "linked_many",
    "linked_number",
    "linked_page",
    "linked_switch",
    "linked_text",
    "listed",
    "page_number",
    "query_for",
    "remember",
    "split",
]

T = TypeVar("T", float, int)
V = TypeVar("V")

_STATE = "selection"
_SEEN = "address seen"
_BETWEEN = "|"
# The parts of the selection that mean something on every page.
SHARED = (
    "server",
    "experiment",
    "run",
    "environment",
    "attribute",
    "residual",
    "threshold",
    "rates",
)
# And those that mean the same on every server; all others name something that it holds.
_ON_EVERY_SERVER = frozenset(
    [
        "server",
        "residual",
        "threshold",
        "rates",
        "view",
        "layers",
        "pieces",
        "by",
        "write",
        "tab",
        "words",
        "file",
    ]
)


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
    arguments : for the widget; ``sticky`` lets the session keep a default that was chosen, and
        ``then`` is called after another choice

    Returns
    -------
    The chosen value; a value that is not among the options falls back to the default.
    """

    def read(text: str) -> str | None:
        return text if text in options else None

    return _tied(widget, label, name, default, read, str, options=options, **arguments)


def linked_many(
    widget: Any,
    label: str,
    options: Sequence[str],
    name: str,
    *,
    default: Sequence[str] = (),
    **arguments: Any,
) -> list[str]:
    """Draw a choice of several options and tie it to the address; as `linked`."""

    def read(text: str) -> list[str]:
        # A link may name one twice, or more than the widget takes; Streamlit raises on both.
        known = [option for option in split(text) if option in options]
        return known[: arguments.get("max_selections")]

    return _tied(
        widget, label, name, list(default), read, _BETWEEN.join, options=options, **arguments
    )


def linked_number(
    label: str, low: T, high: T, name: str, *, default: T, step: T, **arguments: Any
) -> T:
    """Draw a slider and tie it to the address; a number beyond its ends is moved to them."""

    def read(text: str) -> T | None:
        try:
            value = type(default)(text)
        except ValueError:
            return None
        return None if isnan(value) else min(max(value, low), high)

    def write(value: T) -> str:
        return f"{value:g}"

    ends: dict[str, Any] = {"min_value": low, "max_value": high, "step": step}
    return _tied(st.slider, label, name, default, read, write, **ends, **arguments)


def linked_text(label: str, name: str, **arguments: Any) -> str:
    """Draw a text field and tie it to the address."""
    return _tied(st.text_input, label, name, "", str, str, **arguments)


def linked_switch(label: str, name: str, **arguments: Any) -> bool:
    """Draw a toggle and tie it to the address, which mentions it only when it is on."""

    def write(on: bool) -> str:
        return "on" if on else "off"

    return _tied(st.toggle, label, name, False, {"on": True, "off": False}.get, write, **arguments)


def page_number(name: str) -> int:
    """Return the number of the page that is chosen, from 1."""
    text = chosen(name) or "1"
    return max(int(text[:9]), 1) if text.isdecimal() else 1


def linked_page(pages: int, name: str) -> int:
    """Draw the numbers of pages and tie the one that is open to the address."""
    wanted = min(page_number(name), pages)
    # It always has a default, and Streamlit warns where the session sets another value: for a page
    # that nobody clicked, as after another search, there is a new widget.
    drawn = st.session_state.setdefault(f"{name} drawn", 0)
    if st.session_state.get(f"choose {name} {drawn}", wanted) != wanted:
        drawn = st.session_state[f"{name} drawn"] = drawn + 1
    key = f"choose {name} {drawn}"

    def take() -> None:
        remember(name, str(st.session_state[key]), default="1")

    st.pagination(pages, default=wanted, key=key, on_change=take)
    remember(name, str(wanted), default="1")
    return wanted


def _tied(
    widget: Any,
    label: str,
    name: str,
    default: V,
    read: Callable[[str], V | None],
    write: Callable[[V], str],
    *,
    sticky: bool = False,
    then: Callable[[], None] | None = None,
    **arguments: Any,
) -> V:
    """Draw a widget whose value lives in the address; ``read`` and ``write`` translate it."""
    key = f"choose {name}"
    _take_in_address(name)
    text = _selection().get(name)
    found = None if text is None else read(text)
    wanted = default if found is None else found

    def keep(value: V) -> None:
        # A default is no choice, as another page, data set or attribute has its own; unless sticky.
        text = None if value == default and not sticky else write(value)
        remember(name, text, default=write(default))

    def take() -> None:
        picked = st.session_state[key]
        if picked is not None:  # a second click on a button takes the choice back: it stays
            keep(picked)
            if then is not None:
                then()

    # Set before every drawing: on another page the same key is another widget, which would begin
    # at its first option while the session still answers with the old page's value.
    st.session_state[key] = wanted
    widget(label, key=key, on_change=take, **arguments)
    keep(wanted)
    return wanted


def is_linked() -> bool:
    """Whether the address names something of a server that was not chosen on the page."""
    seen: dict[str, str | None] = st.session_state.get(_SEEN, {})
    return any(
        value != seen.get(name)
        for name, value in st.query_params.items()
        if name not in _ON_EVERY_SERVER
    )


def leave_server(*, keep_linked: bool = False) -> None:
    """Forget what is chosen of a server, where another one is meant from now on.

    Parameters
    ----------
    keep_linked : keep what the address says, which is a link to that other server
    """
    linked_names = set(st.query_params)
    for name in {*_selection(), *linked_names} - _ON_EVERY_SERVER:
        if not (keep_linked and name in linked_names):
            remember(name, None)


def listed(values: Iterable[str]) -> str:
    """Return several values as they stand in the address."""
    return _BETWEEN.join(values)


def split(text: str) -> list[str]:
    """Return the values that `listed` put together, each once."""
    return [value for value in dict.fromkeys(text.split(_BETWEEN)) if value]


def query_for(**changes: str | None) -> dict[str, str]:
    """Return the shared selection as query parameters for a link, with changes (None drops)."""
    query = {name: value for name in SHARED if (value := st.query_params.get(name))}
    query |= {name: value for name, value in changes.items() if value is not None}
    return {name: value for name, value in query.items() if changes.get(name, value) is not None}
