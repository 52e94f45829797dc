"""Which of a run's tables is read: the likeliest, or the one that a person picks."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from rise_app import loaders
from rise_app.address import chosen, linked, remember
from rise_core.exceptions import RiseError
from rise_core.tracking import Run, Store, Table, TableRef

__all__ = ["open_table"]


def open_table(store: Store, run: Run) -> tuple[Table, str | None]:
    """Read a run's table, and draw the choice where the run has several.

    Returns
    -------
    the table, and its path where it was picked, not found

    Raises
    ------
    RiseError
        it cannot be read; the choice is drawn all the same
    """
    refs = {ref.path: ref for ref in loaders.tables_of(store, run)}
    picked = chosen("table")
    if picked is not None and picked not in refs:  # another run's
        remember("table", None)
        picked = None
    try:
        table = loaders.load_table(store, run, refs[picked] if picked is not None else None)
    except RiseError:
        _choose(refs, picked, next(iter(refs), ""))
        raise
    _choose(refs, picked, table.path, table.size)
    return table, picked


def _choose(
    refs: Mapping[str, TableRef], picked: str | None, shown: str, size: int | None = None
) -> None:
    if len(refs) < 2:
        return
    sizes = {path: ref.size for path, ref in refs.items()}
    if size is not None:  # a run may name its tables without their sizes
        sizes[shown] = size
    linked(
        st.selectbox,
        "Table",
        list(refs),
        "table",
        # Which one is likeliest is known from reading it, and not while another one is read.
        default=shown if picked is None else "",
        format_func=lambda path: _sized(path, sizes[path]),
        help="Several files of this run may hold its predictions. Kept with the columns, the "
        "choice holds for the whole experiment.",
    )


def _sized(path: str, size: int | None) -> str:
    if size is None:
        return path
    for unit in ("bytes", "kB", "MB"):
        if size < 1000 or unit == "MB":
            break
        size = round(size / 1000)
    return f"{path} ({size:,} {unit})"
