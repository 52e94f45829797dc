"""Read what the app shows: labels, keys and data, never positions."""

from __future__ import annotations

import html
import io
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.ipc

from rise_core import Evaluation
from rise_core.wording import METRICS, format_number

ROOT = Path(__file__).resolve().parents[2]
CURVE_COLUMNS = {"curve", "rank", "residual"}
PIECE_COLUMNS = {"piece", "curve", "significant", "rank", "residual"}


@dataclass
class Screen:
    """A page as a person sees it, over Streamlit's AppTest."""

    at: Any

    def run(self) -> Screen:
        """Run the page, and hold that nothing broke."""
        self.at.run()
        self.hold()
        return self

    def hold(self) -> None:
        """Hold that no traceback is shown."""
        assert not self.at.exception, [e.value for e in self.at.exception]

    def settle(self, seconds: float = 60) -> Screen:
        """Look again until nothing is being computed any more."""
        end = time.monotonic() + seconds
        while self.at.get("progress"):
            assert time.monotonic() < end, "still computing"
            time.sleep(0.2)
            self.run()
        return self

    # ---------------------------------------------------------------------------- switches

    def widget(self, label: str) -> Any:
        """Return the widget with a label; there must be one."""
        kinds = ("selectbox", "segmented_control", "slider", "multiselect", "text_input", "button")
        found = [
            w
            for kind in kinds
            for w in getattr(self.at, kind)
            if w.label == label and not getattr(w, "form_id", "")
        ]
        assert len(found) == 1, f"{label!r}: {len(found)} widgets"
        return found[0]

    def has(self, label: str) -> bool:
        """Whether there is a widget with a label."""
        kinds = ("selectbox", "segmented_control", "slider", "multiselect", "text_input", "button")
        return any(w.label == label for kind in kinds for w in getattr(self.at, kind))

    def choose(self, label: str, value: Any) -> Screen:
        """Set a widget and run the page."""
        self.widget(label).set_value(value)
        return self.run()

    def press(self, label: str) -> Screen:
        """Press a button and run the page."""
        self.widget(label).click()
        return self.run()

    @property
    def address(self) -> dict[str, Any]:
        """The query part of the address."""
        return dict(self.at.query_params)

    # --------------------------------------------------------------------------- contents

    @property
    def texts(self) -> list[str]:
        """Plain text on the page."""
        return [str(text.value) for text in self.at.text]

    @property
    def html(self) -> str:
        """All of the page's own HTML."""
        return "\n".join(str(part.proto.body) for part in self.at.get("html"))

    @property
    def markdown(self) -> str:
        """All Markdown, captions included."""
        return "\n".join(str(part.value) for part in (*self.at.markdown, *self.at.caption))

    @property
    def everything(self) -> str:
        """All text in which something secret could be shown, and the address."""
        boxes = [f"{w.label} {w.options}" for w in self.at.selectbox]
        buttons = [f"{w.label} {w.proto.help}" for w in (*self.at.button, *self.at.checkbox)]
        tables = [frame.value.to_string() for frame in self.at.dataframe]
        parts = [*self.texts, self.markdown, self.html, *boxes, *buttons, *tables]
        return "\n".join([*parts, str(self.address)])

    @property
    def title(self) -> str:
        """The page's heading."""
        found = re.search(r'<h1 class="rise-title">(.*?)</h1>', self.html, re.S)
        assert found, "no title"
        return html.unescape(re.sub(r"<.*?>", "", found[1]))

    @property
    def facts(self) -> dict[str, str]:
        """The line of facts: name to value."""
        found = re.search(r'<div class="rise-facts">(.*?)</div>', self.html, re.S)
        assert found, "no facts"
        pairs = re.findall(r"<i>(.*?)</i>\s*<b>(.*?)</b>", found[1], re.S)
        return {html.unescape(name): html.unescape(value) for name, value in pairs}

    @property
    def cards(self) -> dict[str, str]:
        """Indicators: key to the value as shown."""
        found = re.search(r'<table class="rise-cards.*?</table>', self.html, re.S)
        assert found, "no indicators"
        keys = {metric.name: key for key, metric in METRICS.items()}
        shown = {}
        for row in re.findall(r"<tr>(.*?)</tr>", found[0], re.S):
            name = re.search(r'<td class="name"[^>]*>([^<]*)', row)
            value = re.search(r'<td class="value"><b>(.*?)</b>', row)
            assert name, row
            assert value, row
            shown[keys[html.unescape(name[1]).strip()]] = html.unescape(value[1])
        return shown

    @property
    def table(self) -> pd.DataFrame:
        """The table of runs."""
        found = [d for d in self.at.dataframe if str(d.key or "").startswith("runs ")]
        assert len(found) == 1, f"{len(found)} tables of runs"
        return found[0].value

    @property
    def table_key(self) -> str:
        """Key of the table of runs."""
        return next(str(d.key) for d in self.at.dataframe if str(d.key or "").startswith("runs "))

    # ------------------------------------------------------------------------------ chart

    @property
    def chart(self) -> Any:
        """The RISE chart's message; there must be one."""
        found = self.at.get("vega_lite_chart")
        assert len(found) == 1, f"{len(found)} charts"
        return found[0].proto

    @property
    def spec(self) -> dict[str, Any]:
        """The RISE chart's specification."""
        loaded: dict[str, Any] = json.loads(self.chart.spec)
        return loaded

    @property
    def drawn(self) -> list[pd.DataFrame]:
        """The tables that the chart draws."""
        return [arrow(data.data.data) for data in self.chart.datasets]

    def drawn_with(self, columns: set[str]) -> pd.DataFrame:
        """Return the one drawn table with exactly these columns."""
        found = [table for table in self.drawn if set(table.columns) == columns]
        assert len(found) == 1, [list(table.columns) for table in self.drawn]
        return found[0]

    @property
    def curves(self) -> pd.DataFrame:
        """Points of the group curves."""
        return self.drawn_with(CURVE_COLUMNS)

    @property
    def pieces(self) -> pd.DataFrame:
        """Points of the global curve, cut into pieces."""
        return self.drawn_with(PIECE_COLUMNS)


def arrow(data: bytes) -> pd.DataFrame:
    """Read a table as Streamlit sends it."""
    return pa.ipc.open_stream(io.BytesIO(data)).read_pandas()


def values_of(ev: Evaluation, keys: Mapping[str, str] | None = None) -> dict[str, str]:
    """Indicators of an evaluation as people read them, for the keys that are shown."""
    shown = METRICS if keys is None else keys
    return {key: format_number(value) for key, value in ev.indicators if key in shown}


def same_rows(shown: pd.DataFrame, wanted: pd.DataFrame) -> bool:
    """Whether two tables hold the same rows, to a millionth."""
    columns = list(wanted.columns)
    try:
        pd.testing.assert_frame_equal(
            shown[columns].reset_index(drop=True),
            wanted.reset_index(drop=True),
            check_dtype=False,
            check_index_type=False,
            check_column_type=False,
            atol=2e-6,
        )
    except AssertionError:
        return False
    return True
