"""Which column is what: the guess with its reasons, and its correction, kept per experiment."""

from __future__ import annotations

from typing import Any

import streamlit as st

from rise_app.messages import as_text
from rise_core.columns import (
    ROLE_WORDS,
    Roles,
    Scale,
    guess_pos_label,
    guess_roles,
    label_text,
)
from rise_core.tracking import Run, Store, Table

__all__ = ["SCALES", "edit_roles", "mapping_stamp", "roles_for", "show_mapping", "show_reasons"]

_NONE = "(none)"
_FIELD = 290
SCALES: dict[Scale, str] = {
    "probability": "probabilities, 0 to 1",
    "percent": "percent, 0 to 100",
    "logit": "logits (log odds)",
    "decision": "hard decisions",
}
"""What a score column may hold, in words."""
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
    # A form of its own for every table, so that a change of run never carries half a choice over.
    with st.form(f"mapping {table.key}", border=False):
        edited = edit_roles(table, roles)
        keep, back = st.columns(2)
        if keep.form_submit_button("Use for this experiment", type="primary", width="stretch"):
            store.keep_roles(run.experiment_id, edited)
            st.rerun()
        if back.form_submit_button("Back to what was found", disabled=not kept, width="stretch"):
            store.keep_roles(run.experiment_id, None)
            st.rerun()


def edit_roles(table: Table, roles: Roles, *, with_scale: bool = False) -> Roles:
    """Draw the fields of a form in which roles are corrected, and return what they say.

    Parameters
    ----------
    table : whose columns they are
    roles : what the fields hold at first
    with_scale : ask what the scores are, where they can be converted
    """
    with st.container(horizontal=True):
        picked = _fields(table, roles, with_scale)
    changes = {role: value for role, value in picked.items() if value != getattr(roles, role)}
    return _of_other_columns(table, roles, changes)


def _fields(table: Table, roles: Roles, with_scale: bool) -> dict[str, Any]:
    columns = [str(name) for name in table.frame.columns]
    picked: dict[str, Any] = {}
    for role, label in _SINGLE.items():
        options = [_NONE, *columns]
        current = getattr(roles, role)
        name = st.selectbox(
            label,
            options,
            index=options.index(current) if current in options else 0,
            help=as_text(roles.reasons.get(role, "")) or None,
            width=_FIELD,
        )
        picked[role] = None if name == _NONE else name
        if role == "y_prob" and with_scale:
            picked["scale"] = st.selectbox(
                "The scores are",
                list(SCALES),
                index=list(SCALES).index(roles.scale) if roles.scale in SCALES else 0,
                format_func=SCALES.__getitem__,
                width=_FIELD,
            )
    groups = [name for name in roles.sensitive_features if name in columns]
    picked["sensitive_features"] = tuple(
        st.multiselect("Groups", columns, default=groups, help=_group_reasons(roles), width=_FIELD)
    )
    picked["pos_label"] = _choose_positive(table, roles)
    return picked


def _of_other_columns(table: Table, roles: Roles, changes: dict[str, Any]) -> Roles:
    """Apply changes; what was known of a column does not hold for the one that replaces it."""
    frame = table.frame
    if changes.get("y_true") is not None:
        changes["pos_label"] = guess_pos_label(frame[changes["y_true"]].dropna().unique()[:20])[0]
    if changes.get("y_prob") is not None and "scale" not in changes:
        pair = dict.fromkeys([changes.get("y_true", roles.y_true), changes["y_prob"]])
        found = guess_roles(frame[[name for name in pair if name in frame.columns]])
        changes["scale"] = found.scale if found.y_prob == changes["y_prob"] else "probability"
    return roles.corrected(**changes) if changes else roles


def _group_reasons(roles: Roles) -> str | None:
    known = [(name, roles.reasons.get(name, "")) for name in roles.sensitive_features]
    return as_text("; ".join(f"{name}: {why}" for name, why in known if why)) or None


def show_reasons(roles: Roles) -> None:
    """Show which column plays which role, and why."""
    rows = []
    for role, word in ROLE_WORDS.items():
        if role == "sensitive_features":
            rows += [_reason(roles, word, name, name) for name in roles.sensitive_features]
        elif getattr(roles, role) is not None or role in ("y_true", "y_prob", "pos_label"):
            rows.append(_reason(roles, word, getattr(roles, role), role))
    st.dataframe(
        rows,
        hide_index=True,
        alt="Which column is what, and why.",
        column_config={"why": st.column_config.TextColumn("why")},
    )


def _reason(roles: Roles, word: str, name: str | None, key: str) -> dict[str, str]:
    why = roles.reasons.get(key, roles.reasons.get("sensitive_features", ""))
    return {
        "role": word,
        "is": "–" if name is None else name,
        "why": why,
        "sure": roles.confidence.get(key, ""),
    }


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
        width=_FIELD,
    )
