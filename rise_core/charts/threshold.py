"""Decision indicators over all thresholds, the current one marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Literal

import altair as alt
import numpy as np
import pandas as pd

from rise_core.charts.layers import Style
from rise_core.charts.theme import FONT, Theme, ThemeName, apply_theme, palette_for, theme_of

__all__ = ["CLICK", "threshold_charts"]

CLICK = "at"
"""Name of the selection where the pointer is let go on a chart; its field is ``threshold``."""

# The mark follows the pointer in the browser alone; only where it is let go is a selection that a
# page hears, so that a drag computes nothing until it ends.
_DRAG = "drag"
_WHERE = (
    f"isValid({_DRAG}.threshold) ? {_DRAG}.threshold[0] : "
    f"isValid({CLICK}.threshold) ? {CLICK}.threshold[0] : datum.threshold"
)

_HIGHEST_RATIO = 4.0


@dataclass(frozen=True)
class _Plot:
    """One chart: its lines by column, the value that is parity, and the ends of its axis."""

    title: str
    lines: Mapping[str, str]
    ideal: float | None
    format: str


_PLOTS = (
    _Plot("Accuracy", {"accuracy": "accuracy"}, None, ".2f"),
    _Plot(
        "Gaps between groups (0 is parity)",
        {
            "md_decision": "positive rate",
            "tpr_gap": "true positive rate",
            "fpr_gap": "false positive rate",
        },
        0.0,
        ".2f",
    ),
    _Plot("DP, ratio of positive rates (1 is parity)", {"dp": "DP"}, 1.0, ".2f"),
)


def threshold_charts(
    sweep: pd.DataFrame,
    threshold: float,
    *,
    baseline: float | None = None,
    theme: ThemeName = "light",
    width: int | Literal["container"] = "container",
    height: int = 190,
) -> dict[str, alt.LayerChart]:
    """Accuracy, gaps and DP over all thresholds, a chart each, by title.

    Parameters
    ----------
    sweep : from ``threshold_sweep``
    threshold : the current one, marked with a rule
    baseline : accuracy of always deciding for the more frequent label
    theme, width, height : as in ``rise_chart``

    Notes
    -----
    The mark follows the pointer that drags it, or comes to a click; where the pointer is let go,
    the nearest threshold of the sweep is selected. Let go beside the plot, it returns. A ratio
    above 4 is drawn at the upper edge; its number is in the tooltip.
    """
    return {
        plot.title: _plot(plot, sweep, threshold, baseline, theme, width, height)
        for plot in _PLOTS
        if sweep[list(plot.lines)].notna().any(axis=None)
    }


def _plot(
    plot: _Plot,
    sweep: pd.DataFrame,
    threshold: float,
    baseline: float | None,
    theme: ThemeName,
    width: int | Literal["container"],
    height: int,
) -> alt.LayerChart:
    look = theme_of(theme)
    names = list(plot.lines.values())
    style = Style(look, palette_for(names, look))
    low, high = _domain(plot, sweep, baseline)
    x = alt.X(
        "threshold:Q",
        title="threshold",
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(grid=False, tickCount=5, format=".1f"),
    )
    y = alt.Y(
        "value:Q",
        title=None,
        scale=alt.Scale(domain=[low, high], nice=False, zero=False, clamp=True),
        axis=alt.Axis(tickCount=4, domain=False, ticks=False, format=plot.format),
    )
    long = sweep.melt(["threshold"], list(plot.lines), var_name="key", value_name="value")
    long = long.assign(curve=long["key"].map(dict(plot.lines)))
    long = long.replace([np.inf, -np.inf], high).dropna(subset=["value"]).round(5)
    legend = style.legend(names) if len(names) > 1 else None
    parts = [
        alt.Chart(long)
        .mark_line(strokeWidth=2)
        .encode(
            x=x,
            y=y,
            color=alt.Color("curve:N", scale=style.scale, legend=legend, sort=names),
            strokeDash=alt.StrokeDash("curve:N", scale=style.dashes, legend=legend, sort=names),
        )
    ]
    level = baseline if plot.ideal is None else plot.ideal
    if level is not None:
        flat = alt.Chart(pd.DataFrame({"value": [level]}))
        parts.insert(0, flat.mark_rule(color=look.zero, strokeWidth=1.2).encode(y=y))
        if plot.ideal is None:
            named = pd.DataFrame({"value": [level], "label": ["majority baseline"]})
            parts.append(
                alt.Chart(named)
                .mark_text(align="right", baseline="top", dy=4, fontSize=11, color=look.muted)
                .encode(x=alt.value("width"), y=y, text=alt.Text("label:N"))
            )
    mark = alt.Chart(pd.DataFrame({"threshold": [threshold]})).transform_calculate(now=_WHERE)
    now_x = alt.X("now:Q")
    parts.append(mark.mark_rule(color=look.text, strokeWidth=1.6).encode(x=now_x))
    # The handle tells the mark from the lines, and that it can be taken hold of.
    parts.append(
        mark.mark_point(
            shape="triangle-down", filled=True, size=110, opacity=1, color=look.text
        ).encode(x=now_x, y=alt.value(0))
    )
    parts.append(_columns(plot, sweep, look.text))
    now = sweep.iloc[(sweep["threshold"] - threshold).abs().argmin()]
    told = ", ".join(f"{name} {now[key]:.3f}" for key, name in plot.lines.items())
    chart = alt.layer(*parts).properties(
        title=_heading(plot.title, look),
        width=width,
        height=height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        description=f"{plot.title} over all thresholds. At {threshold:g}: {told}.",
    )
    themed: alt.LayerChart = apply_theme(chart, look)
    return themed


def _heading(title: str, look: Theme) -> alt.TitleParams:
    """Title with what stands in brackets below it: a column of three is too narrow for one line."""
    name, _, rest = title.rstrip(")").partition(" (")
    return alt.TitleParams(
        name, subtitle=rest or " ", subtitleColor=look.muted, subtitleFont=FONT, subtitleFontSize=11
    )


def _domain(plot: _Plot, sweep: pd.DataFrame, baseline: float | None) -> tuple[float, float]:
    values = sweep[list(plot.lines)].to_numpy(float)
    values = values[np.isfinite(values)]
    high = float(values.max()) if values.size else 1.0
    if plot.ideal == 1.0:
        return 0.0, min(max(1.1 * high, 1.5), _HIGHEST_RATIO)
    if plot.ideal == 0.0:
        return 0.0, max(1.05 * high, 0.05)
    low = min(float(values.min()), baseline if baseline is not None else 1.0)
    air = max(0.06 * (high - low), 0.02)
    return max(low - air, 0.0), min(high + air, 1.0)


def _columns(plot: _Plot, sweep: pd.DataFrame, color: str) -> alt.Chart:
    """Invisible columns that tell the numbers and take the clicks."""
    t = sweep["threshold"].to_numpy()
    edges = np.concatenate([[0.0], (t[:-1] + t[1:]) / 2, [1.0]])
    table = pd.DataFrame({"threshold": t.round(6), "x0": edges[:-1], "x1": edges[1:]})
    tooltip = [alt.Tooltip("threshold:Q", format=".2f")]
    for place, (key, name) in enumerate(plot.lines.items()):
        # Texts: JSON has no infinity.
        table[f"t{place}"] = [_number(value) for value in sweep[key]]
        tooltip.append(alt.Tooltip(f"t{place}:N", title=name))
    drag, click = (
        alt.selection_point(
            name=name, on=on, clear=clear, fields=["threshold"], empty=False, toggle=False
        )
        for name, on, clear in (
            (
                _DRAG,
                "pointerdown, [pointerdown, window:pointerup] > pointermove",
                "window:pointerup",
            ),
            (CLICK, "pointerup", False),
        )
    )
    columns: alt.Chart = (
        alt.Chart(table)
        .mark_rect(color=color, opacity=0, aria=False, cursor="ew-resize")
        .encode(
            x=alt.X("x0:Q", scale=alt.Scale(domain=[0, 1], nice=False)),
            x2=alt.X2("x1"),
            y=alt.value(0),
            y2=alt.value("height"),
            tooltip=tooltip,
        )
        .add_params(drag, click)
    )
    return columns


def _number(value: float) -> str:
    if isfinite(value):
        return f"{value:.3f}"
    return "∞" if value > 0 else "–"
