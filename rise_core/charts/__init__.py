"""Charts: an evaluation in, an Altair chart out. Needs the extra ``rise-core[charts]``.

A chart carries its own colours and compiles outside of Streamlit as it is; show it there with
``st.altair_chart(chart, theme=None)``.
"""

from __future__ import annotations

from rise_core.charts.calibration import calibration_chart
from rise_core.charts.grid import curve_grid, curve_legend, curve_panels
from rise_core.charts.heatmap import heat_map
from rise_core.charts.rise import rise_chart
from rise_core.charts.spark import spark_svg, spark_values
from rise_core.charts.strip import strip_chart, strip_domain, strip_svg
from rise_core.charts.theme import DARK, LIGHT, THEMES, Theme, ThemeName, palette_for
from rise_core.charts.thinning import curve_points
from rise_core.charts.threshold import threshold_charts
from rise_core.charts.tradeoff import tradeoff_chart

__all__ = [
    "DARK",
    "LIGHT",
    "THEMES",
    "Theme",
    "ThemeName",
    "calibration_chart",
    "curve_grid",
    "curve_legend",
    "curve_panels",
    "curve_points",
    "heat_map",
    "palette_for",
    "rise_chart",
    "spark_svg",
    "spark_values",
    "strip_chart",
    "strip_domain",
    "strip_svg",
    "threshold_charts",
    "tradeoff_chart",
]
