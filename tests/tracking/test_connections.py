"""Ways to be connected, each on the real thing: login, PostgreSQL, an S3-type store, TLS."""

from __future__ import annotations

import datetime
import http.server
import ipaddress
import os
import ssl
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rise_core import Predictions, evaluate, evaluate_predictions
from rise_core.exceptions import (
    ArtifactStoreError,
    AuthenticationError,
    ServerUnreachableError,
    TrackingError,
)
from rise_core.tracking import Store, connect, log_predictions, where
from rise_core.tracking.writing import plan, write
from tests.tracking.conftest import Workspace, _workspace, send
from tests.tracking.servers import (
    ADMIN,
    PASSWORD,
    as_admin,
    guarded_server,
    mlflow_server,
    postgresql,
    postgresql_programs,
)


def log(workspace: Workspace, frame, name: str = "erm", **tags: str) -> str:
    run_id = workspace.run(name, **tags)
    log_predictions(frame["y_true"], frame["y_prob"], sensitive_features=frame["sex"],
                    run_id=run_id, tracking_uri=workspace.uri)  # fmt: skip
    return run_id


def assert_evaluates(store: Store, run_id: str, frame) -> None:
    table = store.load(run_id)
    found = evaluate_predictions(Predictions.from_frame(table.frame, table.roles))
    wanted = evaluate(frame["y_true"], frame["y_prob"], sensitive_features=frame["sex"])
    assert dict(found.indicators) == pytest.approx(dict(wanted.indicators))
    assert store.run(run_id).metrics["rise.w1"] == pytest.approx(wanted.indicators.w1)


# -------------------------------------------------------------------------------------- login


@pytest.fixture(scope="module")
def guarded_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server that wants a login."""
    pytest.importorskip("flask_wtf", reason="mlflow's basic-auth needs Flask-WTF")
    with guarded_server(tmp_path_factory.mktemp("basic-auth")) as url:
        yield url


def login(monkeypatch: pytest.MonkeyPatch, user: str, password: str) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", user)
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", password)


def test_login_from_the_environment(guarded_url, frame, monkeypatch) -> None:
    with pytest.raises(AuthenticationError, match=r"wants a login \(401\).*without credentials"):
        connect(guarded_url)
    login(monkeypatch, ADMIN, "wrong")
    with pytest.raises(AuthenticationError, match=r"wants a login \(401\).*as 'admin'"):
        connect(guarded_url)
    login(monkeypatch, ADMIN, PASSWORD)
    workspace = _workspace(guarded_url)
    run_id = log(workspace, frame)
    store = connect(guarded_url)
    assert store.facts.user == ADMIN
    assert_evaluates(store, run_id, frame)


def with_login(url: str, user: str, password: str) -> str:
    return url.replace("http://", f"http://{user}:{password.replace(' ', '%20')}@")


def test_who_may_only_read_reads_and_is_told_when_writing(guarded_url, frame, monkeypatch) -> None:
    # MLflow keeps the way to a run's files: the next user must not go it with this login
    workspace = _workspace(with_login(guarded_url, ADMIN, PASSWORD))
    run_id = log(workspace, frame)
    as_admin(guarded_url, "users/create", username="reader", password="another long word 2")
    login(monkeypatch, "reader", "another long word 2")
    store = connect(guarded_url, writable=True)
    assert store.facts.user == "reader"
    assert_evaluates(store, run_id, frame)
    with pytest.raises(AuthenticationError, match=r"Writing files.*Ask for the permission"):
        write(store, plan(store, run_id, report="x"))
    assert [ref.path for ref in store.tables(store.run(run_id))] == ["rise/predictions.parquet"]

    # access taken away while one is connected
    as_admin(guarded_url, "users/update-password", "PATCH", username="reader", password=PASSWORD)
    with pytest.raises(AuthenticationError, match=r"refuses it for this user.*permission"):
        store.run(run_id)


def test_a_password_in_the_address_is_used_and_never_shown(guarded_url) -> None:
    store = connect(with_login(guarded_url, ADMIN, PASSWORD))
    assert [experiment.name for experiment in store.experiments()]
    assert "long" not in store.label + repr(store)


# --------------------------------------------------------------------------------- PostgreSQL


@pytest.fixture(scope="module")
def on_postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """An experiment on a server whose database is PostgreSQL."""
    pytest.importorskip("psycopg2", reason="psycopg2 is not installed")
    programs = postgresql_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (on Debian: apt-get install postgresql)")
    folder = tmp_path_factory.mktemp("on-postgresql")
    with postgresql(programs) as backend, mlflow_server(folder, backend=backend) as url:
        yield _workspace(url)


def test_postgresql_behind_the_server(on_postgresql, frame) -> None:
    workspace = on_postgresql
    ids = [log(workspace, frame, f"run {i}", dataset="O'Hare" if i % 2 else "b", seed=str(i))
           for i in range(5)]  # fmt: skip
    store = connect(workspace.uri)
    assert_evaluates(store, ids[0], frame)
    page = store.runs(workspace.experiment_id, max_results=2)
    rest = store.runs(workspace.experiment_id, max_results=9, page_token=page.next_token)
    assert [run.id for run in (*page.runs, *rest.runs)] == ids[::-1]  # newest first
    chosen = store.runs(workspace.experiment_id, filter=where("RUN", dataset="O'Hare"))
    assert sorted(run.id for run in chosen.runs) == sorted(ids[1::2])
    by_metric = store.runs(workspace.experiment_id, filter="metrics.`rise.w1` > 0",
                           order_by=["tags.seed ASC"])  # fmt: skip
    assert [run.seed for run in by_metric.runs] == ["0", "1", "2", "3", "4"]
    workspace.client.log_metric(ids[1], "loss", float("inf"))
    assert store.run(ids[1]).metrics["loss"] == float("inf")
    workspace.client.delete_run(ids[4])
    assert ids[4] not in [run.id for run in store.runs(workspace.experiment_id).runs]
    writable = connect(workspace.uri, writable=True)
    assert write(writable, plan(writable, ids[0], report="<p>x</p>"))


# ----------------------------------------------------------------------------------- S3 store


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Name of a bucket in an S3-compatible server; stopping it is the caller's own affair."""
    boto3 = pytest.importorskip("boto3")
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    for name, value in {
        "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "s3cret", "AWS_PROFILE": None,
        "AWS_DEFAULT_REGION": "us-east-1", "MLFLOW_S3_ENDPOINT_URL": endpoint,
        # nobody's own settings, and no search for a cloud machine's
        "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():  # fmt: skip
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket="models")
    monkeypatch.setattr("tests.tracking.test_connections.stop_bucket", server.stop)
    yield "models"
    server.stop()


