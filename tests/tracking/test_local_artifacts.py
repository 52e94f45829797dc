"""A server elsewhere must not have files of this machine read out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rise_core.exceptions import ArtifactStoreError
from rise_core.tracking import connect
from rise_core.tracking.address import parse_address
from rise_core.tracking.files import LocalFiles, open_files
from tests.tracking.conftest import _workspace


@pytest.mark.parametrize("form", ["{}", "file://{}", "FILE:{}", "file://localhost{}"])
def test_a_server_elsewhere_names_a_folder_here(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "salaries.csv").write_text("name,pay\nann,1\n")
    address = parse_address("https://mlflow.example.org:5000")
    with pytest.raises(ArtifactStoreError, match=r"may not name folders.*--serve-artifacts"):
        open_files(form.format(tmp_path), address)
    monkeypatch.setenv("RISE_ALLOW_LOCAL_ARTIFACTS", "0")
    with pytest.raises(ArtifactStoreError, match="RISE_ALLOW_LOCAL_ARTIFACTS=1"):
        open_files(form.format(tmp_path), address)
    monkeypatch.setenv("RISE_ALLOW_LOCAL_ARTIFACTS", "1")
    files = open_files(form.format(tmp_path), address)
    assert isinstance(files, LocalFiles)
    assert [entry.path for entry in files.entries()] == ["salaries.csv"]


@pytest.mark.parametrize(
    ("uri", "here"),
    [
        ("http://localhost:5000", True),
        ("http://127.0.0.1:5000", True),
        ("http://127.8.0.1", True),
        ("http://[::1]:5000", True),
        ("http://ann:pw@127.0.0.1:5000", True),
        ("sqlite:///mlflow.db", True),
        ("http://10.0.0.7:5000", False),
        ("http://0.0.0.0:5000", False),
        ("https://localhost.example.org", False),
        ("http://127.0.0.1.example.org", False),
        ("http://127.0.0.1@example.org", False),
    ],
)
def test_what_is_this_machine(uri: str, here: bool) -> None:
    assert parse_address(uri).on_this_machine is here


def test_a_server_of_this_machine_without_its_proxy(server_url, frame, tmp_path) -> None:
    workspace = _workspace(server_url, str(tmp_path / "files"))
    run_id = workspace.run()
    file = tmp_path / "predictions.csv"
    frame.to_csv(file, index=False)
    workspace.client.log_artifact(run_id, str(file))
    store = connect(server_url)
    assert len(store.load(run_id).frame) == len(frame)
    # the same server by another name, as seen from elsewhere: with or without the cached copy
    store.address = replace(store.address, uri="http://mlflow.example.org:5000")
    with pytest.raises(ArtifactStoreError, match="may not name folders"):
        store.load(run_id)
