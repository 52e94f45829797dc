from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from starlette.websockets import WebSocketDisconnected

from rise_app.quiet import keep_log_quiet


@pytest.fixture
def uvicorn() -> Iterator[logging.Logger]:
    logger = logging.getLogger("uvicorn.error")
    before = logger.filters[:]
    keep_log_quiet()
    yield logger
    logger.filters[:] = before


def test_a_closed_tab_is_no_fault(
    uvicorn: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    try:
        raise WebSocketDisconnected("closed")
    except WebSocketDisconnected:
        uvicorn.exception("Exception in ASGI application\n")
    assert caplog.records == []


def test_any_other_fault_is_logged(
    uvicorn: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        uvicorn.exception("Exception in ASGI application\n")
    assert len(caplog.records) == 1


def test_installing_it_again_changes_nothing(uvicorn: logging.Logger) -> None:
    keep_log_quiet()
    assert len(uvicorn.filters) == len(set(uvicorn.filters))