def stop_bucket() -> None:
    """Stop the S3-compatible server; set by the fixture."""


@pytest.fixture
def on_s3(server_url, bucket) -> Workspace:
    """An experiment whose files lie in a bucket, which clients read themselves."""
    return _workspace(server_url, f"s3://{bucket}/exp {time.monotonic_ns()}")


def test_tables_in_an_s3_store(on_s3, frame, tmp_path) -> None:
    ours = log(on_s3, frame)
    plain = on_s3.run("plain")
    file = tmp_path / "test_predictions.csv"
    frame.to_csv(file, index=False)
    on_s3.client.log_artifact(plain, str(file), "out")
    store = connect(on_s3.uri)
    assert store.run(ours).artifact_uri.startswith("s3://models/")
    assert_evaluates(store, ours, frame)
    (ref,) = store.tables(plain)
    assert (ref.path, ref.size) == ("out/test_predictions.csv", file.stat().st_size)
    assert list(store.load(plain).frame["region_code"]) == list(frame["region_code"])
    many = store.load_many([store.run(ours), store.run(plain)])
    assert [table.path for table in many.values()] == ["rise/predictions.parquet", ref.path]
    writable = connect(on_s3.uri, writable=True)
    write(writable, plan(writable, ours, report="<p>x</p>"))
    assert "now 8 bytes" in str(plan(writable, ours, report="y"))


def test_an_s3_store_that_is_gone_is_told_from_the_server(on_s3, frame) -> None:
    run_id = log(on_s3, frame)
    store = connect(on_s3.uri)
    run = store.run(run_id)
    kept = log(on_s3, frame)
    store.load(kept)
    stop_bucket()
    started = time.monotonic()
    with pytest.raises(ArtifactStoreError, match="answers, but the files of run 'erm' at s3://"):
        store.load(run)
    assert time.monotonic() - started < 30
    assert_evaluates(store, kept, frame)  # what was fetched is there still


def test_an_s3_store_behind_the_server(bucket, frame, tmp_path) -> None:
    """Its clients need neither boto3 nor a key of the bucket; nor do they see why it fails."""
    with mlflow_server(tmp_path, "--artifacts-destination", f"s3://{bucket}/mlflow") as url:
        workspace = _workspace(url)
        run_id = log(workspace, frame)
        store = connect(url)
        assert store.run(run_id).artifact_uri.startswith("mlflow-artifacts:/")
        assert_evaluates(store, run_id, frame)
        stop_bucket()
        with pytest.raises(ArtifactStoreError, match=r"answers, but the files .*500 error.*Check"):
            store.load(run_id, refresh=True)
        assert store.run(run_id).name == "erm"


def test_without_boto3_it_says_what_to_install(on_s3, frame, monkeypatch) -> None:
    from mlflow.store.artifact import s3_artifact_repo

    run_id = log(on_s3, frame)
    store = connect(on_s3.uri)
    s3_artifact_repo._cached_get_s3_client.cache_clear()
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ArtifactStoreError, match=r"pip install boto3"):
        store.load(run_id)


