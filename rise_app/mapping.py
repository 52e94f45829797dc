"""Which column is what: the guess with its reasons, and its correction, kept per experiment."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import pandas as pd
import streamlit as st

from rise_app.address import query_for
from rise_app.cards import facts_html
from rise_app.messages import as_text
from rise_app.questions import SCALES, classes_of
from rise_core import Factor
from rise_core.binning import (
    MANY_NUMBERS,
    edges_text,
    into_bands,
    is_numeric,
    nice_edges,
    parse_edges,
)
from rise_core.columns import (
    ROLE_WORDS,
    Roles,
    Scale,
    for_class,
    guess_pos_label,
    guess_roles,
)
from rise_core.exceptions import RiseError
from rise_core.tracking import Run, Store, Table

__all__ = [
    "edit_roles",
    "keep_roles",
    "link_to_columns",
    "mapping_stamp",
    "roles_for",
    "show_mapping",
    "show_reasons",
]

_NONE = "(none)"
_FIELD = 290
_MOST_LISTED = 12
_MOST_CROSSED = 6  # of more groups than this, pairs only are offered
_SINGLE = {
    "y_true": "Label",
    "y_prob": "Score of the positive class",
    "environment": "Environment column",
    "sample_weight": "Weight",
}


def roles_for(store: Store, run: Run, table: Table) -> Roles:
    """Return the roles that hold for a table: those kept for its experiment, else its own."""
    kept = store.kept_roles(run.experiment_id)
    if kept is not None and all(name in table.frame.columns for name in kept.columns()):
        return kept
    if table.roles_from == "experiment":  # kept when it was loaded, and no longer
        return _guessed(table.key, table)
    return table.roles


@st.cache_resource(max_entries=64, show_spinner=False)
def _guessed(key: str, _table: Table) -> Roles:
    return guess_roles(_table.frame)


def mapping_stamp(store: Store, experiment: str) -> str:
    """Text that changes when the kept roles of an experiment do."""
    kept = store.kept_roles(experiment)
    return "" if kept is None else repr(kept.to_dict())


def keep_roles(store: Store, run: Run, picked: str | None, roles: Roles) -> None:
    """Keep roles for the whole experiment, and with them a table that was picked."""
    store.keep_roles(run.experiment_id, replace(roles, table=picked or roles.table))


def link_to_columns(run_id: str, name: str) -> None:
    """Link to the place where a run's columns, class and scores are said, for the experiment."""
    st.page_link(
        "pages/diagnose.py",
        label=f"Look at {as_text(name)} on Diagnose",
        icon=":material/view_column:",
        help="What its columns are is said there once, for all runs of the experiment.",
        query_params={**query_for(run=run_id), "tab": "Columns"},
    )


@st.fragment
def show_mapping(
    store: Store, run: Run, table: Table, roles: Roles, picked: str | None = None
) -> None:
    """Show which column is what, and let it be corrected for the whole experiment.

    Parameters
    ----------
    store, run, table, roles : what was read, and by which roles
    picked : path of the table where a person picked it among several; kept with the roles
    """
    kept = store.kept_roles(run.experiment_id)
    origin = "guessed" if table.roles_from == "experiment" else table.roles_from
    if roles == kept:
        origin = "kept for this experiment"
    st.text(f"{table.path}: the roles of its columns are {origin}.")
    show_reasons(roles)
    edited = edit_roles(table, roles)
    with st.container(horizontal=True):
        keep = st.button("Use for this experiment", type="primary")
        back = st.button("Back to what was found", disabled=kept is None)
    if picked is not None and (kept is None or kept.table != picked):
        st.caption(f"{as_text(picked)} is then read from every run that has it.")
    if keep and edited is not None:
        keep_roles(store, run, picked, edited)
        st.rerun()
    if back:
        store.keep_roles(run.experiment_id, None)
        st.rerun()


def edit_roles(table: Table, roles: Roles) -> Roles | None:
    """Draw the fields in which roles are corrected, and return what they say.

    Parameters
    ----------
    table : whose columns they are
    roles : what the fields hold at first

    Returns
    -------
    the roles; None while something that was typed cannot be meant, which is said beside it
    """
    # Fields of their own for every table and its roles: a change of run, or a step back, never
    # carries half a choice over.
    key = f"map {table.key} {zlib.crc32(repr(roles.to_dict()).encode()):x}"
    with st.container(horizontal=True):
        picked = _columns(table, roles, key)
        groups = _groups(table, roles, key)
    bins = _bands(table, roles, groups, key)
    crossed = _crossings(table, roles, groups, bins, key)
    if bins is None:
        return None
    picked |= {"sensitive_features": groups, "bins": bins, "intersections": crossed}
    changes = {role: value for role, value in picked.items() if value != getattr(roles, role)}
    label = changes.get("pos_label")
    if label is not None and changes.keys().isdisjoint({"y_prob", "y_true"}):
        own = for_class(table.frame.columns, roles, label).y_prob
        changes |= {"y_prob": own} if own != roles.y_prob else {}
    return roles.corrected(**changes) if changes else roles


