"""Small multiples on a page: made once for a question, since Altair takes longer than the numbers.

A click on a page of eight models drew for the better part of a second before.
"""

from __future__ import annotations

import io
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rise_core import Evaluation
from rise_core.charts import curve_legend, curve_panels
from rise_core.charts.theme import ThemeName
from rise_core.report.figures import spec_of

__all__ = ["show_panels", "show_panels_in"]

# Four side by side beside the sidebar on a laptop.
_PANEL_WIDTH = 246

Spec = Mapping[str, Any]


def show_panels(key: Hashable, models: Mapping[str, Evaluation], theme: ThemeName) -> None:
    """Show the curves of models on the same axes, as many side by side as fit.

    Parameters
    ----------
    key : all that the curves depend on
    models : name to evaluation
    """
    legend, panels = _specs(repr((key, list(models))), theme, 170, models)
    st.vega_lite_chart(legend, theme=None, width="stretch")
    with st.container(horizontal=True, gap="small"):
        for name, panel in panels.items():
            with st.container(width=_PANEL_WIDTH):
                st.vega_lite_chart(panel, theme=None, width="stretch", key=f"curve {name}")


def show_panels_in(
    key: Hashable, models: Mapping[str, Evaluation], theme: ThemeName, *, height: int
) -> Iterator[tuple[str, DeltaGenerator]]:
    """Show a panel a column, and yield each name with its column, for what stands below.

    Parameters
    ----------
    key, models : as in `show_panels`
    height : pixels of a plot
    """
    legend, panels = _specs(repr((key, list(models))), theme, height, models)
    st.vega_lite_chart(legend, theme=None, width="stretch")
    for column, (name, panel) in zip(st.columns(len(panels)), panels.items(), strict=True):
        with column:
            st.vega_lite_chart(panel, theme=None, width="stretch", key=f"curve {name}")
        yield name, column


@st.cache_resource(max_entries=32, show_spinner=False)
def _specs(
    key: str, theme: ThemeName, height: int, _models: Mapping[str, Evaluation]
) -> tuple[Spec, Mapping[str, Spec]]:
    panels = curve_panels(_models, theme=theme, height=height)
    legend = curve_legend(_models, theme=theme)
    return _packed(legend), {name: _packed(panel) for name, panel in panels.items()}


def _packed(chart: Any) -> Spec:
    """Return a chart's specification with its data as Arrow, which Streamlit sends as it is."""
    spec = spec_of(chart)
    return spec | {"datasets": {name: _arrow(rows) for name, rows in spec["datasets"].items()}}


def _arrow(rows: list[dict[str, Any]]) -> bytes:
    import pyarrow as pa

    table = pa.Table.from_pylist(rows)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()
