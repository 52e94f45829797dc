"""Lines kept out of the log: what Streamlit's server says where nothing is wrong."""

from __future__ import annotations

import logging

__all__ = ["keep_log_quiet"]


class _ClosedTabs(logging.Filter):
    """Drops the traceback of a browser that left while something was being sent to it.

    Streamlit 1.67 closes a socket that Starlette 1.x has closed already, and the server logs that
    as a fault of the application, some forty lines for every closed tab.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record stays."""
        error = record.exc_info[1] if record.exc_info else None
        return type(error).__name__ != "WebSocketDisconnected"


_CLOSED_TABS = _ClosedTabs()


def keep_log_quiet() -> None:
    """Install the filter; again is the same as once."""
    logging.getLogger("uvicorn.error").addFilter(_CLOSED_TABS)
