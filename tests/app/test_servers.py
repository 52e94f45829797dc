"""A choice of servers, from a configured list only: by name, one down, and nothing carried over."""

from __future__ import annotations

import html
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from rise_app.servers import LIST_VARIABLE, Server, servers
from rise_core.exceptions import TrackingError
from rise_core.tracking import connect
from tests.app import test_add
from tests.app.conftest import PAGES, Shelf, predictions_table
from tests.app.reading import Screen, values_of
from tests.app.test_writing import press_write, show, with_run
from tests.tracking.conftest import _workspace
from tests.tracking.servers import ADMIN, PASSWORD, as_admin

Open = Callable[..., Screen]
DEMO = "the demo store of this machine"


# ---------------------------------------------------------------------------------- the list


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``listed(lab=uri, …)`` configures a list of servers."""
    return lambda **uris: monkeypatch.setenv(
        LIST_VARIABLE, " ".join(f"{name}={uri}" for name, uri in uris.items())
    )


def test_without_a_list_there_is_the_one_server_or_the_demo(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert servers() == (Server(DEMO, None),)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", " http://ann:pw@host:5000 ")
    assert servers() == (Server("http://…@host:5000", "http://ann:pw@host:5000"),)


def test_the_first_of_the_list_is_the_default(listed: Callable[..., None]) -> None:
    listed(production="https://host", lab="sqlite:///lab.db", demo="demo")
    assert servers() == (
        Server("production", "https://host"),
        Server("lab", "sqlite:///lab.db"),
        Server("demo", None),
    )
    assert [server.label for server in servers()] == [
        "production, https://host",
        "lab, sqlite:///lab.db",
        f"demo, {DEMO}",
    ]


def test_mlflows_own_variable_is_in_the_list_and_the_default(
    listed: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed(production="https://host", lab="sqlite:///lab.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://other:5000")
    assert [s.name for s in servers()] == ["http://other:5000", "production", "lab"]
    # one that is listed already keeps its name
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{Path.cwd()}/lab.db")
    assert [s.name for s in servers()] == ["lab", "production"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("production", "Entry 1 of RISE_TRACKING_URIS is not name=address"),
        ("a=demo https://host", "Entry 2 of RISE_TRACKING_URIS is not name=address"),
        ("a=demo b/c=https://host", "Entry 2 of RISE_TRACKING_URIS is not name=address"),
        ("a=demo =https://host", "Entry 2 of RISE_TRACKING_URIS is not name=address"),
        (f"{'n' * 41}=demo", "Entry 1 of RISE_TRACKING_URIS is not name=address"),
        ("Lab=demo x=http://h lab=http://g", "two entries 'lab'"),
        ("a=demo lab=", "Entry 'lab' of RISE_TRACKING_URIS: The tracking address is empty"),
        ("lab=postgresql://u:sesame@h/db", "Entry 'lab' of .*is not opened directly"),
        ("lab=https://ann:ses/ame@host", "Entry 'lab' of .*is not a valid address"),
        ("lab=https://ann:open sesame@host", "Entry 2 of .*a blank is written %20"),
    ],
)
def test_a_bad_list_names_its_entry_and_no_password(
    text: str, says: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIST_VARIABLE, text)
    with pytest.raises(TrackingError, match=says) as caught:
        servers()
    assert "ame" not in str(caught.value).replace("name", "")
    if says.startswith("two"):
        page = open_app("Experiments", None)
        assert "The servers to choose from are not set up" in page.markdown
        assert any(says in text for text in page.texts)
        page.at.switch_page("pages/learn.py")
        assert page.run().cards, "a page without a store does not need the list"


# ------------------------------------------------------------------------------- the choice


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """A store whose experiment has the same id and columns as one of ``lab``, with other runs."""
    shelf = Shelf(tmp_path_factory.mktemp("twin"))
    shelf.run("Twin", "twin run", predictions_table(77, 150), algorithm="Twin")
    return shelf


def experiments(page: Screen) -> set[str]:
    """What can be chosen: which store is shown."""
    return set(page.widget("Experiment").options)


OF_LAB = {"Default", "Lab", "Other", "Empty"}


def sidebar(page: Screen) -> str:
    part = page.at.sidebar
    texts = [str(text.value) for text in part.text]
    return html.unescape("\n".join([*texts, *(str(h.proto.body) for h in part.get("html"))]))


def links(page: Screen) -> dict[str, dict[str, list[str]]]:
    """Where the sidebar's links lead: page to query."""
    return {link.label: parse_qs(link.proto.query_string) for link in page.at.page_link}


