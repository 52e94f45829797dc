"""A tracking server that goes away and returns under an open page, which nobody touches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlflow
import pytest

from rise_core.synthetic import SyntheticModel
from rise_core.tracking import log_predictions
from tests.browser.conftest import running_app
from tests.tracking.conftest import FOREIGN_WARNINGS
from tests.tracking.servers import free_port, mlflow_server


@pytest.mark.timeout(400)
@pytest.mark.filterwarnings(*FOREIGN_WARNINGS)
def test_the_app_comes_back_by_itself(page: Any, tmp_path: Path) -> None:
    folder, port = tmp_path / "server", free_port()
    folder.mkdir()
    url = f"http://127.0.0.1:{port}"
    shown = page.locator(".rise-cards td.value b")
    said = page.get_by_text("There is no connection to the runs.")
    with running_app(tmp_path / "home", MLFLOW_TRACKING_URI=url) as app:
        page.goto(f"{app.url}/diagnose")
        said.wait_for()
        page.get_by_text(f"host refused the connection on port {port}").wait_for()
        with mlflow_server(folder, port=port):
            client = mlflow.MlflowClient(tracking_uri=url)
            run = client.create_run("0", run_name="logistic").info.run_id
            frame = SyntheticModel(bias=-1.5, rows=300).frame()
            log_predictions(frame["y_true"], frame["y_prob"], pos_label="synthetic yes",
                            sensitive_features=frame["synthetic group"],
                            run_id=run, tracking_uri=url)  # fmt: skip
            client.set_terminated(run)
            shown.first.wait_for()  # nobody pressed anything
            values = shown.all_inner_texts()
            assert said.count() == 0
        # Gone in the middle: a page that asks for something new says so, and asks again.
        page.goto(f"{app.url}/diagnose?run={'f' * 32}")
        refused = page.get_by_text(f"host refused the connection on port {port}")
        refused.wait_for()
        with mlflow_server(folder, port=port):
            page.get_by_text(f"Reading run {'f' * 32}: not found").wait_for()
            refused.wait_for(state="detached")
            page.goto(f"{app.url}/diagnose?run={run}")
            shown.first.wait_for()
            assert shown.all_inner_texts() == values
