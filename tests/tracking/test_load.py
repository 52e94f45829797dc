"""Finding, fetching and reading tables: over a real server and from a database's own folder."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pandas as pd
import pytest

from rise_core import Predictions, evaluate_predictions
from rise_core.columns import Roles
from rise_core.exceptions import (
    ArtifactStoreError,
    RiseError,
    ServerUnreachableError,
    UnreadableTableError,
)
from rise_core.tracking import Table, TableRef, connect


def log_table_file(workspace, run_id: str, frame: pd.DataFrame, folder: Path, name: str) -> None:
    """Log `frame` the way a script would: to a file, then log_artifact."""
    folder.mkdir(exist_ok=True)
    file = folder / Path(name).name
    if name.endswith(".parquet"):
        frame.to_parquet(file)
    elif ".csv" in name:
        frame.to_csv(file, index=False)
    elif name.endswith(".jsonl"):
        frame.to_json(file, orient="records", lines=True, double_precision=15)
    else:
        raise AssertionError(name)
    parent = str(Path(name).parent)
    workspace.client.log_artifact(run_id, str(file), None if parent == "." else parent)


def put(workspace, run_id: str, folder: Path, name: str, content: bytes) -> None:
    folder.mkdir(exist_ok=True)
    file = folder / Path(name).name
    file.write_bytes(content)
    parent = str(Path(name).parent)
    workspace.client.log_artifact(run_id, str(file), None if parent == "." else parent)


@pytest.mark.parametrize(
    "name",
    ["predictions.parquet", "out/test_predictions.csv", "preds.csv.gz", "a/b/scores.jsonl"],
)
def test_forms_logged_as_files(workspace, frame, tmp_path, name: str) -> None:
    run_id = workspace.run()
    log_table_file(workspace, run_id, frame, tmp_path / "out", name)
    store = connect(workspace.uri)
    assert [ref.path for ref in store.tables(run_id)] == [name]
    table = store.load(run_id)
    pd.testing.assert_frame_equal(table.frame, frame, check_dtype=False)
    assert (table.path, table.run_id, table.roles_from) == (name, run_id, "guessed")
    roles = table.roles
    assert (roles.y_true, roles.y_prob, roles.pos_label) == ("y_true", "y_prob", "yes")
    assert roles.sensitive_features == ("sex", "region_code")
    found = evaluate_predictions(Predictions.from_frame(table.frame, roles))
    wanted = evaluate_predictions(Predictions.from_frame(frame, roles))
    assert found.indicators == wanted.indicators


def test_tables_of_log_table_are_found_by_tag_without_a_listing(on_server, frame, proxy) -> None:
    run_id = on_server.run()
    on_server.client.log_table(run_id, frame, "eval/preds.json")
    on_server.client.log_table(run_id, frame, "exact.parquet")
    store = connect(proxy.url)
    run = store.run(run_id)
    proxy.requests.clear()
    assert [ref.path for ref in store.tables(run)] == ["eval/preds.json", "exact.parquet"]
    assert proxy.requests == []
    table = store.load(run, "eval/preds.json")
    assert list(table.frame["region_code"].unique()) == list(frame["region_code"].unique())
    assert any("10 decimals" in note for note in table.notes)
    assert len(proxy.requests) == 2  # the folder, for the size; and the file
    proxy.requests.clear()
    assert store.load(run, "exact.parquet").frame["y_prob"].equals(frame["y_prob"])
    assert len(proxy.requests) == 2


def test_second_load_costs_no_request_and_gives_the_same_key(
    on_server, frame, tmp_path, proxy
) -> None:
    run_id = on_server.run()
    log_table_file(on_server, run_id, frame, tmp_path / "out", "p.csv")
    run = connect(proxy.url).run(run_id)
    first = connect(proxy.url).load(run)
    store = connect(proxy.url)  # as after a restart: only the disk remembers
    proxy.requests.clear()
    second = store.load(run)
    assert proxy.requests == []
    assert second.key == first.key
    assert second.roles == first.roles
    pd.testing.assert_frame_equal(first.frame, second.frame)
    assert store.load(run, refresh=True).key == first.key
    assert proxy.requests != []


def test_table_of_a_running_run_is_looked_at_again(on_server, frame, tmp_path) -> None:
    run_id = on_server.run(status=None)
    log_table_file(on_server, run_id, frame.head(100), tmp_path / "out", "p.csv")
    store = connect(on_server.uri)
    early = store.load(run_id)
    assert len(early.frame) == 100
    log_table_file(on_server, run_id, frame, tmp_path / "out", "p.csv")
    late = store.load(run_id)
    assert len(late.frame) == len(frame)
    assert late.key != early.key


def test_what_was_fetched_from_a_running_run_is_not_trusted_once_it_ends(
    on_server, frame, tmp_path
) -> None:
    run_id = on_server.run(status=None)
    log_table_file(on_server, run_id, frame, tmp_path / "out", "p.csv")
    store = connect(on_server.uri)
    early = store.load(run_id)
    # the same number of bytes, other content
    text = frame.to_csv(index=False).replace("female", "FEMALE")
    put(on_server, run_id, tmp_path / "out", "p.csv", text.encode())
    on_server.client.set_terminated(run_id)
    late = store.load(run_id)
    assert late.size == early.size
    assert "FEMALE" in set(late.frame["sex"])


def test_local_files_are_read_in_place(on_sqlite, frame, tmp_path) -> None:
    run_id = on_sqlite.run()
    log_table_file(on_sqlite, run_id, frame, tmp_path / "out", "p.csv")
    store = connect(on_sqlite.uri)
    store.load(run_id)
    assert not list(store.cache.folder.glob("*.data"))


def test_roles_file_beside_the_table(workspace, frame, tmp_path) -> None:
    run_id = workspace.run()
    odd = frame.rename(columns={"y_true": "col_a", "y_prob": "col_b", "sex": "col_c"})
    roles = Roles("col_a", "col_b", ("col_c",), pos_label="no")
    log_table_file(workspace, run_id, odd, tmp_path / "out", "deep/t.csv")
    put(
        workspace, run_id, tmp_path / "out", "deep/roles.json", json.dumps(roles.to_dict()).encode()
    )
    store = connect(workspace.uri)
    for _ in range(2):  # fetched, then from the cache
        table = store.load(run_id)
        assert table.roles == roles
        assert table.roles_from == "logged"


def test_roles_that_do_not_fit_the_table_are_not_used(on_sqlite, frame, tmp_path) -> None:
    run_id = on_sqlite.run()
    log_table_file(on_sqlite, run_id, frame, tmp_path / "out", "t.csv")
    for content in (b'{"y_true": "gone", "y_prob": "y_prob"}', b'{"y_true": 3}', b"[1]", b"{"):
        put(on_sqlite, run_id, tmp_path / "out", "roles.json", content)
        assert connect(on_sqlite.uri).load(run_id).roles_from == "guessed"


def test_roles_given_by_hand(on_sqlite, frame, tmp_path) -> None:
    run_id = on_sqlite.run()
    log_table_file(on_sqlite, run_id, frame, tmp_path / "out", "t.csv")
    roles = Roles("y_true", "y_prob", ("region_code",), pos_label="yes")
    assert connect(on_sqlite.uri).load(run_id, roles=roles).roles is roles


def test_several_tables_the_readable_one_is_taken(workspace, frame, tmp_path) -> None:
    run_id = workspace.run()
    other = pd.DataFrame({"epoch": range(50), "loss": range(50)})
    log_table_file(workspace, run_id, other, tmp_path / "out", "a_scores.parquet")
    put(workspace, run_id, tmp_path / "out", "b_pred.parquet", b"PAR1 no more")
    log_table_file(workspace, run_id, frame, tmp_path / "out", "final.csv")
    store = connect(workspace.uri)
    assert {ref.path for ref in store.tables(run_id)} == {
        "a_scores.parquet", "b_pred.parquet", "final.csv",
    }  # fmt: skip
    assert store.load(run_id).path == "final.csv"
    assert store.load(run_id, "a_scores.parquet").roles.missing == (
        "y_true", "y_prob", "sensitive_features",
    )  # fmt: skip


def test_model_files_and_metadata_are_no_tables(workspace, frame, tmp_path) -> None:
    run_id = workspace.run()
    for name in ("model/input_example.json", "roles.json", "metrics.json", "model/data.csv"):
        put(workspace, run_id, tmp_path / "out", name, b"{}")
    assert connect(workspace.uri).tables(run_id) == []
    with pytest.raises(UnreadableTableError, match=r"no table of predictions.*log_predictions"):
        connect(workspace.uri).load(run_id)


def test_run_without_files(workspace) -> None:
    with pytest.raises(UnreadableTableError, match="no table of predictions") as found:
        connect(workspace.uri).load(workspace.run("bare"))
    # a database is copied more easily than the folders it names
    on_disk = workspace.uri.startswith("sqlite")
    assert (
        re.search(r"its folder /\S+ is not on this machine", str(found.value)) is None
    ) != on_disk


def test_listings_are_few_and_not_deep(on_server, proxy, tmp_path) -> None:
    run_id = on_server.run()
    for k in range(12):
        put(on_server, run_id, tmp_path / "out", f"folder{k}/x/y/z/note.txt", b"x")
    store = connect(proxy.url)
    run = store.run(run_id)
    proxy.requests.clear()
    assert store.tables(run) == []
    assert len(proxy.requests) <= 8
    proxy.requests.clear()
    assert store.tables(run) == []
    assert proxy.requests == []  # the run has ended: remembered


def test_tables_of_a_logged_model(workspace, frame, tmp_path) -> None:
    from mlflow.entities import LoggedModelOutput

    client = workspace.client
    run_id = workspace.run(status=None)
    model = client.create_logged_model(workspace.experiment_id, source_run_id=run_id)
    (tmp_path / "model").mkdir()
    frame.to_parquet(tmp_path / "model" / "test_predictions.parquet")
    client.log_model_artifacts(model.model_id, str(tmp_path / "model"))
    client.log_outputs(run_id, [LoggedModelOutput(model.model_id, 0)])
    client.set_terminated(run_id)
    store = connect(workspace.uri)
    for _ in range(2):  # listed, then remembered
        (ref,) = store.tables(run_id)
        assert (ref.path, ref.root) == ("test_predictions.parquet", model.artifact_location)
        table = store.load(run_id)
        assert len(table.frame) == len(frame)


def test_roles_kept_for_an_experiment(on_server, frame, tmp_path) -> None:
    odd = frame.rename(columns={"y_true": "col_a", "y_prob": "col_b", "sex": "col_c"})
    runs = [on_server.run(str(k)) for k in range(2)]
    for run_id in runs:
        log_table_file(on_server, run_id, odd, tmp_path / "out", "t.csv")
    roles = Roles("col_a", "col_b", ("col_c",), pos_label="no")
    store = connect(on_server.uri)
    assert store.kept_roles(on_server.experiment_id) is None
    store.keep_roles(on_server.experiment_id, roles)
    again = connect(on_server.uri)
    table = again.load(runs[1])
    assert (table.roles, table.roles_from) == (roles, "experiment")
    again.keep_roles(on_server.experiment_id, None)
    assert again.load(runs[1]).roles_from == "guessed"
    # the next person finds them in the experiment's tag
    on_server.client.set_experiment_tag(
        on_server.experiment_id, "rise.roles", json.dumps(roles.to_dict())
    )
    again.experiments()
    assert again.load(runs[1]).roles == roles
    on_server.client.set_experiment_tag(on_server.experiment_id, "rise.roles", "{broken")
    again.experiments()
    assert again.load(runs[1]).roles_from == "guessed"


# ----------------------------------------------------------------------------------- faults


def test_table_above_the_limit(workspace, frame, tmp_path) -> None:
    run_id = workspace.run()
    log_table_file(workspace, run_id, frame, tmp_path / "out", "p.csv")
    store = connect(workspace.uri)
    with pytest.raises(UnreadableTableError, match=r"more than the limit of 0.0 MB. Raise"):
        store.load(run_id, max_bytes=1000)
    assert len(store.load(run_id, max_bytes=1_000_000).frame) == len(frame)


def test_damaged_parquet(workspace, frame, tmp_path) -> None:
    run_id = workspace.run()
    file = tmp_path / "whole.parquet"
    frame.to_parquet(file)
    data = bytearray(file.read_bytes())
    data[-60:-8] = b"\xff" * 52
    put(workspace, run_id, tmp_path / "out", "p.parquet", bytes(data))
    with pytest.raises(UnreadableTableError, match=r"p.parquet .*damaged"):
        connect(workspace.uri).load(run_id)


@pytest.mark.parametrize(
    "path", ["../p.csv", "a/../../p.csv", "/etc/passwd", "a\\b.csv", "p\x00.csv", "~/p.csv",
             "file:///etc/passwd", "C:/p.csv", ""],
)  # fmt: skip
def test_unsafe_names_are_refused(workspace, path: str) -> None:
    run_id = workspace.run()
    for wanted in (path, TableRef(path)):
        with pytest.raises(UnreadableTableError, match="not safe"):
            connect(workspace.uri).load(run_id, wanted)


def test_unsafe_name_in_a_tag(on_sqlite, tmp_path, frame) -> None:
    outside = tmp_path / "outside.csv"
    frame.to_csv(outside)
    logged = json.dumps([{"path": "../../../outside.csv", "type": "table"}])
    run_id = on_sqlite.run(**{"mlflow.loggedArtifacts": logged})
    with pytest.raises(UnreadableTableError, match="not safe"):
        connect(on_sqlite.uri).load(run_id)


def test_a_link_out_of_the_run_is_not_followed(on_sqlite, tmp_path, frame) -> None:
    outside = tmp_path / "outside.csv"
    frame.to_csv(outside)
    run_id = on_sqlite.run()
    folder = Path(on_sqlite.client.get_run(run_id).info.artifact_uri)
    folder.mkdir(parents=True)
    (folder / "p.csv").symlink_to(outside)
    with pytest.raises(UnreadableTableError, match="through a link"):
        connect(on_sqlite.uri).load(run_id, "p.csv")


def test_download_cut_short(on_server, proxy, frame, tmp_path) -> None:
    run_id = on_server.run()
    log_table_file(on_server, run_id, frame, tmp_path / "out", "p.csv")
    cuts: list[str] = []

    def cut(path: str, status: int, body: bytes) -> tuple[int, bytes]:
        if path.endswith("/p.csv"):
            cuts.append(path)
            return status, body[:500]
        return status, body

    proxy.spoil = cut
    store = connect(proxy.url)
    with pytest.raises(ArtifactStoreError, match=r"incomplete, twice: 500 of [\d,]+ bytes"):
        store.load(run_id)
    assert len(cuts) == 2
    assert not list(store.cache.folder.glob("*.data"))
    proxy.spoil = None
    assert len(store.load(run_id).frame) == len(frame)


def test_file_removed_between_list_and_get(on_server, proxy, frame, tmp_path) -> None:
    run_id = on_server.run()
    log_table_file(on_server, run_id, frame, tmp_path / "out", "p.csv")
    proxy.spoil = lambda path, status, body: (
        (404, b'{"error_code": "RESOURCE_DOES_NOT_EXIST"}')
        if path.endswith("/p.csv")
        else (status, body)
    )
    with pytest.raises(ArtifactStoreError, match="listed but gone"):
        connect(proxy.url).load(run_id)


def test_named_file_that_is_not_there(workspace) -> None:
    run_id = workspace.run()
    with pytest.raises(ArtifactStoreError, match=r"There is no file 'p.csv'|not on this machine"):
        connect(workspace.uri).load(run_id, "p.csv")


def test_artifact_store_fails_while_metadata_works(on_server, proxy, frame, tmp_path) -> None:
    run_id = on_server.run()
    log_table_file(on_server, run_id, frame, tmp_path / "out", "p.csv")
    proxy.spoil = lambda path, status, body: (
        (403, b"AccessDenied") if "mlflow-artifacts" in path else (status, body)
    )
    with pytest.raises(ArtifactStoreError, match=r"answers, but the files of run .*cannot be read"):
        connect(proxy.url).load(run_id)


def test_files_on_another_machines_disk(server_url, proxy, frame) -> None:
    import mlflow

    client = mlflow.MlflowClient(tracking_uri=server_url)
    place = "/nowhere/on/this/machine"
    experiment = client.create_experiment("elsewhere", artifact_location=place)
    run_id = client.create_run(experiment).info.run_id
    with pytest.raises(ArtifactStoreError, match=r"of another machine.*--serve-artifacts"):
        connect(server_url).load(run_id)


def test_bucket_without_its_client(on_sqlite) -> None:
    import mlflow

    client = mlflow.MlflowClient(tracking_uri=on_sqlite.uri)
    experiment = client.create_experiment("bucket", artifact_location="s3://no-such-bucket/x")
    run_id = client.create_run(experiment).info.run_id
    with pytest.raises(ArtifactStoreError, match="s3://no-such-bucket"):
        connect(on_sqlite.uri).load(run_id)


def test_server_dies_during_a_download(on_server, proxy, frame, tmp_path) -> None:
    run_id = on_server.run()
    log_table_file(on_server, run_id, frame, tmp_path / "out", "p.csv")
    store = connect(proxy.url, timeout=2)
    run = store.run(run_id)

    def die(path: str, status: int, body: bytes) -> tuple[int, bytes] | None:
        proxy.dead = path.endswith("/p.csv")
        return None if proxy.dead else (status, body)

    proxy.spoil = die
    with pytest.raises(ServerUnreachableError):
        store.load(run)
    proxy.spoil, proxy.dead = None, False
    assert len(store.load(run).frame) == len(frame)


# -------------------------------------------------------------------------------- many runs


def test_many_runs_one_failure_stops_no_other(workspace, frame, tmp_path) -> None:
    runs = []
    for k in range(6):
        run_id = workspace.run(str(k))
        if k == 2:
            put(workspace, run_id, tmp_path / "out", "p.parquet", b"PAR1 broken")
        elif k != 4:
            log_table_file(workspace, run_id, frame.head(50 + k), tmp_path / "out", "p.csv")
        runs.append(run_id)
    store = connect(workspace.uri)
    wanted = [store.run(run_id) for run_id in runs]
    done: list[str] = []
    threads: set[str] = set()

    def on_done(run, result) -> None:  # type: ignore[no-untyped-def]
        done.append(run.id)
        threads.add(threading.current_thread().name)

    results = store.load_many(wanted, on_done=on_done)
    assert list(results) == runs
    assert sorted(done) == sorted(runs)
    assert threads == {threading.current_thread().name}
    for k, run_id in enumerate(runs):
        if k in (2, 4):
            assert isinstance(results[run_id], UnreadableTableError)
        else:
            assert isinstance(results[run_id], Table)
            assert len(results[run_id].frame) == 50 + k
    lengths = store.load_many(wanted, use=lambda run, table: len(table.frame))
    assert lengths[runs[5]] == 55
    assert isinstance(lengths[runs[2]], RiseError)


def test_a_fault_in_use_is_a_result_like_others(on_sqlite, frame, tmp_path) -> None:
    run_id = on_sqlite.run()
    log_table_file(on_sqlite, run_id, frame, tmp_path / "out", "p.csv")
    store = connect(on_sqlite.uri)
    results = store.load_many([store.run(run_id)], use=lambda run, table: 1 // 0)
    assert "ZeroDivisionError" in str(results[run_id])


def test_loading_many_can_be_stopped(on_sqlite, frame, tmp_path) -> None:
    for k in range(6):
        log_table_file(on_sqlite, on_sqlite.run(str(k)), frame, tmp_path / "out", "p.csv")
    store = connect(on_sqlite.uri)
    stop = threading.Event()
    results = store.load_many(
        store.runs(on_sqlite.experiment_id).runs,
        workers=1,
        stop=stop,
        use=lambda run, table: stop.set(),
    )
    assert len(results) == 1
    assert store.load_many([]) == {}
