"""Charts for a file: their specifications, the program that draws them, and pictures."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from rise_core.charts.theme import ThemeName
from rise_core.exceptions import RiseError
from rise_core.report.html import Markup, text

__all__ = ["Figures", "chart_image", "engine_versions", "spec_of", "vega_bundle"]

_SCHEMES: tuple[ThemeName, ...] = ("light", "dark")
_TRIES = 50


def chart_image(
    chart: Any,
    format: Literal["png", "svg"] = "png",  # noqa: A002
    *,
    scale: float = 2.0,
) -> bytes:
    """Picture of a chart.

    Parameters
    ----------
    chart : an Altair chart of a width in pixels, such as ``rise_chart(ev, width=900)``
    format : "png" or "svg"
    scale : pixels of the PNG per pixel of the chart

    Raises
    ------
    RiseError
        an unknown format, a chart that follows a container's width, or no vl-convert-python
    """
    if format not in ("png", "svg"):
        raise RiseError(f'format must be "png" or "svg", got {format!r}')
    spec = spec_of(chart)
    if spec.get("width") == "container":
        raise RiseError(
            'A picture needs a width in pixels; this chart has width="container". Draw it with '
            "width=900, for instance."
        )
    converter = _converter()
    if format == "svg":
        return str(converter.vegalite_to_svg(spec)).encode("utf-8")
    return bytes(converter.vegalite_to_png(spec, scale=scale))


def spec_of(chart: Any) -> dict[str, Any]:
    """Return a chart's specification with its data in it.

    Notes
    -----
    While Streamlit shows a chart it swaps Altair's data transformer for the whole process, and a
    chart that another thread compiles meanwhile comes out without data: that is seen, and tried
    again.
    """
    for _ in range(_TRIES):
        spec: dict[str, Any] = chart.to_dict(validate=False)
        if _named(spec) <= set(spec.get("datasets", {})):
            return spec
        time.sleep(0.02)
    raise RiseError(
        "The chart's data could not be read: another part of this program has changed Altair's "
        "data transformer. Set it back: altair.data_transformers.enable('default')"
    )


def _named(spec: Any) -> set[str]:
    """Names of the data that a specification asks for."""
    if isinstance(spec, list):
        return set().union(*map(_named, spec)) if spec else set()
    if not isinstance(spec, dict):
        return set()
    data = spec.get("data")
    own = {data["name"]} if isinstance(data, dict) and set(data) == {"name"} else set()
    return own.union(*(_named(value) for key, value in spec.items() if key != "datasets"))


@dataclass
class Figures:
    """The charts of one report; equal data is kept once.

    ``place`` gives the element in which the page's program draws a chart.
    """

    specs: dict[str, dict[str, Any]] = field(default_factory=dict)
    datasets: dict[str, Any] = field(default_factory=dict)

    def place(self, draw: Callable[[ThemeName], Any], caption: str = "") -> Markup:
        """Add a chart.

        Parameters
        ----------
        draw : gives the chart in a theme, with ``width="container"``
        caption : text below it
        """
        return self.place_each(lambda theme: {"": draw(theme)}, caption)

    def place_each(
        self, draw: Callable[[ThemeName], Mapping[str, Any]], caption: str = ""
    ) -> Markup:
        """Add several charts that are made together, side by side."""
        drawn: dict[str, Mapping[str, Any]] = {theme: draw(theme) for theme in _SCHEMES}
        made = []
        for key in drawn["light"]:
            name = f"figure-{len(self.specs) + 1}"
            specs: dict[str, dict[str, Any]] = {
                theme: self._keep(spec_of(drawn[theme][key])) for theme in _SCHEMES
            }
            self.specs[name] = specs
            # Room from the start, so that the page does not jump when the charts come.
            height = int(specs["light"].get("height", 0)) + 40
            made.append(
                f'<div class="chart" data-chart="{name}" style="min-height:{height}px"></div>'
            )
        under = f"<figcaption>{text(caption)}</figcaption>" if caption else ""
        return Markup(f"<figure>{_grid(made)}{under}</figure>")

    def _keep(self, spec: dict[str, Any]) -> dict[str, Any]:
        data = spec.pop("datasets", {})
        self.datasets |= data
        # The names tell the page's program which data belongs to which chart.
        return {**spec, "datasets": list(data)}

    def to_dict(self) -> dict[str, Any]:
        """Return what the page's program reads."""
        return {"specs": self.specs, "datasets": self.datasets}


def _grid(charts: list[str]) -> str:
    return charts[0] if len(charts) == 1 else f'<div class="charts">{"".join(charts)}</div>'


@cache
def vega_bundle() -> str:
    """Return Vega, Vega-Lite and vega-embed as one program, about 900 kB; made once a process.

    Raises
    ------
    RiseError
        vl-convert-python is not installed
    """
    program = str(_converter().javascript_bundle())
    # Inside a script element only this text could end it; in a string the backslash says nothing.
    return re.sub(r"</(?=script)", r"<\\/", program, flags=re.IGNORECASE).replace("<!--", r"<\!--")


def engine_versions() -> dict[str, str]:
    """Versions of the programs that draw."""
    import altair

    converter = _converter()
    return {
        "altair": altair.__version__,
        "vega": str(converter.get_vega_version()),
        "vega-lite": str(converter.get_vegalite_versions()[-1]),
        "vega-embed": str(converter.get_vega_embed_version()),
        "vl-convert-python": str(converter.__version__),
    }


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise RiseError(
            "Pictures and reports need vl-convert-python, which is not installed. Install it: "
            'pip install "rise-core[charts,export]"'
        ) from error
    return vl_convert
