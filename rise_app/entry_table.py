"""The table on the Experiments page: one line a run, or a line for runs that differ in a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from hashlib import sha1
from itertools import zip_longest
from math import isfinite, nan
from typing import Any

import pandas as pd
import streamlit as st

from rise_app import address
from rise_app.entries import Entry, Place, places_of
from rise_app.runs_table import RunLine, finished, is_fault
from rise_app.switches import MOST_COMPARED
from rise_core.charts import strip_domain, strip_svg
from rise_core.charts.theme import ThemeName
from rise_core.estimates import Estimate
from rise_core.tracking import Run
from rise_core.wording import METRICS, SHOWN, format_short

__all__ = ["ABOUT_SEEDS", "Look", "choose_action", "entry_table"]


ABOUT_SEEDS = (
    "A grouped line shows the mean over its seeds. Bars reach from the lowest to the highest seed; "
    "they are no confidence intervals. (2/3): defined for two of three seeds."
)


@dataclass(frozen=True)
class Look:
    """How the table of runs is drawn.

    Parameters
    ----------
    theme : of the browser
    bare : plain numbers, to be copied and calculated with, instead of pictures
    metric : logged metric that the runs are ordered by, shown beside them; or ""
    parents : names of runs that are not above the runs nested in them, by id
    """

    theme: ThemeName
    bare: bool = False
    metric: str = ""
    parents: Mapping[str, str] = field(default_factory=dict)


def entry_table(
    entries: Sequence[Entry],
    lines: Mapping[str, Future[RunLine]],
    noise: Mapping[str, Future[Mapping[str, Estimate]]],
    look: Look,
) -> list[Entry] | None:
    """Draw the table and return the selected entries; None where there is nothing to select.

    A run's indicators are drawn with interval and null; those of several seeds as their mean and
    range, and then single runs have neither.
    """
    done = finished(lines)
    shown = [entry for entry in entries if not _is_broken(entry, done)]
    if not shown:
        st.info("None of these runs can be evaluated.")
        return None
    frame = pd.DataFrame(
        [
            _cells(entry, place, done, look)
            for entry, place in zip(shown, places_of(shown), strict=True)
        ]
    )
    if not look.bare:
        _draw_indicators(frame, shown, done, finished(noise), look.theme)
    # Row positions are all that a selection remembers, so the key names the rows.
    names = sha1(" ".join(run.id for entry in shown for run in entry.runs).encode())
    event = st.dataframe(
        frame.loc[:, _worth_showing(frame)],
        hide_index=True,
        row_height=44,
        height="content",
        column_config=_column_config(look, grouped=any(entry.grouped for entry in shown)),
        on_select="rerun",
        selection_mode="multi-row",
        key=f"runs {names.hexdigest()[:12]}",
        placeholder="–",
        alt="Runs and their indicators",
    )
    return [shown[i] for i in event.selection.rows if i < len(shown)]


def _is_broken(entry: Entry, done: Mapping[str, RunLine]) -> bool:
    """Whether none of an entry's runs has numbers; a parent stays, above the runs it holds."""
    return all(run.id in done and is_fault(done[run.id]) for run in entry.runs)


def _readable(entry: Entry, lines: Mapping[str, Future[RunLine]]) -> list[Run]:
    """Return an entry's runs without those that turned out to have no numbers, newest first."""
    done = finished(lines)
    return [run for run in entry.runs if not (run.id in done and done[run.id].problem)]


def _draw_indicators(
    frame: pd.DataFrame,
    entries: Sequence[Entry],
    lines: Mapping[str, RunLine],
    noise: Mapping[str, Mapping[str, Estimate]],
    theme: ThemeName,
) -> None:
    """Replace the indicators' numbers by pictures on one axis a column."""
    for key in SHOWN:
        rows: list[dict[str, Any] | None] = []
        for entry in entries:
            found = _values(entry, lines, key)
            if not found:
                rows.append(None)
                continue
            estimate = None if entry.grouped else noise.get(entry.newest.id, {}).get(key)
            ends = _range(found) if entry.grouped else _ends(estimate)
            rows.append({"value": _mean(found), "label": _label(found)} | ends)
        drawn = [row for row in rows if row is not None]
        if not drawn:
            continue
        domain = strip_domain(pd.DataFrame(drawn).rename(columns={"label": "name"}))
        size: dict[str, Any] = {"domain": domain, "theme": theme, "width": 88, "height": 18}
        frame[key] = [None if row is None else strip_svg(**row, **size) for row in rows]


