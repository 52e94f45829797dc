"""The servers that can be chosen: only from a configured list, and by name."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import streamlit as st

from rise_app import address
from rise_core.exceptions import TrackingError
from rise_core.tracking.address import clean_text, parse_address, redact

__all__ = ["LIST_VARIABLE", "Server", "choose_server", "chosen_server", "query_of", "servers"]

LIST_VARIABLE = "RISE_TRACKING_URIS"
"""Environment variable: the servers to choose from, as ``name=address`` with blanks between."""
_ONE_VARIABLE = "MLFLOW_TRACKING_URI"
_DEMO = "demo"
_NAME = re.compile(r"[\w.-]{1,40}")
_IN_ADDRESS = "server"
_LAST, _UNKNOWN = "server used last", "server not known"


@dataclass(frozen=True)
class Server:
    """A store that can be chosen.

    Parameters
    ----------
    name : as people choose it, and as the app's address holds it
    uri : its address, with credentials if it has any; None for the demo store
    """

    name: str
    uri: str | None

    @property
    def is_demo(self) -> bool:
        """Whether it is the app's own demo."""
        return self.uri is None

    @property
    def label(self) -> str:
        """What it is, for people, without credentials and without opening it."""
        place = "the demo store of this machine" if self.uri is None else redact(self.uri)
        return place if self.name == place else f"{self.name}, {place}"


def servers() -> tuple[Server, ...]:
    """Return the servers to choose from, the default first.

    That is the one of ``MLFLOW_TRACKING_URI``, else the first of the list; where neither is set it
    is the demo store.

    Raises
    ------
    TrackingError
        an entry of the list is not ``name=address``, or two have one name
    """
    found = _listed(os.environ.get(LIST_VARIABLE, ""))
    uri = os.environ.get(_ONE_VARIABLE, "").strip()
    if uri:
        same = [server for server in found if server.uri is not None and _same(server.uri, uri)]
        first = same[0] if same else Server(redact(uri), uri)
        found = [first, *(server for server in found if server != first)]
    return tuple(found) or (Server("the demo store of this machine", None),)


def _listed(text: str) -> list[Server]:
    entries = [entry.partition("=") for entry in text.split()]
    for number, (name, sign, _) in enumerate(entries, 1):
        # Said without the entry itself: it may be the second half of a password with a blank.
        if not sign or not _NAME.fullmatch(name):
            raise TrackingError(
                f"Entry {number} of {LIST_VARIABLE} is not name=address, such as "
                "production=https://mlflow.example.org. A name has letters, digits, '.', '_' and "
                "'-', up to 40 of them; entries have blanks between them, and none inside: in a "
                "user name or a password a blank is written %20."
            )
    found: dict[str, Server] = {}
    for name, _, place in entries:
        if name.casefold() in found:
            raise TrackingError(
                f"{LIST_VARIABLE} has two entries {name!r} (capitals do not count). "
                "Give each server a name of its own."
            )
        found[name.casefold()] = Server(name, None if place == _DEMO else _checked(name, place))
    return list(found.values())


def _checked(name: str, uri: str) -> str:
    try:
        parse_address(uri)
    except TrackingError as error:
        raise TrackingError(f"Entry {name!r} of {LIST_VARIABLE}: {error}") from error
    return uri


def _same(one: str, other: str) -> bool:
    try:
        return parse_address(one).uri == parse_address(other).uri
    except TrackingError:
        return one == other


def chosen_server() -> Server:
    """Return the server that is chosen, else the default; raises as `servers`."""
    found = servers()
    name = address.chosen(_IN_ADDRESS)
    return next((server for server in found if server.name == name), found[0])


def query_of(server: Server) -> dict[str, str]:
    """Return what a link to something on a server must say of it; nothing for the default."""
    return {} if server == servers()[0] else {_IN_ADDRESS: server.name}


def choose_server() -> Server:
    """Draw the choice of a server, where there is one; raises as `servers`.

    The app's address holds the name, and nothing else is ever taken from there. With another
    server, what was chosen on the last one is forgotten: it would mean something else.
    """
    found = {server.name: server for server in servers()}
    default = next(iter(found))
    _settle(found, default)
    name = default
    if len(found) > 1:
        name = address.linked(
            st.selectbox, "Server", list(found), _IN_ADDRESS, default=default, then=_leave
        )
    unknown = st.session_state.get(_UNKNOWN)
    if unknown is not None:
        st.text(f"There is no server {clean_text(unknown, 40)!r} here. This is {name}.")
    st.session_state[_LAST] = name
    return found[name]


def _leave() -> None:
    st.session_state.pop(_UNKNOWN, None)
    address.leave_server()


def _settle(found: dict[str, Server], default: str) -> None:
    """Take in the server of a link, and forget what does not belong to it."""
    if _IN_ADDRESS not in st.query_params and address.is_linked():
        # The default has no name in the address: somebody went back to it.
        address.remember(_IN_ADDRESS, None)
    wanted = address.chosen(_IN_ADDRESS)
    if wanted is not None and wanted not in found:
        st.session_state[_UNKNOWN] = wanted
        address.remember(_IN_ADDRESS, None)
        address.leave_server()
    elif (wanted or default) != st.session_state.get(_LAST, wanted or default):
        st.session_state.pop(_UNKNOWN, None)
        address.leave_server(keep_linked=True)
