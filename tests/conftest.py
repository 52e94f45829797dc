"""What all tests share: no test may touch the person's own stores, caches or servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# What MLflow and the app leave in the folder one happens to stand in.
STRAY = ("mlruns", "mlartifacts", "mlflow.db", ".rise")
# Folders whose tests share something that takes seconds to start (a server, a filled store).
ONE_WORKER = ("app", "demo", "tracking")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep such a folder on one worker, so that it is started once."""
    for item in items:
        folder = item.path.relative_to(ROOT / "tests").parts[0]
        if folder in ONE_WORKER:
            item.add_marker(pytest.mark.xdist_group(folder))


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def method_data() -> Path:
    """Folder with the published predictions, which is not part of the repository."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the published predictions (../shared/data) are not on this machine")
    return folder


@pytest.fixture(autouse=True)
def _own_stores(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    before = {name for name in STRAY if (ROOT / name).exists()}
    # Not in tmp_path: a test may want to say what lies there.
    home = tmp_path_factory.mktemp("rise")
    monkeypatch.setenv("RISE_HOME", str(home))
    monkeypatch.setenv("RISE_CACHE_DIR", str(home / "cache"))
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("RISE_TRACKING_URIS", raising=False)
    monkeypatch.delenv("MLFLOW_REGISTRY_URI", raising=False)
    yield
    stray = {name for name in STRAY if (ROOT / name).exists()} - before
    assert not stray, f"this test, or one that ran beside it, wrote {stray} into the project"
