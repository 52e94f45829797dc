"""Files straight from a server's artifact proxy, by the address that MLflow's interface gives them.

MLflow's client settles for each file anew whether it runs inside Databricks and what the
environment says of proxies, and several threads wait for each other at that: it costs more than to
read and to evaluate the table. Here it is settled once for a login. Only the file itself is taken:
a login of a special kind, and every other answer, is left to MLflow's client, which then also says
what is amiss.
"""

from __future__ import annotations

import math
import os
import time
from functools import cache, lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rise_core.tracking.address import Address
from rise_core.tracking.preflight import Login, login

__all__ = ["StraightFetch"]

_CONNECTIONS = 16
_BLOCK = 1 << 20
_REST_SECONDS = 60.0
# what changes how MLflow asks, beyond name, password, token and certificates
_SPECIAL_VARIABLES = (
    "MLFLOW_TRACKING_AUTH",
    "MLFLOW_TRACKING_AWS_SIGV4",
    "MLFLOW_WORKSPACE",
    "MLFLOW_ENABLE_PROXY_MULTIPART_DOWNLOAD",
)


class StraightFetch:
    """Downloads from one server; safe to use from several threads.

    Parameters
    ----------
    address : of the tracking server
    patience : seconds to wait for a connection, and for each next byte
    """

    def __init__(self, address: Address, patience: float) -> None:
        self._address = address
        self._server = urlsplit(address.uri)[:2]
        self._patience = patience
        self._rests_until = math.inf if address.path is not None else 0.0

    def fetch(self, url: str, target: Path) -> bool:
        """Download the file at `url` to `target`; False where that is left to MLflow.

        After a failure all further files are for a minute, so that what is amiss costs one request.
        """
        # the login is for this server only
        if (
            time.monotonic() < self._rests_until
            or urlsplit(url)[:2] != self._server
            or _is_special()
        ):
            return False
        import requests

        session, kept, settings = _opened(self._address.uri, login(self._address))
        request = kept.copy()
        request.prepare_url(url, None)
        try:
            with session.send(
                request, timeout=(self._patience, self._patience), allow_redirects=False, **settings
            ) as response:
                if response.status_code == 200:
                    with target.open("wb") as file:
                        for block in response.iter_content(_BLOCK):
                            file.write(block)
                    return True
                if response.status_code == 404:  # that says nothing of other files
                    return False
        except requests.RequestException:
            pass  # MLflow's client says what is amiss
        self._rests_until = time.monotonic() + _REST_SECONDS
        return False


@lru_cache(maxsize=16)
def _opened(server: str, known: Login) -> tuple[Any, Any, dict[str, Any]]:
    """Session, a request to copy, and what the environment says of proxies and certificates."""
    import requests

    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, requests.adapters.HTTPAdapter(pool_maxsize=_CONNECTIONS))
    headers = {"Authorization": f"Bearer {known.token}"} if known.token else {}
    request = requests.Request("GET", server, headers=headers, auth=known.auth)
    settings = session.merge_environment_settings(server, {}, True, known.verify, known.certificate)
    return session, session.prepare_request(request), dict(settings)


def _is_special() -> bool:
    values = (os.environ.get(name, "").strip().lower() for name in _SPECIAL_VARIABLES)
    return any(value not in ("", "false", "0") for value in values) or _has_plugins()


@cache
def _has_plugins() -> bool:
    """Whether a package is installed that changes the requests of MLflow's client."""
    groups = ("mlflow.request_header_provider", "mlflow.request_auth_provider")
    return any(entry_points(group=group) for group in groups)