# ------------------------------------------------------------------------ columns and classes


def _columns(table: Table, roles: Roles, key: str) -> dict[str, Any]:
    columns = [str(name) for name in table.frame.columns]
    picked: dict[str, Any] = {}
    for role, label in _SINGLE.items():
        options = [_NONE, *columns]
        current = getattr(roles, role)
        name = st.selectbox(
            label,
            options,
            index=options.index(current) if current in options else 0,
            key=f"{key} {role}",
            help=as_text(roles.reasons.get(role, "")) or None,
            width=_FIELD,
        )
        picked[role] = None if name == _NONE else name
        if role == "y_true":
            picked["pos_label"] = _positive(table, roles, picked["y_true"], key)
        if role == "y_prob":
            picked |= _scale(table, roles, picked, key)
    return picked


def _positive(table: Table, roles: Roles, label: str | None, key: str) -> str | None:
    if label is None:
        return None
    classes = classes_of(table.frame[label])
    known = roles.pos_label if label == roles.y_true else guess_pos_label(classes)[0]
    options = list(dict.fromkeys([*([known] if known else []), *classes]))
    return st.selectbox(
        "Positive class",
        options,
        index=0 if known else None,
        key=f"{key} class of {label}",
        placeholder="choose one",
        help=as_text(roles.reasons.get("pos_label", "")) or None,
        width=_FIELD,
    )