def _values(entry: Entry, lines: Mapping[str, RunLine], key: str) -> list[float]:
    """Return an indicator of an entry's runs; nothing before all of them are done."""
    if not all(run.id in lines for run in entry.runs):
        return []
    found = [lines[run.id] for run in entry.runs]
    return [line.values.get(key, nan) for line in found if not line.problem]


def _mean(values: Sequence[float]) -> float:
    """Return the mean of those that are defined; of one value, the value."""
    defined = [value for value in values if isfinite(value)]
    if len(values) == 1:
        return values[0]
    return sum(defined) / len(defined) if defined else nan


def _range(values: Sequence[float]) -> dict[str, Any]:
    """Return the lowest and the highest value as the ends of a strip, which has no null."""
    defined = [value for value in values if isfinite(value)]
    ends = {"low": min(defined), "high": max(defined)} if defined else {"low": nan, "high": nan}
    return _ends(None) | ends


def _label(values: Sequence[float]) -> str:
    """Return the number to be read, and of how many runs it is where some have none."""
    defined = sum(isfinite(value) for value in values)
    text = format_short(_mean(values))
    return (
        text if len(values) == 1 or defined == len(values) else f"{text} ({defined}/{len(values)})"
    )


def _ends(estimate: Estimate | None) -> dict[str, Any]:
    if estimate is None:
        return dict.fromkeys(("low", "high", "null_low", "null_high"), nan) | {"unstable": False}
    return {
        "low": estimate.low,
        "high": estimate.high,
        "null_low": estimate.null_low,
        "null_high": estimate.null_high,
        "unstable": estimate.unstable,
    }


def _cells(entry: Entry, place: Place, done: Mapping[str, RunLine], look: Look) -> dict[str, Any]:
    run = entry.newest
    lines = [done[run.id] for run in entry.runs if run.id in done and not done[run.id].problem]
    line = lines[0] if lines else None
    nested = run.id in done and done[run.id].nested
    cells: dict[str, Any] = {
        "algorithm": place.mark + str(run.algorithm),
        "dataset": run.dataset,
        "seed": _seed(entry, done),
        "status": "parent" if nested else _status(entry),
        "metric": _mean([run.metrics.get(look.metric, nan) for run in entry.runs]),
        "curve": line.spark.get(look.theme) if line else None,
    }
    for key in SHOWN:
        value = _mean(_values(entry, done, key) or [nan])
        cells[key] = value if isfinite(value) else None
    rows = {line.rows for line in lines}
    cells |= {
        "rows": rows.pop() if len(rows) == 1 else None,
        "environment": line.environment if line else None,
        "groups": line.groups if line else None,
        "positive": line.positive if line else None,
        "undefined": _undefined(entry, done),
        "started": run.start_time,
        "run": place.mark + entry.name + _elsewhere(place, look),
    }
    return cells


def _seed(entry: Entry, done: Mapping[str, RunLine]) -> str | None:
    if not entry.grouped:
        return None if entry.newest.seed is None else str(entry.newest.seed)
    faults = sum(run.id in done and bool(done[run.id].problem) for run in entry.runs)
    number = f"{len(entry.runs) - faults} of {len(entry.runs)}" if faults else len(entry.runs)
    return f"{number} seeds"


def _status(entry: Entry) -> str:
    running = sum(run.running for run in entry.runs)
    if running:
        return f"{running} running" if entry.grouped else "running"
    return ", ".join(dict.fromkeys(run.status.lower() for run in entry.runs))


def _undefined(entry: Entry, done: Mapping[str, RunLine]) -> str | None:
    """Say which indicators have no value for some of the seeds, for those who read bare numbers."""
    if not entry.grouped:
        return None
    found = []
    for key in SHOWN:
        values = _values(entry, done, key)
        if missing := sum(not isfinite(value) for value in values):
            found.append(f"{METRICS[key].name} {missing} of {len(values)}")
    return ", ".join(found) or None


