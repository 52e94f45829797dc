"""Which column is what: the guess with its reasons, and its correction, kept per experiment."""

from __future__ import annotations

from typing import Any

import streamlit as st

from rise_app.messages import as_text
from rise_core.columns import Roles, label_text
from rise_core.tracking import Run, Store, Table

__all__ = ["mapping_stamp", "roles_for", "show_mapping"]

_NONE = "(none)"
_SINGLE = {
    "y_true": "Label",
    "y_prob": "Score of the positive class",
    "environment": "Environment",
    "sample_weight": "Weight",
}


def roles_for(store: Store, run: Run, table: Table) -> Roles:
    """Return the roles that hold for a table: those kept for its experiment, else its own."""
    kept = store.kept_roles(run.experiment_id)
    if kept is None or any(name not in table.frame.columns for name in kept.columns()):
        return table.roles
    return kept


def mapping_stamp(store: Store, experiment: str) -> str:
    """Text that changes when the kept roles of an experiment do."""
    kept = store.kept_roles(experiment)
    return "" if kept is None else repr(kept.to_dict())


def show_mapping(store: Store, run: Run, table: Table, roles: Roles) -> None:
    """Show which column is what, and let it be corrected for the whole experiment."""
    kept = store.kept_roles(run.experiment_id) is not None
    origin = "kept for this experiment" if roles is not table.roles else table.roles_from
    st.text(f"{table.path}: the roles of its columns are {origin}.")
    columns = [str(name) for name in table.frame.columns]
    # A form of its own for every table, so that a change of run never carries half a choice over.
    with st.form(f"mapping {table.key}", border=False):
        changes: dict[str, Any] = {}
        for role, label in _SINGLE.items():
            current = getattr(roles, role)
            options = [_NONE, *columns]
            picked = st.selectbox(
                label,
                options,
                index=options.index(current) if current in options else 0,
                help=as_text(roles.reasons.get(role, "")) or None,
            )
            changes[role] = None if picked == _NONE else picked
        changes["sensitive_features"] = tuple(
            st.multiselect("Groups", columns, default=list(roles.sensitive_features))
        )
        changes["pos_label"] = _choose_positive(table, roles)
        keep, back = st.columns(2)
        if keep.form_submit_button("Use for this experiment", type="primary", width="stretch"):
            store.keep_roles(run.experiment_id, roles.corrected(**changes))
            st.rerun()
        if back.form_submit_button("Back to what was found", disabled=not kept, width="stretch"):
            store.keep_roles(run.experiment_id, None)
            st.rerun()


def _choose_positive(table: Table, roles: Roles) -> str | None:
    label = roles.y_true
    if label is None or label not in table.frame.columns:
        return None
    values = [label_text(value) for value in table.frame[label].dropna().unique()[:20]]
    options = list(dict.fromkeys([*([roles.pos_label] if roles.pos_label else []), *values]))
    return st.selectbox(
        "Positive class",
        options,
        index=0 if roles.pos_label else None,
        placeholder="choose one",
        help=as_text(roles.reasons.get("pos_label", "")) or None,
    )