def test_a_bucket_that_is_not_there(server_url, bucket, frame) -> None:
    workspace = _workspace(server_url, "s3://no-such-bucket/x")
    run_id = workspace.run("erm")
    with pytest.raises(
        ArtifactStoreError, match=r"at s3://no-such-bucket/\S+ cannot be read: .*bucket"
    ):
        connect(workspace.uri).load(run_id)


# ---------------------------------------------------------------------------------------- TLS


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of one's own for 127.0.0.1, with its key in the same file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "rise tests")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "server.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture
def forward(server_url) -> Callable[[http.server.BaseHTTPRequestHandler], None]:
    """Hand a request on to the real server, as a proxy that ends TLS or asks for a token does."""

    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        length = int(request.headers.get("Content-Length") or 0)
        asked = urllib.request.Request(
            server_url + request.path, request.rfile.read(length) or None,
            {"Content-Type": request.headers.get("Content-Type", "")}, method=request.command,
        )  # fmt: skip
        with urllib.request.urlopen(asked, timeout=30) as got:
            send(request, got.status, got.read(), got.headers.get("Content-Type", ""))

    return answer


def tls(certificate: Path, *, ask: bool = False) -> ssl.SSLContext:
    """What a server with that certificate says; with `ask` it wants one of its callers too."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    if ask:
        context.load_verify_locations(certificate)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def test_tls_with_an_authority_of_one_s_own(
    on_server, frame, serve, forward, certificate, monkeypatch
) -> None:
    run_id = log(on_server, frame)
    url = serve(forward, tls(certificate))
    assert url.startswith("https://")
    with pytest.raises(ServerUnreachableError, match="MLFLOW_TRACKING_SERVER_CERT_PATH"):
        connect(url)
    monkeypatch.setenv("MLFLOW_TRACKING_SERVER_CERT_PATH", str(certificate))
    assert_evaluates(connect(url), run_id, frame)


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")  # which is what was asked for
def test_tls_without_a_check(on_server, frame, serve, forward, certificate, monkeypatch) -> None:
    run_id = log(on_server, frame)
    monkeypatch.setenv("MLFLOW_TRACKING_INSECURE_TLS", "true")
    assert_evaluates(connect(serve(forward, tls(certificate))), run_id, frame)


def test_tls_with_a_certificate_of_the_caller(
    on_server, frame, serve, forward, certificate, monkeypatch
) -> None:
    run_id = log(on_server, frame)
    url = serve(forward, tls(certificate, ask=True))
    monkeypatch.setenv("MLFLOW_TRACKING_SERVER_CERT_PATH", str(certificate))
    with pytest.raises(ServerUnreachableError, match="MLFLOW_TRACKING_CLIENT_CERT_PATH"):
        connect(url)
    monkeypatch.setenv("MLFLOW_TRACKING_CLIENT_CERT_PATH", str(certificate))
    assert_evaluates(connect(url), run_id, frame)


def test_tls_with_a_server_that_speaks_none(server_url) -> None:
    with pytest.raises(ServerUnreachableError, match="speaks no TLS there: use http://"):
        connect(server_url.replace("http:", "https:"))


def test_tls_under_a_name_that_the_certificate_is_not_for(
    serve, forward, certificate, monkeypatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_SERVER_CERT_PATH", str(certificate))
    url = serve(forward, tls(certificate)).replace("127.0.0.1", "localhost")
    with pytest.raises(ServerUnreachableError, match="name that the server's certificate is for"):
        connect(url)


@pytest.mark.parametrize("side", ["SERVER", "CLIENT"])
def test_a_certificate_that_is_not_there(server_url, tmp_path, monkeypatch, side: str) -> None:
    name = f"MLFLOW_TRACKING_{side}_CERT_PATH"
    monkeypatch.setenv(name, str(tmp_path / "gone.pem"))
    with pytest.raises(TrackingError, match=f"{name} names .*gone.pem.*no such file"):
        connect(server_url.replace("http:", "https:"))


# -------------------------------------------------------------------------------------- token


def test_a_token_from_the_environment(on_server, frame, serve, forward, monkeypatch) -> None:
    """Listing, files and all: each request carries it, and nobody is shown it."""
    run_id = log(on_server, frame)
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "s3same")

    def guarded(request: http.server.BaseHTTPRequestHandler) -> None:
        if request.headers.get("Authorization") == "Bearer s3same":
            forward(request)
        else:
            send(request, 401, b"no", "text/plain")

    url = serve(guarded)
    store = connect(url)
    assert store.facts.user == "token"
    assert_evaluates(store, run_id, frame)
    assert "s3same" not in f"{store!r} {store.facts}"
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "wr0ng")
    with pytest.raises(AuthenticationError, match=r"401.*came with MLFLOW_TRACKING_TOKEN") as no:
        connect(url)
    assert "wr0ng" not in str(no.value)
