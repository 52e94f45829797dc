"""Small multiples on a page: made once for a question, since Altair takes longer than the numbers.

A click on a page of eight models drew for the better part of a second before.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rise_core import Evaluation
from rise_core.charts import curve_legend, curve_panels
from rise_core.charts.theme import ThemeName
from rise_core.report.figures import spec_of

__all__ = ["show_panels"]

# Four side by side beside the sidebar on a laptop.
_PANEL_WIDTH = 246

Spec = Mapping[str, Any]


def show_panels(
    key: Hashable,
    models: Mapping[str, Evaluation],
    theme: ThemeName,
    *,
    height: int = 170,
    wide: bool = False,
    below: Callable[[str], None] = lambda _: None,
) -> None:
    """Show the curves of models on the same axes.

    Parameters
    ----------
    key : all that the curves depend on
    models : name to evaluation
    height : pixels of a plot
    wide : one row over the whole page; else as many side by side as fit
    below : draws what stands below the panel of a name
    """
    legend, panels = _specs(repr((key, list(models))), theme, height, models)
    st.vega_lite_chart(legend, theme=None, width="stretch")
    if wide:
        places: list[DeltaGenerator] = st.columns(len(panels))
    else:
        with st.container(horizontal=True, gap="small"):
            places = [st.container(width=_PANEL_WIDTH) for _ in panels]
    for place, (name, panel) in zip(places, panels.items(), strict=True):
        with place:
            st.vega_lite_chart(panel, theme=None, width="stretch", key=f"curve {name}")
            below(name)


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
