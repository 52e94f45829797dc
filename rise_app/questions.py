"""What a person must say before a table can be evaluated: which class, and whether to convert."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from rise_app.messages import as_text
from rise_core.columns import Roles, Scale, for_class, label_text, recognised_scale
from rise_core.tracking import Table

__all__ = ["SCALES", "classes_of", "is_open", "show_question"]

SCALES: dict[Scale, str] = {
    "probability": "probabilities, 0 to 1",
    "percent": "percent, 0 to 100",
    "logit": "logits (log odds)",
    "decision": "hard decisions",
}
"""What a score column may hold, in words."""
_CONVERSIONS: dict[Scale, str] = {
    "percent": "Divide by 100",
    "logit": "Make probabilities of them",
    "decision": "Take them as scores 0 and 1",
}
MOST_CLASSES = 20


def is_open(table: Table, roles: Roles, *, hard: bool = False) -> bool:
    """Whether something must be said before the table can be evaluated; ``hard`` as below."""
    return bool(_classes_to_choose_from(table, roles) or _scale_to_agree_to(table, roles, hard))


def show_question(
    table: Table,
    roles: Roles,
    answer: Callable[[Roles], None],
    *,
    hard: bool = False,
    scope: str = "",
) -> None:
    """Ask what is open; nothing is chosen and nothing converted without a yes.

    Parameters
    ----------
    table, roles : the table, and what is known of it
    answer : takes the roles with the answer in them; then the page is drawn anew
    hard : ask too whether hard decisions may be taken as scores
    scope : what else the answer holds for, as a sentence
    """
    classes = _classes_to_choose_from(table, roles)
    with st.container(border=True):
        if classes:
            _ask_class(table, roles, classes, answer, scope)
        elif (scale := _scale_to_agree_to(table, roles, hard)) is not None:
            _ask_conversion(roles, scale, answer, scope)


def _ask_class(
    table: Table,
    roles: Roles,
    classes: Sequence[str],
    answer: Callable[[Roles], None],
    scope: str,
) -> None:
    st.text(f"Which class of {roles.y_true!r} is the score for?")
    against = "It is held against all others." if len(classes) > 2 else ""
    if against or scope:
        st.caption(f"{against} {scope}".strip())
    with st.container(horizontal=True):
        for place, name in enumerate(classes):
            if st.button(as_text(name), key=f"class {table.key} {place}", type="primary"):
                answer(for_class(table.frame.columns, roles, name))
                st.rerun()


def _ask_conversion(
    roles: Roles, scale: Scale, answer: Callable[[Roles], None], scope: str
) -> None:
    why = roles.reasons.get("y_prob", "") if scale == roles.scale else "they do not lie in [0, 1]"
    st.text(f"The scores in {roles.y_prob!r} look like {SCALES[scale]}: {why}.")
    st.caption(f"If they are something else, say so below. {scope}".strip())
    if st.button(_CONVERSIONS[scale], type="primary"):
        answer(roles.corrected(scale=scale, convert=True))
        st.rerun()


def _scale_to_agree_to(table: Table, roles: Roles, hard: bool) -> Scale | None:
    if roles.scale == "decision":
        return "decision" if hard and not roles.convert else None
    return recognised_scale(table.frame, roles)


def _classes_to_choose_from(table: Table, roles: Roles) -> list[str]:
    """Return the classes of a label that does not tell which is the positive one; else nothing."""
    label, frame = roles.y_true, table.frame
    if roles.pos_label is not None or label not in frame.columns:
        return []
    classes = classes_of(frame[label])
    return sorted(classes) if 2 <= len(classes) <= MOST_CLASSES else []


def classes_of(labels: Any) -> list[str]:
    """Return the first distinct labels of a column as text, one more than can be asked about."""
    try:
        distinct = labels.dropna().unique()[: MOST_CLASSES + 1]
    except TypeError:  # lists, and other things that are no labels
        return []
    return list(dict.fromkeys(map(label_text, distinct)))
