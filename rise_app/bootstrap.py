"""What every page does first: page set-up, sidebar, connection."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rise_app import address
from rise_app.connection import open_store
from rise_app.messages import show_error
from rise_app.quiet import keep_log_quiet
from rise_app.servers import Server, choose_server, servers
from rise_core.charts.theme import ThemeName
from rise_core.exceptions import RiseError
from rise_core.report.html import STRIP_STYLE
from rise_core.tracking import Store

__all__ = ["PAGES", "Page", "Scene", "Stage", "begin", "begin_alone"]

_STYLES = (Path(__file__).with_name("style.css"), STRIP_STYLE)


@dataclass(frozen=True)
class Page:
    """A page of the app: its file, its name and the question it answers."""

    file: str
    title: str
    icon: str
    question: str


PAGES = {
    page.title: page
    for page in (
        Page(
            "app.py",
            "Experiments",
            ":material/view_list:",
            "What is there, and what is worth a look?",
        ),
        Page(
            "pages/diagnose.py",
            "Diagnose",
            ":material/show_chart:",
            "Where does this model err, and for whom?",
        ),
        Page("pages/compare.py", "Compare", ":material/balance:", "Which one do we take?"),
        Page(
            "pages/environments.py",
            "Environments",
            ":material/public:",
            "Does it hold elsewhere?",
        ),
        Page("pages/learn.py", "Learn", ":material/school:", "What does fair look like?"),
        Page(
            "pages/add.py",
            "Add predictions",
            ":material/upload_file:",
            "I have a file, and no MLflow.",
        ),
    )
}


@dataclass(frozen=True)
class Scene:
    """What every page starts with: a place for its switches, and the browser's theme."""

    switches: DeltaGenerator
    theme: ThemeName


@dataclass(frozen=True)
class Stage(Scene):
    """What a page on runs starts with: the store as well."""

    store: Store


def begin(title: str) -> Stage:
    """Set the page up, draw the sidebar's head, and open the store; ends the run on failure.

    Every page on runs calls it, `app.py` too: a deep link runs the page's file alone.
    """
    head = _begin(title)
    try:
        with head.server:
            server = choose_server()
    except RiseError as error:
        _show_links(head)
        show_error("The servers to choose from are not set up as they must be.", error)
        st.stop()
    _show_links(head)
    store = open_store(server)
    several = len(servers()) > 1
    with head.server if several else st.sidebar:  # under the box in which it was chosen
        _show_connection(server, store, several)
    return Stage(head.switches, _theme(), store)


def begin_alone(title: str) -> Scene:
    """Set the page up and draw the sidebar's head, for a page that needs no store."""
    head = _begin(title)
    _show_links(head)
    return Scene(head.switches, _theme())


@dataclass(frozen=True)
class _Head:
    """The sidebar's places, from top to bottom."""

    page: Page
    links: DeltaGenerator
    server: DeltaGenerator
    switches: DeltaGenerator


def _begin(title: str) -> _Head:
    keep_log_quiet()
    st.set_page_config(page_title=f"{title} · RISE", page_icon="📈", layout="wide")
    for style in _STYLES:
        st.html(style)
    with st.sidebar:
        st.html('<div class="rise-brand">RISE<span>where, and for whom, a model errs</span></div>')
        return _Head(PAGES[title], st.container(), st.container(), st.container(key="switches"))


def _show_links(head: _Head) -> None:
    """Link the other pages, with what is chosen; the server must have been settled before."""
    with head.links:
        for other in PAGES.values():
            here = other is head.page
            st.page_link(
                other.file,
                label=other.title,
                icon=other.icon,
                help=other.question,
                query_params=None if here else address.query_for(),
                disabled=here,
                width="stretch",
            )


def _theme() -> ThemeName:
    return "dark" if st.context.theme.type == "dark" else "light"


def _show_connection(server: Server, store: Store, several: bool) -> None:
    if server.is_demo and not several:
        st.caption("Demo store. Set `MLFLOW_TRACKING_URI` to see your own runs.")
        return
    facts = store.facts
    place = "The demo store" if server.is_demo else store.label
    who = f" as {facts.user}" if facts.user else ""
    said = escape(f"{place}{who}, connected in {facts.seconds:.1f} s.")
    st.html(f'<p class="rise-note rise-where">{said} Reads only; writes when you ask.</p>')