def _scale(table: Table, roles: Roles, picked: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Ask what the scores are: naming it by hand is a yes to the conversion."""
    score = picked["y_prob"]
    if score is None:
        return {}
    found = roles.scale if score == roles.y_prob else _scale_of(table, picked["y_true"], score)
    options = list(SCALES)
    shown = found if found in SCALES else options[0]
    named: Scale = st.selectbox(
        "The scores are",
        options,
        index=options.index(shown),
        key=f"{key} scale of {score}",
        format_func=SCALES.__getitem__,
        width=_FIELD,
    )
    if named != shown:
        return {"scale": named, "convert": named != "probability"}
    return {"scale": found, "convert": roles.convert and score == roles.y_prob}


def _scale_of(table: Table, label: str | None, score: str) -> Scale:
    """What another column holds: what was known of the one before says nothing of it."""
    pair = [name for name in dict.fromkeys([label, score]) if name is not None]
    found = guess_roles(table.frame[pair])
    return found.scale if found.y_prob == score else "probability"


# ------------------------------------------------------------------------------------ groups


def _groups(table: Table, roles: Roles, key: str) -> tuple[str, ...]:
    columns = [str(name) for name in table.frame.columns]
    known = [(name, roles.reasons.get(name, "")) for name in roles.sensitive_features]
    return tuple(
        st.multiselect(
            "Groups",
            columns,
            default=[name for name in roles.sensitive_features if name in columns],
            key=f"{key} groups",
            help=as_text("; ".join(f"{name}: {why}" for name, why in known if why)) or None,
            width=2 * _FIELD,
        )
    )


def _bands(
    table: Table, roles: Roles, groups: Sequence[str], key: str
) -> dict[str, tuple[float, ...]] | None:
    """Ask for the edges of numeric groups, and show what they make; None where one is wrong."""
    bins = dict(roles.bins)  # those of a column that is not chosen now are not forgotten
    wrong = False
    for name in groups:
        column = table.frame[name]
        if not len(column) or (name not in roles.bins and not is_numeric(column)):
            continue
        edges, shown = st.columns([1, 2], vertical_alignment="bottom")
        with edges:
            text = st.text_input(
                f"Edges of {as_text(name)}",
                value=edges_text(roles.bins.get(name) or _proposed(column)),
                key=f"{key} edges of {name}",
                placeholder="none: each number is a group",
                help="Rising numbers, such as 30, 45, 60. A number on an edge lies above it.",
            )
        bins.pop(name, None)
        try:
            if text.strip():
                bins[name] = parse_edges(text, name)
            factor = _factor(table, name, bins)
        except RiseError as error:
            wrong = True
            with shown:
                st.markdown(f":red[{as_text(str(error))}]")
        else:
            with shown:
                st.html(facts_html(_counted(factor)))
    return None if wrong else bins


def _proposed(column: pd.Series) -> tuple[float, ...]:
    present = column.dropna()
    return nice_edges(present) if present.nunique() > MANY_NUMBERS else ()


def _factor(table: Table, name: str, bins: Mapping[str, tuple[float, ...]]) -> Factor:
    column = table.frame[name]
    return Factor.from_values(
        into_bands(column, bins[name], name) if name in bins else column, name
    )


def _counted(factor: Factor) -> dict[str, str]:
    """Every group with its rows in the table."""
    rows = [(label, f"{n:,}") for label, n in zip(factor.labels, factor.counts, strict=True)]
    more = len(rows) - _MOST_LISTED
    return dict(rows if more <= 0 else [*rows[:_MOST_LISTED], ("and more groups:", f"{more:,}")])


def _crossings(
    table: Table,
    roles: Roles,
    groups: Sequence[str],
    bins: Mapping[str, tuple[float, ...]] | None,
    key: str,
) -> tuple[tuple[str, ...], ...]:
    """Ask which groups are crossed, and show how small that makes them."""
    if len(groups) < 2:
        return ()
    kept = [names for names in roles.intersections if set(names) <= set(groups)]
    sizes = (2, 3) if len(groups) <= _MOST_CROSSED else (2,)
    offered = [names for size in sizes for names in combinations(groups, size)]
    options = {" × ".join(names): names for names in [*kept, *offered]}
    name = f"{key} crossings"
    if name in st.session_state:  # a group that is no longer chosen takes its crossings along
        st.session_state[name] = [o for o in st.session_state[name] if o in options]
    picked = st.multiselect(
        "Intersections",
        list(options),
        default=None if name in st.session_state else [" × ".join(names) for names in kept],
        key=name,
        placeholder="none",
        help="Each combination that occurs becomes a group of its own.",
        width=2 * _FIELD,
    )
    if bins is not None and len(table.frame):
        for option in picked:
            st.caption(as_text(f"{option}: {_sizes(table, options[option], bins)}"))
    return tuple(options[option] for option in picked)


def _sizes(table: Table, names: Sequence[str], bins: Mapping[str, tuple[float, ...]]) -> str:
    try:
        parts = {name: _factor(table, name, bins).codes for name in names}
    except RiseError as error:
        return str(error)
    counts = pd.DataFrame(parts).value_counts()
    return f"{len(counts):,} groups of {counts.min():,} to {counts.max():,} rows"


# ----------------------------------------------------------------------------------- reasons


def show_reasons(roles: Roles) -> None:
    """Show which column plays which role, and why."""
    rows = []
    for role, word in ROLE_WORDS.items():
        if role == "sensitive_features":
            rows += [_reason(roles, word, _with_edges(roles, name), name)
                     for name in roles.sensitive_features]  # fmt: skip
        elif getattr(roles, role) is not None or role in ("y_true", "y_prob", "pos_label"):
            rows.append(_reason(roles, word, getattr(roles, role), role))
        if role == "y_prob" and roles.scale in SCALES and roles.scale != "probability":
            rows.append(_scale_reason(roles))
    rows += [_reason(roles, "intersection", " × ".join(names), "intersections")
             for names in roles.intersections]  # fmt: skip
    st.dataframe(
        rows,
        hide_index=True,
        alt="Which column is what, and why.",
        column_config={"why": st.column_config.TextColumn("why")},
    )


def _scale_reason(roles: Roles) -> dict[str, str]:
    row = _reason(roles, "the scores are", SCALES[roles.scale], "scale")
    if roles.scale == "decision":
        return row | {"why": "analysed as scores 0 and 1"}
    said = "converted: somebody agreed" if roles.convert else "not converted: nobody has agreed"
    return row | {"why": said}


def _with_edges(roles: Roles, name: str) -> str:
    edges = roles.bins.get(name)
    return f"{name}, cut at {edges_text(edges)}" if edges else name


def _reason(roles: Roles, word: str, name: str | None, key: str) -> dict[str, str]:
    general = "" if key in ("scale", "intersections") else roles.reasons.get("sensitive_features")
    return {
        "role": word,
        "is": "–" if name is None else name,
        "why": roles.reasons.get(key, general or ""),
        "sure": roles.confidence.get(key, ""),
    }