def test_another_server_shows_its_runs_and_forgets_the_last_ones(
    open_app: Open, listed: Callable[..., None], lab: Shelf, twin: Shelf
) -> None:
    assert twin.experiments["Twin"] == lab.experiments["Lab"], "ids tell stores apart by chance"
    listed(lab=lab.uri, twin=twin.uri)
    page = open_app(
        "Diagnose", None, run=lab.runs["irm number 1"], threshold="0.4", environment="north"
    )
    assert page.widget("Server").options == ["lab", "twin"]
    assert lab.uri in sidebar(page)
    assert "server" not in page.address
    page.choose("Server", "twin")
    assert twin.uri in sidebar(page)
    assert page.address["server"] == "twin"
    assert page.address["run"] == twin.runs["twin run"]
    assert page.address["threshold"] == "0.4"
    assert "environment" not in page.address
    assert page.widget("Algorithm").value == "Twin"
    assert all(query["server"] == ["twin"] for query in links(page).values() if query)

    page.at.switch_page("app.py")
    assert list(page.run().settle().table["run"]) == ["twin run"]
    assert page.widget("Server").value == "twin"
    page.choose("Server", "lab")
    assert experiments(page) == OF_LAB
    assert "server" not in page.address


def test_a_link_opens_its_server(
    open_app: Open,
    listed: Callable[..., None],
    lab: Shelf,
    server_url: str,
    truth: Callable[[str], Any],
) -> None:
    workspace = _workspace(server_url)
    run_id = with_run(workspace)
    listed(lab=lab.uri, production=server_url)
    query = {"server": "production", "experiment": workspace.experiment_id, "run": run_id}
    page = open_app("Diagnose", None, **query, environment="north")
    assert {"server": "production", "run": run_id}.items() <= page.address.items()
    assert server_url in sidebar(page)
    ev = truth(server_url).evaluation(run_id, environment="north")
    assert page.cards == values_of(ev, page.cards)
    assert links(page)["Compare"] == {
        **{k: [v] for k, v in query.items()},
        "environment": ["north"],
    }


def test_going_back_to_the_default_is_a_link_too(
    open_app: Open, listed: Callable[..., None], lab: Shelf, twin: Shelf
) -> None:
    listed(lab=lab.uri, twin=twin.uri)
    page = open_app("Diagnose", None, run=lab.runs["irm number 1"])
    page.choose("Server", "twin")
    page.at.query_params = {"run": lab.runs["irm number 1"]}
    page.run()
    assert page.widget("Server").value == "lab"
    assert page.address["run"] == lab.runs["irm number 1"]
    page.at.query_params = {"server": "twin", "experiment": twin.experiments["Twin"]}
    page.run()
    assert page.widget("Algorithm").value == "Twin"


@pytest.mark.parametrize("known", [True, False], ids=["a list", "no list"])
def test_an_unknown_name_is_said_and_its_selection_dropped(
    open_app: Open, listed: Callable[..., None], lab: Shelf, twin: Shelf, known: bool
) -> None:
    if known:
        listed(lab=lab.uri, twin=twin.uri)
    page = open_app(
        "Experiments",
        None if known else lab.uri,
        server="gone",
        experiment=lab.experiments["Other"],
    )
    here = "lab" if known else lab.uri
    assert f"There is no server 'gone' here. This is {here}." in sidebar(page)
    assert "server" not in page.address
    assert experiments(page) == OF_LAB
    assert page.widget("Experiment").value != lab.experiments["Other"], "of another server"
    page.run()
    assert "There is no server 'gone'" in sidebar(page)
    assert page.has("Server") == known
    if known:
        page.choose("Server", "twin")
        assert "There is no server" not in sidebar(page)


@pytest.mark.parametrize("form", ["{uri}", "x={uri}", "twin={uri}", "demo"])
def test_no_address_of_a_store_comes_from_the_address(
    open_app: Open, listed: Callable[..., None], lab: Shelf, twin: Shelf, form: str
) -> None:
    listed(lab=lab.uri)
    page = open_app("Experiments", None, server=form.format(uri=twin.uri))
    assert experiments(page) == OF_LAB
    assert "server" not in page.address
    assert lab.uri in sidebar(page)


