"""Colours, dash patterns and chart configuration, for light and dark, in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt

from rise_core.exceptions import RiseError

__all__ = [
    "DARK",
    "DASHES",
    "FONT",
    "LIGHT",
    "MISSING",
    "THEMES",
    "Palette",
    "Theme",
    "ThemeName",
    "apply_theme",
    "palette_for",
    "theme_of",
]

ThemeName = Literal["light", "dark"]

# What the machine has, never a web font: an exported file must look right with the network off.
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
MISSING = "(missing)"

# Told apart without colour; the first is solid, so two groups read as "solid and dashed".
DASHES: tuple[tuple[int, ...], ...] = (
    (1, 0),
    (9, 3),
    (3, 2),
    (9, 3, 2, 3),
    (14, 4),
    (6, 2, 2, 2, 2, 2),
    (2, 4),
    (14, 3, 5, 3),
)
_MISSING_DASH = (2, 2)
_POOLED_DASH = (5, 4)


@dataclass(frozen=True)
class Theme:
    """Colours of one appearance, as hex text.

    Attributes
    ----------
    name : "light" or "dark"
    background : the app's own page colour, so that a chart sits on the page without an edge
    text, muted : labels to read; labels to glance at
    grid, zero : quiet lines; the line of no error
    pooled : the curve of all rows
    missing : rows whose group is not known
    band : null bands and other grey areas
    accent : a value that belongs to no group
    groups : colours of the groups, in order (after Okabe and Ito, safe for the common
        colour-vision deficiencies; lighter on dark)
    """

    name: ThemeName
    background: str
    text: str
    muted: str
    grid: str
    zero: str
    pooled: str
    missing: str
    band: str
    accent: str
    groups: tuple[str, ...]


LIGHT = Theme(
    name="light",
    background="#ffffff",
    text="#23272b",
    muted="#5c656e",
    grid="#e9ecef",
    zero="#8a929a",
    pooled="#868e96",
    missing="#59626b",
    band="#dfe3e8",
    accent="#1f5fa8",
    groups=(
        "#0072B2",
        "#D55E00",
        "#009E73",
        "#C2649A",
        "#4AA8E0",
        "#C98A00",
        "#6B4FA0",
        "#7A5C43",
    ),
)
DARK = Theme(
    name="dark",
    background="#15181b",
    text="#e8eaec",
    muted="#a5adb5",
    grid="#2a2f34",
    zero="#79828b",
    pooled="#8b949c",
    missing="#c3c9cf",
    band="#3a4148",
    accent="#7ab4ea",
    groups=(
        "#3D9DE0",
        "#F47B20",
        "#2CBF94",
        "#E59CC4",
        "#93D2F7",
        "#F0BC42",
        "#AD95E3",
        "#C9A98B",
    ),
)
THEMES: Mapping[str, Theme] = {"light": LIGHT, "dark": DARK}


def theme_of(name: str) -> Theme:
    """Look a theme up by its name, "light" or "dark"."""
    try:
        return THEMES[name]
    except KeyError:
        raise RiseError(f'theme must be "light" or "dark", got {name!r}') from None


@dataclass(frozen=True)
class Palette:
    """Colour and dash of every curve of a chart, in legend order; the pooled curve is last.

    The same labels in the same order always give the same colours, whatever the view.
    """

    labels: tuple[str, ...]
    colors: tuple[str, ...]
    dashes: tuple[tuple[int, ...], ...]
    pooled: str

    def color(self, label: str) -> str:
        """Colour of a curve."""
        return self.colors[self.labels.index(label)]

    def dash(self, label: str) -> tuple[int, ...]:
        """Dash pattern of a curve."""
        return self.dashes[self.labels.index(label)]


def palette_for(groups: Sequence[str], theme: Theme) -> Palette:
    """Give every group a colour and a dash pattern, and the pooled curve its grey.

    Parameters
    ----------
    groups : labels in legend order; "(missing)" is grey wherever it stands
    theme : the appearance

    Returns
    -------
    Palette whose last label is the pooled curve's, a name that no group has
    """
    pooled = "all rows"
    while pooled in groups:
        pooled += " (pooled)"
    colors: list[str] = []
    dashes: list[tuple[int, ...]] = []
    place = 0
    for label in groups:
        if label == MISSING:
            colors.append(theme.missing)
            dashes.append(_MISSING_DASH)
            continue
        colors.append(theme.groups[place % len(theme.groups)])
        # Past eight groups colours come round again; the shift keeps colour and dash apart.
        dashes.append(DASHES[(place + place // len(theme.groups)) % len(DASHES)])
        place += 1
    return Palette((*groups, pooled), (*colors, theme.pooled), (*dashes, _POOLED_DASH), pooled)


def apply_theme(chart: Any, theme: Theme) -> Any:
    """Give a finished chart the theme's colours and fonts (top level only).

    Every colour is explicit: an export knows nothing of the page it was made on, and Streamlit's
    config file does not reach axis labels.
    """
    axis: dict[str, Any] = {
        "labelColor": theme.muted,
        "titleColor": theme.muted,
        "gridColor": theme.grid,
        "domainColor": theme.grid,
        "tickColor": theme.grid,
        "labelFont": FONT,
        "titleFont": FONT,
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    }
    legend: dict[str, Any] = {
        "labelColor": theme.text,
        "titleColor": theme.muted,
        "labelFont": FONT,
        "titleFont": FONT,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "symbolOpacity": 1,
        "labelLimit": 180,
    }
    # One assignment instead of altair's configure_* methods: each of those copies the chart.
    chart.config = alt.Config(
        background=theme.background,
        font=FONT,
        view=alt.ViewConfig(stroke=None),
        # Streamlit gives every mark a tooltip, the brush too; layers that have one say so.
        mark=alt.MarkConfig(tooltip=None),
        axis=alt.AxisConfig(**axis),
        legend=alt.LegendConfig(**legend),
        title=alt.TitleConfig(
            color=theme.text, font=FONT, fontSize=13, fontWeight=600, anchor="start"
        ),
    )
    # Outside Streamlit the tooltip is vega-embed's own, which is white unless told.
    chart.usermeta = {"embedOptions": {"tooltip": {"theme": theme.name}}}
    return chart


def chart_text(value: str, limit: int = 28) -> str:
    """Shorten a label to what fits beside an axis."""
    return value if len(value) <= limit else value[: limit - 1].rstrip() + "…"
