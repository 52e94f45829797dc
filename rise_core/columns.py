"""Which column of a table plays which role: guessed from names and content, each with a reason.

A guess is a proposal: it is shown with its reason, can be corrected, and where the content does
not decide (which of "coat" and "top" is the positive class?) it stays open instead of being made.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Literal, cast

import numpy as np
import pandas as pd

from rise_core.binning import checked_edges, edges_text, nice_edges
from rise_core.exceptions import ColumnError

__all__ = [
    "Confidence",
    "Roles",
    "Scale",
    "as_probabilities",
    "for_class",
    "guess_pos_label",
    "guess_roles",
    "label_text",
    "missing_column",
    "one_against_rest",
    "recognised_scale",
    "to_probabilities",
]

Confidence = Literal["high", "medium", "low"]
Scale = Literal["probability", "percent", "logit", "decision", "unknown"]

# Names in the order in which they win. They come from scikit-learn, Fairlearn, mlflow.evaluate,
# DomainBed and plain habit; all are compared after `_plain`.
_LABEL_NAMES = (
    "y_true", "true_label", "label", "target", "ground_truth", "labels", "targets", "true_class",
    "true_labels", "truth", "gold", "gold_label", "gt", "actual", "actuals", "actual_label", "y",
    "y_test", "outcome", "observed", "class", "class_label",
)  # fmt: skip
_SCORE_NAMES = (
    "y_prob", "y_proba", "y_score", "prediction_score", "predicted_probability",
    "predicted_probabilities", "probability", "probabilities", "proba", "prob", "score", "scores",
    "pred_prob", "pred_proba", "pred_score", "y_pred_proba", "y_pred_prob", "y_scores", "y_probs",
    "predict_proba", "positive_probability", "prob_1", "proba_1", "probability_1", "score_1",
    "prob_positive", "p", "p1", "p_1", "p_hat", "y_hat", "risk_score", "risk", "confidence",
)  # fmt: skip
_LOGIT_NAMES = (
    "logit", "logits", "decision_function", "margin", "raw_score", "log_odds",
)  # fmt: skip
_DECISION_NAMES = (
    "y_pred", "predicted_label", "prediction", "predictions", "pred", "preds", "predicted",
    "predicted_class", "pred_label", "decision", "outputs", "output",
)  # fmt: skip
_SENSITIVE_NAMES = (
    "sensitive_features", "sensitive_feature", "sensitive", "sensitive_attribute", "protected",
    "protected_attribute", "group", "sex", "gender", "race", "ethnicity", "ethnic_group", "age",
    "age_band", "age_group", "skin_tone", "skin_type", "religion", "nationality", "disability",
    "marital_status", "language", "weather", "ink", "ink_colour", "ink_color", "a", "attribute",
)  # fmt: skip
_ENVIRONMENT_NAMES = (
    "environment", "env", "test_env", "domain", "site", "hospital", "centre", "center", "source",
    "location", "region", "country", "time_of_day", "timeofday", "season", "year", "period",
)  # fmt: skip
_WEIGHT_NAMES = ("sample_weight", "sample_weights", "weight", "weights", "w", "importance_weight")
_ROW_NAMES = (
    "row_id", "id", "index", "row", "sample_id", "example_id", "image_id", "uuid", "guid", "key",
    "filename", "file_name", "path", "image_path", "unnamed_0", "level_0",
)  # fmt: skip
_CLUSTER_NAMES = (
    "cluster", "cluster_id", "patient", "patient_id", "person_id", "user_id", "subject",
    "subject_id", "household", "household_id", "group_id",
)  # fmt: skip
_SPLIT_NAMES = ("split", "fold", "subset", "partition", "phase")
_RESULT_NAMES = ("correct", "is_correct", "error", "is_error", "residual", "loss", "hit")

_MAX_GROUPS = 20
"""More distinct values than this make a column no group column of its own accord."""
_HAIR = 0.01
_SAMPLE = 2_000
"""Distinct values are counted on this many rows first; a guess must not cost more than a read."""

_NEGATIVE_TO_POSITIVE = {
    "0": "1", "0.0": "1.0", "-1": "1", "false": "true", "no": "yes", "n": "y", "f": "t",
    "neg": "pos",
    "negative": "positive", "absent": "present", "off": "on", "bad": "good", "fail": "pass",
    "failed": "passed", "rejected": "accepted", "denied": "approved", "refused": "granted",
    "benign": "malignant", "ham": "spam", "control": "case", "low": "high", "healthy": "sick",
}  # fmt: skip
_SURE_PAIRS = frozenset({"0", "0.0", "-1", "false", "no", "n", "neg", "negative", "absent"})

SCALE_WORDS: Mapping[str, str] = {"percent": "percent", "logit": "logits"}
"""What scores are called that can be converted."""

ROLE_WORDS: Mapping[str, str] = {
    "y_true": "label",
    "y_prob": "score",
    "sensitive_features": "sensitive feature",
    "environment": "environment",
    "sample_weight": "weight",
    "cluster": "cluster",
    "row_id": "row id",
    "pos_label": "positive class",
}
"""What each role is called when a person reads it."""


@dataclass(frozen=True)
class Roles:
    """Which column is what, and why.

    Parameters
    ----------
    y_true, y_prob : column of the label and of the score; None where none was found
    sensitive_features : columns that split the rows into groups
    environment, sample_weight, cluster, row_id : further columns, or None
    pos_label : text of the positive class (see `label_text`); None means "ask"
    scale : what the score column holds as it came: "probability" (in [0, 1]), "percent",
        "logit", "decision" (hard predictions) or "unknown". Percent and logits are converted only
        where `convert` says so.
    reasons : why, in plain words, by role; for the sensitive features by column name too
    confidence : "high", "medium" or "low", with the same keys
    bins : column to the inner edges, ascending, at which its numbers are cut into bands, see
        `rise_core.binning`; those of a column that is no sensitive feature rest unused
    intersections : sensitive features that are crossed, each crossing a further feature
    convert : whether a person has agreed to convert scores of that scale
    table : path of the table in its run, where a person picked one of several

    Raises
    ------
    ColumnError
        edges that do not rise, or a crossing of fewer than two columns.
    """

    y_true: str | None = None
    y_prob: str | None = None
    sensitive_features: tuple[str, ...] = ()
    environment: str | None = None
    sample_weight: str | None = None
    cluster: str | None = None
    row_id: str | None = None
    pos_label: str | None = None
    scale: Scale = "probability"
    reasons: Mapping[str, str] = field(default_factory=dict)
    confidence: Mapping[str, Confidence] = field(default_factory=dict)
    bins: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    intersections: tuple[tuple[str, ...], ...] = ()
    convert: bool = False
    table: str | None = None

    def __post_init__(self) -> None:
        """Refuse bands and crossings that cannot be meant."""
        if self.bins:
            edges = {name: checked_edges(edges, name) for name, edges in self.bins.items()}
            object.__setattr__(self, "bins", edges)
        for names in self.intersections:
            if len(names) < 2 or len(set(names)) < len(names):
                raise ColumnError(
                    f"An intersection needs two or more different columns; came {list(names)}."
                )

    @property
    def unconverted(self) -> bool:
        """Whether the scores are percent or logits, and nobody has agreed to convert them."""
        return self.scale in ("percent", "logit") and not self.convert

    @property
    def missing(self) -> tuple[str, ...]:
        """The needed roles no column plays yet: of y_true, y_prob, sensitive_features."""
        needed = ("y_true", "y_prob", "sensitive_features")
        return tuple(role for role in needed if not getattr(self, role))

    @property
    def complete(self) -> bool:
        """Whether label, score and at least one sensitive feature are known."""
        return not self.missing

    def column(self, role: str) -> str:
        """Name of the column that plays `role` ("y_true", "y_prob", "environment", …).

        Raises
        ------
        ColumnError
            when no column plays it; the text is the reason given by the guess.
        """
        name = getattr(self, role)
        if not isinstance(name, str):
            word = ROLE_WORDS.get(role, role)
            why = self.reasons.get(role, "")
            raise ColumnError(
                f"No column is set as the {word}. {why}".strip() + " Choose the column by hand."
            )
        return name

    def columns(self) -> tuple[str, ...]:
        """Every column in use, each once, in the order of the roles."""
        singles = (self.y_true, self.y_prob, *self.sensitive_features, self.environment,
                   self.sample_weight, self.cluster, self.row_id)  # fmt: skip
        return tuple(dict.fromkeys(name for name in singles if name is not None))

    def check(self, columns: Iterable[str]) -> Roles:
        """Return self when label, score and groups are set and every column is in the table.

        Raises
        ------
        ColumnError
            for the first role that is not set, or whose column is not in the table.
        """
        self.column("y_true")
        self.column("y_prob")
        if not self.sensitive_features:
            why = self.reasons.get("sensitive_features", "")
            raise ColumnError(
                f"No column is set as a sensitive feature. {why}".strip()
                + " Choose at least one column that splits the rows into groups."
            )
        names = [str(name) for name in columns]
        for name in self.columns():
            if name not in names:
                raise missing_column(name, names)
        for crossed in self.intersections:
            if lacking := [name for name in crossed if name not in self.sensitive_features]:
                raise ColumnError(
                    f"The intersection {' × '.join(crossed)} needs {lacking[0]!r} among the "
                    "sensitive features. Choose it there, or leave the intersection out."
                )
        return self

    def corrected(self, **changes: Any) -> Roles:
        """Return a copy with some roles set by hand; their reason becomes "chosen by hand"."""
        by_hand = [*changes]
        for name, edges in dict(changes.get("bins") or {}).items():
            by_hand += [name] * (tuple(edges) != self.bins.get(name))
        reasons = dict(self.reasons) | dict.fromkeys(by_hand, "chosen by hand")
        confidence: dict[str, Confidence] = dict(self.confidence)
        confidence.update(dict.fromkeys(by_hand, "high"))
        return replace(self, **(changes | {"reasons": reasons, "confidence": confidence}))

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form, read back by `from_dict`; what a person adds is there when added."""
        added = {
            "bins": {name: list(edges) for name, edges in self.bins.items()},
            "intersections": [list(names) for names in self.intersections],
            "convert": self.convert,
            "table": self.table,
        }
        return {
            "y_true": self.y_true,
            "y_prob": self.y_prob,
            "sensitive_features": list(self.sensitive_features),
            "environment": self.environment,
            "sample_weight": self.sample_weight,
            "cluster": self.cluster,
            "row_id": self.row_id,
            "pos_label": self.pos_label,
            "scale": self.scale,
            "reasons": dict(self.reasons),
            "confidence": dict(self.confidence),
            **{name: value for name, value in added.items() if value},
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Roles:
        """Read what `to_dict` wrote, from foreign hands too.

        Raises
        ------
        ColumnError
            when a role is not the name of a column (a text, or a list of texts for the groups), or
            edges are no rising numbers.
        """
        if not isinstance(value, Mapping):
            raise ColumnError(
                f"Column roles must be a JSON object such as {{'y_true': 'label'}}, "
                f"not {type(value).__name__}."
            )
        known: dict[str, Any] = {}
        for role in ("y_true", "y_prob", "environment", "sample_weight", "cluster", "row_id",
                     "pos_label", "table"):  # fmt: skip
            name = value.get(role)
            if name is not None and not isinstance(name, str):
                raise ColumnError(
                    f"The role {role!r} must be a text or null, not {type(name).__name__}."
                )
            known[role] = name
        groups = value.get("sensitive_features") or ()
        groups = _names((groups,) if isinstance(groups, str) else groups, "sensitive_features")
        bins, crossed = value.get("bins") or {}, value.get("intersections") or ()
        if not isinstance(bins, Mapping):
            raise ColumnError("'bins' must be an object such as {'age': [30, 45, 60]}.")
        if not isinstance(crossed, list | tuple):
            raise ColumnError("'intersections' must be a list such as [['sex', 'age']].")
        scale = value.get("scale", "probability")
        if scale not in ("probability", "percent", "logit", "decision", "unknown"):
            scale = "unknown"
        return cls(
            **known,
            sensitive_features=groups,
            scale=cast(Scale, scale),
            reasons={str(k): str(v) for k, v in dict(value.get("reasons") or {}).items()},
            confidence={
                str(k): cast(Confidence, v)
                for k, v in dict(value.get("confidence") or {}).items()
                if v in ("high", "medium", "low")
            },
            bins={str(name): edges for name, edges in bins.items()},
            intersections=tuple(_names(names, "intersections") for names in crossed),
            convert=value.get("convert") is True,
        )


def _names(value: Any, role: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ColumnError(f"{role!r} must be a list of column names; came {value!r}.")
    return tuple(value)


def missing_column(name: str, columns: Iterable[object]) -> ColumnError:
    """Return the error for a column that is not there, naming the nearest one that is."""
    names = [str(column) for column in columns]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if not near:
        lower = {column.lower(): column for column in names}
        near = [
            lower[match]
            for match in difflib.get_close_matches(name.lower(), list(lower), n=1, cutoff=0.6)
        ]
    if near:
        return ColumnError(f"column {name!r} not found. Did you mean {near[0]!r}?")
    shown = ", ".join(repr(column) for column in names[:12])
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return ColumnError(f"column {name!r} not found. The table has {shown or 'no columns'}{more}.")


def label_text(value: object) -> str:
    """Text of one label or group value, the same however it was stored.

    >>> label_text(1), label_text(1.0), label_text(True), label_text(" yes")
    ('1', '1', 'True', ' yes')
    """
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def guess_pos_label(labels: Iterable[object]) -> tuple[str | None, str]:
    """Guess which of two labels is the positive class.

    Parameters
    ----------
    labels : the distinct labels, missing ones left out

    Returns
    -------
    text of the positive label, or None when a person must be asked; and the reason.

    >>> guess_pos_label(["<=50K", ">50K"])[0]
    '>50K'
    >>> guess_pos_label(["coat", "top"])
    (None, "'coat' or 'top': nothing in the names says which class the score is for")
    """
    texts = sorted({label_text(label) for label in labels})
    if len(texts) == 1:
        alone = texts[0]
        if alone.strip().lower() in set(_NEGATIVE_TO_POSITIVE.values()) - {"high", "low"}:
            return alone, f"only {alone!r} occurs, and that reads as a positive class"
        return None, f"only {alone!r} occurs: the other class cannot be seen"
    if len(texts) != 2:
        return None, f"{len(texts)} distinct labels; a binary label needs 2"
    for negative, positive in (texts, texts[::-1]):
        reason = _pair_reason(negative, positive)
        if reason:
            return positive, reason
    first, second = texts
    return None, f"{first!r} or {second!r}: nothing in the names says which class the score is for"


def _pair_reason(negative: str, positive: str) -> str | None:
    low, high = negative.strip().rstrip(".").lower(), positive.strip().rstrip(".").lower()
    if _NEGATIVE_TO_POSITIVE.get(_what_differs(low, high)) == _what_differs(high, low):
        return f"of {negative!r} and {positive!r}, {positive!r} reads as the positive class"
    below = re.fullmatch(r"(<=?|≤|under|below|less than)\s*(.+)", low)
    above = re.fullmatch(r"(>=?|≥|over|above|more than)\s*(.+)", high)
    if below and above and below[2] == above[2]:
        return f"{positive!r} is the upper side of the limit"
    if re.fullmatch(rf"(not?|non|un|never|without)[\s_-]*{re.escape(high)}", low):
        return f"{negative!r} is the negation of {positive!r}"
    return None


def _what_differs(text: str, other: str) -> str:
    """Leave out the words that begin both: "risk low" against "risk high" is "low"."""
    words = text.split()
    pairs = zip(words, other.split(), strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return " ".join(words[shared:]) if shared < len(words) else text


def to_probabilities(scores: pd.Series, scale: Scale) -> pd.Series:
    """Bring scores to [0, 1]: percent / 100, logits through the logistic function.

    Only for a person's explicit "yes, convert": nothing calls it silently.
    """
    if scale == "percent":
        return scores.astype("float64") / 100.0
    if scale == "logit":
        values = scores.astype("float64")
        # exp of a negative argument only: no overflow for large logits of either sign
        small = np.exp(-np.abs(values))
        return cast("pd.Series", pd.Series(
            np.where(values >= 0, 1.0 / (1.0 + small), small / (1.0 + small)),
            index=scores.index, name=scores.name,
        ).where(values.notna()))  # fmt: skip
    return scores


def as_probabilities(frame: pd.DataFrame, roles: Roles) -> tuple[pd.DataFrame, Roles, str]:
    """Bring the score column to probabilities, and say what was done.

    Percent and logits are converted: call it for those only after a person has said so. Hard
    predictions become the scores 0 and 1.

    Parameters
    ----------
    frame : the table
    roles : its roles, with `scale` telling what the score column holds

    Returns
    -------
    the table (a new one if anything changed), its roles with scale "probability", and what was
    done in plain words ("" for nothing).

    Raises
    ------
    ColumnError
        when there is no score column, hard predictions without a chosen positive class, or
        percent or logits that all lie in [0, 1].
    """
    name = roles.column("y_prob")
    if name not in frame.columns:
        raise missing_column(name, frame.columns)
    if roles.scale in ("probability", "unknown"):
        return frame, roles, ""
    if roles.scale == "decision":
        if roles.pos_label is None:
            raise ColumnError(
                f"{name!r} holds hard predictions. Choose the positive class to make them scores."
            )
        scores = _decisions(frame[name], roles.pos_label)
        done = f"{name!r} holds hard predictions; they are analysed as scores 0 and 1"
    else:
        values = _numbers(frame[name])
        if values.min() >= 0 and values.max() <= 1:
            # one answer holds for many tables: in this one it would make nonsense, unseen
            raise ColumnError(
                f"The scores in {name!r} are said to be {SCALE_WORDS[roles.scale]}; here they run "
                f"from {values.min():.4g} to {values.max():.4g}, as probabilities do. Say what "
                "they are."
            )
        scores = to_probabilities(values, roles.scale)
        how = "divided by 100" if roles.scale == "percent" else "by the logistic function"
        done = f"The scores in {name!r} were converted from {SCALE_WORDS[roles.scale]}, {how}."
    return frame.assign(**{name: scores}), replace(roles, scale="probability"), done


def _decisions(column: pd.Series, pos_label: str) -> pd.Series:
    """Hard predictions as scores 1, 0, and nan where missing."""
    try:
        codes, kinds = pd.factorize(column)
    except TypeError as error:
        raise _no_scores(column, "one prediction a row") from error
    hits = [float(label_text(kind) == pos_label) for kind in kinds]
    return pd.Series(np.array([*hits, np.nan])[codes], index=column.index)  # −1 takes the last


def _numbers(column: pd.Series) -> pd.Series:
    try:
        return cast("pd.Series", column.astype("float64"))
    except (TypeError, ValueError) as error:
        raise _no_scores(column, "numbers to convert") from error


def _no_scores(column: pd.Series, wanted: str) -> ColumnError:
    present = column.dropna()
    example = str(present.iloc[0])[:40] if len(present) else "nothing"
    return ColumnError(
        f"{str(column.name)!r} must hold {wanted}; it holds values such as {example!r}. Say what "
        "its scores are, or choose another column."
    )


def one_against_rest(
    frame: pd.DataFrame, roles: Roles, pos_label: str, y_prob: str | None = None
) -> tuple[pd.DataFrame, Roles]:
    """Make a table of many classes binary: one class against all others.

    Parameters
    ----------
    frame : the table, such as one with a label of k kinds and columns p_cat, p_dog, …
    roles : its roles; only the label must be known
    pos_label : text of the class that becomes the positive one
    y_prob : column of its score; by default the one whose name ends in the class

    Returns
    -------
    the table with a label of two kinds, `pos_label` and "not …", and its roles.

    Raises
    ------
    ColumnError
        when no column is named after the class.
    """
    label = roles.column("y_true")
    if label not in frame.columns:
        raise missing_column(label, frame.columns)
    if y_prob is None:
        ending = "_" + _plain(pos_label)
        named = [str(column) for column in frame.columns if _plain(column).endswith(ending)]
        y_prob = next((column for column in named if column != label), None)
        if y_prob is None:
            raise ColumnError(
                f"No score column is named after {pos_label!r} (such as 'p_{_plain(pos_label)}'). "
                "Choose the column by hand."
            )
    elif y_prob not in frame.columns:
        raise missing_column(y_prob, frame.columns)
    # A column of categories takes no value that is none of them, such as "not dog".
    texts = frame[label].astype(object).map(label_text, na_action="ignore")
    rest = f"not {pos_label}"
    binary = texts.where(texts.isna() | (texts == pos_label), rest)
    changed = roles.corrected(y_prob=y_prob, pos_label=pos_label)
    return frame.assign(**{label: binary}), replace(changed, scale="probability")


def for_class(columns: Iterable[object], roles: Roles, pos_label: str) -> Roles:
    """Choose the positive class, and the score that is named after it as the present one is not.

    Parameters
    ----------
    columns : names of the table's columns
    roles : its roles so far, such as with the score "p_dog"
    pos_label : text of the class, such as "cat"; then the score becomes "p_cat" if there is one
    """
    present, ending = _plain(roles.y_prob or ""), "_" + _plain(pos_label)
    changes: dict[str, Any] = {"pos_label": pos_label}
    for name in map(str, columns):
        stem = _plain(name).removesuffix(ending)
        sibling = stem != _plain(name) and present.startswith(stem + "_")
        if sibling and name not in (roles.y_prob, roles.y_true):
            changes["y_prob"] = name
            break
    return roles.corrected(**changes)


def recognised_scale(frame: pd.DataFrame, roles: Roles) -> Scale | None:
    """What scores that are no probabilities look like: "percent" or "logit"; None if they are.

    Also of scores that were called probabilities when they were logged. A hair beyond [0, 1] is a
    fault in probabilities, and no other scale.
    """
    if roles.scale in ("percent", "logit") or roles.convert:
        return roles.scale if roles.unconverted else None
    if roles.y_prob not in frame.columns or roles.scale == "decision":
        return None
    fact = _facts(str(roles.y_prob), frame[roles.y_prob])
    told = fact.numeric and np.isfinite([fact.low, fact.high]).all()
    if not told or _within(fact, -_HAIR, 1 + _HAIR):
        return None
    return "percent" if _within(fact, 0.0, 100.0) else "logit"


# ---------------------------------------------------------------------------------- the guess


@dataclass(frozen=True)
class _Facts:
    """What is known of one column without reading it twice."""

    name: str
    plain: str
    numeric: bool
    floating: bool
    distinct: tuple[Any, ...]  # at most _MAX_GROUPS + 1 distinct values, missing left out
    unique: bool  # every value differs
    low: float
    high: float
    lists: bool

    @property
    def constant(self) -> bool:
        return len(self.distinct) < 2

    @property
    def binary(self) -> bool:
        return len(self.distinct) == 2

    @property
    def few(self) -> bool:
        return len(self.distinct) <= _MAX_GROUPS

    @property
    def whole(self) -> bool:
        return all(float(value).is_integer() for value in self.distinct) if self.numeric else False

    @property
    def groups(self) -> bool:
        """Whether its values can name groups: text or codes, not a measurement."""
        return not self.lists and self.few and not (self.floating and not self.whole)


def _plain(name: object) -> str:
    """Name in one spelling: 'predictedProbabilities' and 'Predicted Probabilities' alike."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name))
    return re.sub(r"[^0-9a-z]+", "_", text.lower()).strip("_")


def _facts(name: str, column: pd.Series) -> _Facts:
    boolean = pd.api.types.is_bool_dtype(column.dtype)
    numeric = pd.api.types.is_numeric_dtype(column.dtype) and not boolean
    present = column.dropna()
    head = present.iloc[:_SAMPLE]
    lists = bool(len(head)) and isinstance(head.iloc[0], (list, tuple, np.ndarray, dict))
    if lists:
        return _Facts(name, _plain(name), False, False, (), False, np.nan, np.nan, True)
    # a measurement shows itself in the first rows; only what may be groups is counted in full
    distinct = head.unique()
    floating = pd.api.types.is_float_dtype(column.dtype)
    unique = (
        not floating
        and len(present) > _MAX_GROUPS
        and len(distinct) == len(head)
        and bool(present.is_unique)
    )
    if len(distinct) <= _MAX_GROUPS and len(present) > len(head):
        distinct = present.unique()
    values = distinct[: _MAX_GROUPS + 1].tolist()
    if distinct.dtype == object and len(distinct) <= _MAX_GROUPS:
        values = list({label_text(value): value for value in values}.values())  # 1 and "1" are one
    low = high = np.nan
    if numeric and len(present):
        low, high = float(present.min()), float(present.max())
    return _Facts(
        name=name, plain=_plain(name), numeric=numeric,
        floating=floating,
        distinct=tuple(values), unique=unique,
        low=low, high=high, lists=False,
    )  # fmt: skip


class _Guess:
    """Collects roles, reasons and confidences while columns are handed out."""

    def __init__(self, facts: list[_Facts]) -> None:
        self.free = facts
        self.reasons: dict[str, str] = {}
        self.confidence: dict[str, Confidence] = {}

    def take(self, role: str, fact: _Facts | None, reason: str, confidence: Confidence) -> None:
        self.reasons[role] = reason
        self.confidence[role] = confidence
        if fact is not None:
            self.free = [other for other in self.free if other is not fact]

    def named(self, names: tuple[str, ...]) -> list[_Facts]:
        """Free columns with one of these names, best first."""
        order = {name: place for place, name in enumerate(names)}
        found = [fact for fact in self.free if fact.plain in order]
        return sorted(found, key=lambda fact: order[fact.plain])


def guess_roles(frame: pd.DataFrame) -> Roles:
    """Guess which column is label, score, sensitive feature, environment, weight and row id.

    Names are tried first (scikit-learn, Fairlearn, mlflow.evaluate, DomainBed and everyday ones),
    each checked against the content; then content alone. What cannot be told stays None, with
    the reason in `Roles.reasons`.

    Parameters
    ----------
    frame : the table, shape (n, columns)

    Returns
    -------
    Roles, with a reason and a confidence for every role. Never raises for a strange table: call
    `Roles.check` before use.

    Notes
    -----
    Whole numbers with at most 20 distinct values, and texts such as "001", count as group codes,
    not as measurements. A measurement whose name says that it is sensitive, such as an age, is
    proposed as groups with round edges near its quartiles.
    """
    facts = [_facts(str(name), frame.iloc[:, place]) for place, name in enumerate(frame.columns)]
    guess = _Guess(facts)
    label = _take_label(guess)
    score, scale = _take_score(guess, label)
    row_id = _take_row_id(guess)
    weight = _take_named(guess, "sample_weight", _WEIGHT_NAMES,
                         lambda fact: fact.numeric and fact.low >= 0)  # fmt: skip
    cluster = _take_named(guess, "cluster", _CLUSTER_NAMES, lambda fact: not fact.lists)
    _drop_results(guess)
    environment = _take_environment(guess)
    sensitive, bins = _take_sensitive(guess, frame)
    pos_label = _choose_pos_label(guess, frame, label, score)
    return Roles(
        y_true=label.name if label else None,
        y_prob=score.name if score else None,
        sensitive_features=tuple(fact.name for fact in sensitive),
        environment=environment.name if environment else None,
        sample_weight=weight.name if weight else None,
        cluster=cluster.name if cluster else None,
        row_id=row_id.name if row_id else None,
        pos_label=pos_label,
        scale=scale,
        reasons=guess.reasons,
        confidence=guess.confidence,
        bins=bins,
    )


def _take_label(guess: _Guess) -> _Facts | None:
    named = [fact for fact in guess.named(_LABEL_NAMES) if not fact.lists]
    for fact in named:
        if fact.binary:
            values = _values_text(fact)
            guess.take("y_true", fact, f"its name says label, and it holds {values}", "high")
            return fact
    if named:
        fact = named[0]
        found = f"{len(fact.distinct)}" if fact.few else f"more than {_MAX_GROUPS}"
        guess.take(
            "y_true", fact,
            f"its name says label, but it holds {found} distinct values; a binary label needs 2",
            "low",
        )  # fmt: skip
        return fact
    taken = {*_SENSITIVE_NAMES, *_ENVIRONMENT_NAMES, *_DECISION_NAMES, *_SCORE_NAMES,
             *_SPLIT_NAMES}  # fmt: skip
    binary = [fact for fact in guess.free if fact.binary and fact.plain not in taken]
    wordy = [fact for fact in binary if re.search(r"(^|_)(label|target|truth|true|y)(_|$)",
                                                  fact.plain)]  # fmt: skip
    clear = [fact for fact in binary if guess_pos_label(fact.distinct)[0] is not None]
    for candidates, confidence, why in (
        (wordy, "medium", "part of its name says label, and it holds"),
        (clear, "low", "the only column left that reads like yes/no; it holds"),
        (binary, "low", "the only column left with two values; it holds"),
    ):
        if len(candidates) == 1:
            fact = candidates[0]
            guess.take("y_true", fact, f"{why} {_values_text(fact)}",
                       cast(Confidence, confidence))  # fmt: skip
            return fact
    if binary:
        names = ", ".join(repr(fact.name) for fact in binary[:6])
        guess.take("y_true", None, f"Several columns hold two values ({names}).", "low")
    else:
        guess.take("y_true", None, "No column is named like a label or holds two values.", "low")
    return None


@dataclass(frozen=True)
class _Found:
    """A candidate for the score: the column, what it holds, why, how sure."""

    fact: _Facts
    scale: Scale
    reason: str
    confidence: Confidence


def _take_score(guess: _Guess, label: _Facts | None) -> tuple[_Facts | None, Scale]:
    fractions = [
        fact
        for fact in guess.free
        if fact.floating and not fact.whole and _within(fact, 0.0, 1.0)
        and fact.plain not in _WEIGHT_NAMES
    ]  # fmt: skip
    found = (
        _named_probability(guess)
        or _named_logit(guess)
        or _score_called_prediction(guess)
        or _score_of_a_label(guess, label)
        or _named_other_scale(guess)
        or _only_fractions(fractions)
    )
    if found is None and not fractions:
        found = _hard_predictions(guess, label)
    if found is not None:
        guess.take("y_prob", found.fact, found.reason, found.confidence)
        return found.fact, found.scale
    reason = "No column is named like a score or holds fractions in [0, 1]."
    if fractions:
        names = ", ".join(repr(fact.name) for fact in fractions[:6])
        reason = f"Several columns hold fractions in [0, 1] ({names})."
    elif named := [fact for fact in guess.named(_SCORE_NAMES) if not fact.numeric]:
        reason = f"{named[0].name!r} is named like a score, but holds {_no_numbers(named[0])}."
    guess.take("y_prob", None, reason, "low")
    return None, "unknown"


def _no_numbers(fact: _Facts) -> str:
    if fact.lists:
        return "lists of different lengths"
    if not fact.distinct:
        return "missing values only"
    return f"texts such as {fact.distinct[0]!r}; log numbers, with a decimal point"


def _named_probability(guess: _Guess) -> _Found | None:
    for fact in guess.named(_SCORE_NAMES):
        if fact.numeric and _within(fact, 0.0, 1.0):
            reason = "its name says score, and it lies in [0, 1]"
            return _Found(fact, "probability", reason, "high")
    return None


def _named_logit(guess: _Guess) -> _Found | None:
    for fact in guess.named(_LOGIT_NAMES):
        if fact.numeric:
            return _Found(fact, "logit", _logit_words(fact), "medium")
    return None


def _score_called_prediction(guess: _Guess) -> _Found | None:
    # mlflow and many scripts call the score "prediction": the content tells
    for fact in guess.named(_DECISION_NAMES):
        if fact.numeric and not fact.whole and _within(fact, 0.0, 1.0):
            reason = "its name says prediction, and it lies in [0, 1] with fractions"
            return _Found(fact, "probability", reason, "high")
    return None


def _score_of_a_label(guess: _Guess, label: _Facts | None) -> _Found | None:
    """One of several scores named after the labels: 'prob_yes', 'predicted_probabilities_1'."""
    scores = [
        fact
        for fact in guess.free
        if fact.numeric and _within(fact, 0.0, 1.0) and not fact.constant
        and re.search(r"prob|score|pred|^p_", fact.plain)
        and _suffix_label(fact, label) is not None
    ]  # fmt: skip
    if not scores:
        return None
    fact = _score_of_positive(scores, label)
    reason = f"its name says score of {_suffix_label(fact, label)!r}, and it lies in [0, 1]"
    return _Found(fact, "probability", reason, "high")


def _named_other_scale(guess: _Guess) -> _Found | None:
    for fact in guess.named(_SCORE_NAMES):
        if not fact.numeric:
            continue
        if _within(fact, 0.0, 100.0):
            reason = (
                f"its name says score; it runs from {fact.low:.4g} to {fact.high:.4g}, "
                "which looks like percent"
            )
            return _Found(fact, "percent", reason, "medium")
        if np.isfinite(fact.low) and np.isfinite(fact.high):
            return _Found(fact, "logit", _logit_words(fact), "medium")
        return _Found(fact, "unknown", "its name says score; its values are not finite", "low")
    return None


def _only_fractions(fractions: list[_Facts]) -> _Found | None:
    if len(fractions) == 1:
        reason = "the only column of fractions in [0, 1]"
        return _Found(fractions[0], "probability", reason, "medium")
    worded = [fact for fact in fractions if re.search(r"prob|score|pred|conf", fact.plain)]
    if len(worded) == 1:
        reason = "part of its name says score, and it lies in [0, 1]"
        return _Found(worded[0], "probability", reason, "medium")
    return None


def _hard_predictions(guess: _Guess, label: _Facts | None) -> _Found | None:
    if label is None:
        return None
    known = {label_text(value) for value in label.distinct}
    for fact in guess.named(_DECISION_NAMES):
        if fact.distinct and {label_text(value) for value in fact.distinct} <= known:
            reason = "no score column; it holds hard predictions, which count as scores 0 and 1"
            return _Found(fact, "decision", reason, "low")
    return None


def _within(fact: _Facts, low: float, high: float) -> bool:
    return bool(fact.low >= low and fact.high <= high)


def _logit_words(fact: _Facts) -> str:
    return (
        f"its name says score; it runs from {fact.low:.4g} to {fact.high:.4g}, "
        "which looks like logits, not probabilities"
    )


def _suffix_label(fact: _Facts, label: _Facts | None) -> str | None:
    """Text of the label whose name ends the column's name ('p_top' → 'top')."""
    for value in label.distinct if label else ():
        if fact.plain.endswith("_" + _plain(label_text(value))):
            return label_text(value)
    return None


def _score_of_positive(scores: list[_Facts], label: _Facts | None) -> _Facts:
    positive, _ = guess_pos_label(label.distinct if label else ())
    for fact in scores:
        if positive is not None and _suffix_label(fact, label) == positive:
            return fact
    return scores[-1]


def _take_row_id(guess: _Guess) -> _Facts | None:
    for fact in guess.named(_ROW_NAMES):
        if fact.unique or (not fact.few and not fact.lists):
            guess.take("row_id", fact, "its name says row id", "high" if fact.unique else "medium")
            return fact
    for fact in guess.free:
        if fact.unique and not fact.floating and fact.plain.endswith("_id"):
            guess.take("row_id", fact, "its name ends in id, and every value differs", "medium")
            return fact
    return None


def _take_named(guess: _Guess, role: str, names: tuple[str, ...], fits: Any) -> _Facts | None:
    for fact in guess.named(names):
        if fits(fact):
            guess.take(role, fact, f"its name says {ROLE_WORDS[role]}", "high")
            return fact
    return None


def _drop_results(guess: _Guess) -> None:
    """Set aside what is neither group nor environment: hard predictions, split, results."""
    dropped = {*_DECISION_NAMES, *_SCORE_NAMES, *_LOGIT_NAMES, *_LABEL_NAMES, *_SPLIT_NAMES,
               *_RESULT_NAMES}  # fmt: skip
    guess.free = [
        fact
        for fact in guess.free
        # mlflow.models.evaluate adds a column such as "hit/score" for each metric
        if fact.plain not in dropped and not re.search(r"/(score|justification)$", fact.name)
    ]


def _take_environment(guess: _Guess) -> _Facts | None:
    for fact in guess.named(_ENVIRONMENT_NAMES):
        if fact.groups and not fact.constant:
            sure = fact.plain in ("environment", "env", "domain", "test_env")
            guess.take("environment", fact,
                       f"its name says environment, and it holds {_values_text(fact)}",
                       "high" if sure else "low")  # fmt: skip
            return fact
    return None


def _take_sensitive(
    guess: _Guess, frame: pd.DataFrame
) -> tuple[list[_Facts], dict[str, tuple[float, ...]]]:
    named = guess.named(_SENSITIVE_NAMES)
    named += [
        fact for fact in guess.free
        if fact not in named and _sensitive_word(fact.plain)
    ]  # fmt: skip
    bins = _bands(named, frame)
    chosen = [fact for fact in named if fact.name in bins or (fact.groups and not fact.constant)]
    too_fine = [fact for fact in named if not fact.groups and fact.name not in bins]
    for fact in chosen:
        holds, sure = f"it holds {_values_text(fact)}", "high"
        if fact.name in bins:
            edges = edges_text(bins[fact.name])
            holds, sure = f"its numbers are cut near their quartiles, at {edges}", "medium"
        guess.take(fact.name, fact, f"its name says sensitive feature, and {holds}",
                   cast(Confidence, sure))  # fmt: skip
    others = [
        fact for fact in guess.free
        if fact.groups and not fact.constant and fact not in named
    ]  # fmt: skip
    for fact in others:
        guess.take(fact.name, fact, f"it splits the rows into groups: {_values_text(fact)}", "low")
    for fact in too_fine:
        many = "fractions" if fact.few else f"more than {_MAX_GROUPS} distinct values"
        guess.reasons[fact.name] = (
            f"{fact.name!r} holds {'lists' if fact.lists else many}; "
            "cut it into bands to use it as groups"
        )
    found = [*chosen, *others]
    if found:
        first = guess.reasons[found[0].name]
        guess.take("sensitive_features", None, first, guess.confidence[found[0].name])
    else:
        why = f"No column holds between 2 and {_MAX_GROUPS} group names or codes."
        if too_fine:
            why = f"{guess.reasons[too_fine[0].name]}."
        elif alone := [fact for fact in named if len(fact.distinct) == 1]:
            why = f"{alone[0].name!r} holds {_values_text(alone[0])} only. {why}"
        guess.take("sensitive_features", None, why, "low")
    return found, bins


def _bands(named: list[_Facts], frame: pd.DataFrame) -> dict[str, tuple[float, ...]]:
    """Edges for the measurements among columns that are named like sensitive features."""
    fine = [fact for fact in named if fact.numeric and not fact.groups and _measured(fact.plain)]
    places = {str(name): place for place, name in enumerate(frame.columns)}
    edges = {fact.name: nice_edges(frame.iloc[:, places[fact.name]].dropna()) for fact in fine}
    return {name: found for name, found in edges.items() if found}


def _measured(plain: str) -> bool:
    """Whether a name says that numbers measure something; many codes of a race do not."""
    return re.search(r"(^|_)(age|skin|sensitive|protected)(_|$)", plain) is not None


def _sensitive_word(plain: str) -> bool:
    words = r"(^|_)(sensitive|protected|sex|gender|race|ethnic\w*|age|skin|religion)(_|$)"
    return re.search(words, plain) is not None


def _choose_pos_label(
    guess: _Guess, frame: pd.DataFrame, label: _Facts | None, score: _Facts | None
) -> str | None:
    if label is None:
        return None
    positive, reason = guess_pos_label(label.distinct)
    if positive is None and score is not None and label.binary:
        named = _suffix_label(score, label)
        if named is not None:
            positive, reason = named, f"the score column {score.name!r} is named after it"
        elif score.numeric:
            reason += _mean_score_hint(frame, label, score)
    sure = positive is not None
    low = {label_text(value).strip().lower() for value in label.distinct}
    guess.take("pos_label", None, reason,
               "high" if sure and low & _SURE_PAIRS else "medium" if sure else "low")  # fmt: skip
    return positive


def _mean_score_hint(frame: pd.DataFrame, label: _Facts, score: _Facts) -> str:
    if not frame.columns.is_unique:
        return ""
    means = frame.groupby(label.name, observed=True)[score.name].mean()
    if len(means) != 2 or means.isna().any() or means.iloc[0] == means.iloc[1]:
        return ""
    top = means.idxmax()
    return (
        f"; scores are higher on average for {label_text(top)!r} "
        f"({means.max():.2f} against {means.min():.2f})"
    )


def _values_text(fact: _Facts) -> str:
    texts = sorted(label_text(value) for value in fact.distinct)
    shown = ", ".join(
        repr(text) if len(text) <= 30 else repr(text[:29] + "…") for text in texts[:4]
    )
    return shown + (f" and {len(texts) - 4} more" if len(texts) > 4 else "")