def test_a_server_that_is_down_stands_in_nobodys_way(
    open_app: Open, listed: Callable[..., None], lab: Shelf
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    listed(down=f"http://127.0.0.1:{port}", lab=lab.uri)
    page = open_app("Experiments", None)
    assert "There is no connection to the runs." in page.markdown
    page.press("Try again")
    assert "There is no connection to the runs." in page.markdown
    page.choose("Server", "lab")
    assert experiments(page) == OF_LAB
    page.choose("Server", "down")
    assert "There is no connection to the runs." in page.markdown
    assert "server" not in page.address, "the default is not in the address"
    assert page.widget("Server").value == "down"


def test_the_demo_is_one_of_them(
    open_app: Open, listed: Callable[..., None], lab: Shelf, demo: Path
) -> None:
    listed(lab=lab.uri, teaching="demo")
    page = open_app("Experiments", None)
    assert experiments(page) == OF_LAB
    page.choose("Server", "teaching")
    assert "The demo store, connected in" in sidebar(page)
    assert not experiments(page) & OF_LAB


def test_roles_kept_for_an_experiment_are_those_of_its_server(
    open_app: Open, listed: Callable[..., None], lab: Shelf, twin: Shelf
) -> None:
    from rise_app.connection import home

    store = connect(twin.uri, cache_dir=home() / "cache")
    roles = store.load(twin.runs["twin run"]).roles
    store.keep_roles(twin.experiments["Twin"], roles.corrected(sensitive_features=("region",)))
    listed(lab=lab.uri, twin=twin.uri)
    page = open_app("Diagnose", None, run=lab.runs["irm number 1"])
    assert page.widget("Protected attribute").options == ["sex", "region"]
    page.choose("Server", "twin")
    assert page.widget("Protected attribute").options == ["region"]


# -------------------------------------------------------------------------------- passwords


def test_each_server_has_its_own_login_and_none_is_shown(
    open_app: Open,
    listed: Callable[..., None],
    guarded_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = "yet another word 3"

    def login(user: str, password: str) -> str:
        return guarded_url.replace("//", f"//{user}:{password.replace(' ', '%20')}@")

    as_admin(guarded_url, "users/create", username="guest", password=secret)
    admin = _workspace(login(ADMIN, PASSWORD))
    run_id = with_run(admin)
    # The environment's login is for servers that have none of their own.
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "nobody")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "nothing at all 4")
    listed(guest=login("guest", secret), boss=login(ADMIN, PASSWORD))

    def hidden(page: Screen) -> bool:
        words = [w for text in (secret, PASSWORD) for w in (text, text.replace(" ", "%20"))]
        return not any(word in page.everything for word in words)

    page = open_app("Diagnose", None, run=run_id, tab="Save", write="numbers|report")
    assert "as guest" in sidebar(page)
    assert hidden(page)
    press_write(show(page))
    assert any(
        "Writing files" in text and "refuses it for this user" in text for text in page.texts
    )
    assert hidden(page)
    page.choose("Server", "boss")
    page.at.query_params["run"] = run_id
    page.run()
    assert f"as {ADMIN}" in sidebar(page)
    press_write(show(page))
    assert any(text.startswith("✓ Written to erm: 1 file") for text in page.texts)
    assert hidden(page)
    path = admin.client.download_artifacts(run_id, "rise/report.html")
    report = Path(path).read_text("utf-8")
    assert f"{guarded_url}/#/experiments/{admin.experiment_id}/runs/{run_id}" in report
    assert PASSWORD.replace(" ", "%20") not in report


# ---------------------------------------------------------------------------------- logging


def test_a_file_is_logged_to_the_server_that_is_chosen(
    open_app: Open,
    listed: Callable[..., None],
    lab: Shelf,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(PAGES, "Add predictions", "pages/add.py")
    own = Shelf(tmp_path)
    own.experiment("There")
    listed(lab=lab.uri, own=own.uri)
    page = open_app("Experiments", None, server="own")
    page.at.switch_page("pages/add.py")
    page.at.query_params = {"tab": "Log as a run"}  # the session remembers the server
    page.run()
    assert not page.has("Server")
    test_add.add(page, ("mine.csv", test_add.csv(predictions_table(3))))
    (box,) = (b for b in page.at.checkbox if b.label.startswith("Yes, write"))
    assert "own, sqlite" in box.label.replace("\\", "")
    test_add.fill_in(page, "There", sure=True)
    (run,) = connect(own.uri).runs([own.experiments["There"]]).runs
    assert run.name == "mine"
    link = next(link for link in page.at.page_link if link.label == "Look at the run")
    assert parse_qs(link.proto.query_string) == {
        "server": ["own"], "experiment": [own.experiments["There"]], "run": [run.id]
    }  # fmt: skip