def _elsewhere(place: Place, look: Look) -> str:
    if place.elsewhere is None:
        return ""
    return f" · in {look.parents.get(place.elsewhere, place.elsewhere[:8])}"


def _worth_showing(frame: pd.DataFrame) -> list[str]:
    """Leave out the columns that are empty or say the same of every run."""

    def worth(name: str) -> bool:
        column = frame[name]
        if name in ("dataset", "groups", "positive", "environment"):
            return column.nunique() > 1
        if name == "status":
            return bool((column != "finished").any())
        return name not in ("seed", "metric", "undefined") or bool(column.notna().any())

    return [str(name) for name in frame.columns if worth(str(name))]


def _column_config(look: Look, *, grouped: bool) -> dict[str, Any]:
    curve = "Sorted residuals of each group, from rank 0 to 100 %."
    config: dict[str, Any] = {
        "algorithm": st.column_config.TextColumn("Algorithm", pinned=True, width=110),
        "dataset": "Data set",
        "seed": st.column_config.TextColumn("Seed", width=70 if grouped else 55),
        "status": st.column_config.TextColumn(
            "Status", help="A parent has no table itself: the runs nested in it hold them."
        ),
        "metric": st.column_config.NumberColumn(
            look.metric, format="%.4g", help="As logged; the runs are ordered by it."
        ),
        "curve": st.column_config.ImageColumn(
            "Residuals", width=130, help=f"{curve} Of the newest seed." if grouped else curve
        ),
        "rows": st.column_config.NumberColumn("Rows", format="localized", width=75),
        "environment": "Environment",
        "groups": "Groups",
        "positive": "Positive class",
        "undefined": st.column_config.TextColumn(
            "Undefined", help="Indicators that some of the seeds do not have."
        ),
        "started": st.column_config.DatetimeColumn("Started", format="distance"),
        "run": st.column_config.TextColumn("Run"),
    }
    for key in SHOWN:
        metric = METRICS[key]
        title = f"{metric.name} {metric.arrow}"
        help_text = f"{metric.meaning}. {metric.direction} {metric.explains}"
        if not look.bare:
            config[key] = st.column_config.ImageColumn(title, width=104, help=help_text)
            continue
        config[key] = st.column_config.NumberColumn(
            title,
            # A knee over a knee near 0 runs to thousands: four digits say all there is to say.
            format="%.4g" if key in ("f_shift", "f_acc") else "%.3f",
            width=82,
            help=help_text,
        )
    return config


def choose_action(picked: Sequence[Entry] | None, lines: Mapping[str, Future[RunLine]]) -> None:
    """Draw what can be done with the selected entries, and go there."""
    if picked is None:
        return
    usable = [_readable(entry, lines) for entry in picked]
    runs = _in_turn(usable)
    one = len(picked) == 1 and bool(runs)
    diagnose = st.button("Diagnose", type="primary", disabled=not one)
    compare = st.button("Compare", type="primary", disabled=len(runs) < 2)
    if not picked:
        st.caption("Select a run to see where it errs and for whom, or several to compare.")
    elif len(picked) > 1:
        st.text(f"{len(runs)} runs")
    elif not runs:
        st.text(f"{picked[0].name}: its nested runs hold the tables")
    else:
        st.text(picked[0].name)
    if len(runs) > MOST_COMPARED:
        st.caption(f"Compare takes {MOST_COMPARED} of them.")
    if diagnose:
        newest = usable[0][0]
        st.switch_page("pages/diagnose.py", query_params=address.query_for(run=newest.id))
    if compare:
        chosen = address.listed(run.id for run in runs[:MOST_COMPARED])
        st.switch_page("pages/compare.py", query_params=address.query_for(runs=chosen))


def _in_turn(groups: Sequence[Sequence[Run]]) -> list[Run]:
    """Return the runs of several entries, one of each in turn: a cut leaves none out."""
    return [run for turn in zip_longest(*groups) for run in turn if run is not None]
