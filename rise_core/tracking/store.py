"""A store of runs: experiments, runs, and the tables of predictions in them; only read here."""

from __future__ import annotations

import json
import os
import posixpath
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from rise_core.columns import Roles, guess_roles
from rise_core.exceptions import (
    ArtifactStoreError,
    AuthenticationError,
    ColumnError,
    FilterError,
    NestedTablesError,
    RiseError,
    TrackingError,
    UnreadableTableError,
)
from rise_core.tracking import client as mlflow_client
from rise_core.tracking.address import Address, clean_text, parse_address, redact
from rise_core.tracking.cache import CacheEntry, TableCache, file_digest
from rise_core.tracking.entities import (
    ALGORITHM,
    DATASET,
    ENVIRONMENT,
    PARENT_TAG,
    SEED,
    TABLE_TAG,
    Experiment,
    Run,
    RunPage,
    Table,
    TableRef,
    fact,
    logged_tables,
)
from rise_core.tracking.files import (
    LocalFiles,
    RunFiles,
    open_files,
    read_json_object,
    safe_path,
)
from rise_core.tracking.find import find_tables, rank, roles_beside
from rise_core.tracking.formats import TableFile, read_table
from rise_core.tracking.limits import TABLE_VARIABLE, first_contact_seconds, largest_table
from rise_core.tracking.preflight import ServerFacts, check
from rise_core.tracking.registry import run_id_of_model
from rise_core.tracking.straight import StraightFetch

__all__ = ["ROLES_TAG", "Store", "connect", "where"]

ROLES_TAG = "rise.roles"
"""Tag of an experiment that holds the column roles of its tables, as JSON."""

_FRESH_SECONDS = 30.0
_MAX_TRIED = 5
_LISTING_SECONDS = 600.0  # a run that has ended may still be given a table
_MAX_MODELS = 3
_NOT_UNDERSTOOD = ("INVALID_PARAMETER_VALUE", "BAD_REQUEST")

T = TypeVar("T")


def connect(
    uri: str | None = None,
    *,
    timeout: float | None = None,
    cache_dir: Path | str | None = None,
    cache_bytes: int = 4 << 30,
    writable: bool = False,
) -> Store:
    """Open a tracking server or an MLflow database file, read-only unless asked otherwise.

    The first contact tells within seconds whether the store can be used. Nothing is created,
    migrated or written, and MLflow's process-wide tracking address is left alone.

    Parameters
    ----------
    uri : "http(s)://host:port" or "sqlite:///path/mlflow.db"; MLFLOW_TRACKING_URI by default
    timeout : seconds for the first contact, and for each later look whether the server is alive;
        RISE_TIMEOUT or 5 by default
    cache_dir : folder for fetched tables; RISE_CACHE_DIR or the user's cache folder by default
    cache_bytes : bound of that folder; the least recently used tables go first
    writable : let `rise_core.tracking.writing` write to the store; nothing else ever does

    Raises
    ------
    ServerUnreachableError, AuthenticationError, NotMlflowError, TrackingError
        each with what was found and how to mend it.
    """
    given = uri if uri is not None else os.environ.get("MLFLOW_TRACKING_URI", "")
    if not given:
        raise TrackingError(
            "No tracking address was given. Set MLFLOW_TRACKING_URI, or pass one such as "
            "http://localhost:5000."
        )
    address = parse_address(given)
    mlflow_client.set_defaults()
    timeout = first_contact_seconds() if timeout is None else timeout
    facts = check(address, timeout)
    cache = TableCache(cache_dir, cache_bytes)
    return Store(address, facts, timeout=timeout, cache=cache, writable=writable)


def where(text: str = "", **tags: str) -> str:
    """Filter text for `Store.runs`: tags that must be equal, and words in the run's name.

    >>> where("night", dataset="adult")
    "tags.`dataset` = 'adult' and attributes.run_name ILIKE '%night%'"
    """
    terms = [f"tags.`{name}` = {_quoted(value)}" for name, value in tags.items()]
    if text:
        terms.append(f"attributes.run_name ILIKE {_quoted(f'%{text}%')}")
    return " and ".join(terms)


def _quoted(value: str) -> str:
    if "'" not in value:
        return f"'{value}'"
    if '"' not in value:
        return f'"{value}"'
    raise TrackingError(
        f"MLflow's filters cannot hold both kinds of quotes: {clean_text(value, 60)}. Shorten it."
    )


class Store:
    """An open store. Made by `connect`; safe to use from several threads.

    Attributes
    ----------
    uri, label : address, as MLflow wants it and as people may see it (no credentials)
    read_only : whether nothing can be written through this store
    facts : version, user and seconds of the first contact
    cache : where fetched tables are kept
    """

    def __init__(
        self,
        address: Address,
        facts: ServerFacts,
        *,
        timeout: float,
        cache: TableCache,
        writable: bool = False,
    ) -> None:
        self.address = address
        self.uri = address.uri
        self.label = address.label
        self.facts = facts
        self.cache = cache
        self._timeout = timeout
        self.read_only = not writable
        uri = address.uri if writable else address.client_uri
        self.client = mlflow_client.open_client(uri)
        self._straight = StraightFetch(address, timeout)
        self._seen_alive = time.monotonic()
        self._experiment_tags: Mapping[str, Mapping[str, str]] = {}
        self._nested: dict[str, tuple[float, bool]] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._locks_lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Store({self.label!r})"

    # ------------------------------------------------------------------------------ listing

    def check(self) -> ServerFacts:
        """Look again whether the store is alive; raises as `connect` does."""
        facts = check(self.address, self._timeout)
        self._seen_alive = time.monotonic()
        return facts

    def experiments(self, max_results: int = 1000) -> list[Experiment]:
        """The experiments that are not deleted, last changed first.

        Parameters
        ----------
        max_results : at most so many
        """

        def ask() -> list[Experiment]:
            found: list[Experiment] = []
            token: str | None = None
            while len(found) < max_results:
                page = self.client.search_experiments(
                    max_results=min(1000, max_results - len(found)),
                    order_by=["last_update_time DESC"],
                    page_token=token,
                )
                found += [_experiment(entity) for entity in page]
                token = page.token or None
                if not token:
                    break
            return found

        found = self.ask("Listing the experiments", ask)
        self._experiment_tags = {experiment.id: experiment.tags for experiment in found}
        return found

    def runs(
        self,
        experiment_ids: str | Sequence[str],
        *,
        filter: str = "",  # noqa: A002 — MLflow's own word
        order_by: Sequence[str] = ("attributes.start_time DESC",),
        max_results: int = 100,
        page_token: str | None = None,
    ) -> RunPage:
        """One page of runs, filtered and ordered by the server; deleted runs are left out.

        Parameters
        ----------
        experiment_ids : one id or several
        filter : MLflow's filter text, such as "tags.dataset = 'adult' and metrics.auc > 0.8"
        order_by : MLflow's order clauses; newest first by default
        max_results : runs a page, 1 to 50,000
        page_token : `RunPage.next_token` of the page before

        Raises
        ------
        FilterError
            the store does not understand the filter or the order.
        TrackingError
            it does not answer, or refuses.
        """
        ids = [experiment_ids] if isinstance(experiment_ids, str) else list(experiment_ids)
        if not ids:
            return RunPage(())

        def search() -> Any:
            try:
                return self.client.search_runs(
                    ids,
                    filter_string=filter,
                    max_results=max_results,
                    order_by=list(order_by),
                    page_token=page_token,
                )
            except Exception as error:
                if getattr(error, "error_code", "") not in _NOT_UNDERSTOOD:
                    raise
                asked = f"the filter {filter[:200]!r}" if filter else f"the order {order_by}"
                reason = clean_text(error, 300).removeprefix("INVALID_PARAMETER_VALUE: ")
                raise FilterError(
                    f"{self.label} does not understand {asked}: {reason}\n"
                    "A filter looks like: metrics.auc > 0.8 and tags.dataset = 'adult'. "
                    "Text stands in quotes; there is an and, and no or."
                ) from error

        page = self.ask("Listing the runs", search)
        return RunPage(tuple(_run(entity) for entity in page), page.token or None)

    def run(self, run_id: str) -> Run:
        """One run by its id; a deleted one has `deleted` set."""
        return _run(self.ask(f"Reading run {clean_text(run_id, 40)}",
                              lambda: self.client.get_run(run_id)))  # fmt: skip

    def run_of_model(self, uri: str) -> Run:
        """Return the run that made a registered model.

        Parameters
        ----------
        uri : "models:/name@champion", "models:/name/3", "models:/name/latest" or "models:/m-…"

        Raises
        ------
        TrackingError
            no such model, alias or version, or one that no run made.
        """
        name = clean_text(uri, 80)
        return self.run(self.ask(f"Looking up {name}", lambda: run_id_of_model(self.client, uri)))

    def page_of(self, run: Run) -> str | None:
        """Address of a run in MLflow's own pages, without credentials; None without a server."""
        if self.address.path is not None:
            return None
        parts = urlsplit(self.uri)
        base = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        return f"{base}/#/experiments/{run.experiment_id}/runs/{run.id}"

    # ------------------------------------------------------------------------------- tables

    def tables(self, run: Run | str, *, everything: bool = False) -> list[TableRef]:
        """Files of a run that may hold predictions, the likeliest first.

        Tables named by the run's tags cost no request; otherwise its folders are listed, few and
        not deep.

        Parameters
        ----------
        run : the run, or its id
        everything : list the folders of a run whose tags name tables, too; not where one of these
            is `log_predictions`'s own
        """
        run = self._as_run(run)
        named = list(logged_tables(run.tags))
        if named and (not everything or TABLE_TAG in run.tags):
            return rank(named)
        known = {ref.path for ref in named}
        return rank([*named, *(ref for ref in self._listed(run) if ref.path not in known)])

    def load(
        self,
        run: Run | str,
        path: str | TableRef | None = None,
        *,
        max_bytes: int | None = None,
        roles: Roles | None = None,
        refresh: bool = False,
    ) -> Table:
        """Fetch and read a table of predictions.

        Parameters
        ----------
        run : the run, or its id
        path : which of its files; by default the one kept for its experiment (`Roles.table`),
            else the likeliest whose columns can be told
        max_bytes : a larger file is refused; RISE_MAX_TABLE_MB or 512 MB by default
        roles : column roles to use instead of the logged or guessed ones
        refresh : fetch again even if the cache holds the file

        Raises
        ------
        UnreadableTableError
            no table in the run, too large, damaged, or cut short on the way.
        ArtifactStoreError
            the run's files cannot be fetched while the tracking server answers.
        TrackingError
            the run is gone, or the server is (ServerUnreachableError, …).
        """
        return self._load_likeliest(self._as_run(run), path, max_bytes, roles, refresh)

    def _load_likeliest(
        self,
        run: Run,
        path: str | TableRef | None,
        max_bytes: int | None,
        roles: Roles | None,
        refresh: bool,
        turns: AbstractContextManager[Any] | None = None,
    ) -> Table:
        load = partial(
            self._load,
            run,
            max_bytes=largest_table() if max_bytes is None else max_bytes,
            roles=roles,
            refresh=refresh,
            turns=turns or nullcontext(),
        )
        if run.deleted:
            raise TrackingError(
                f"Run {clean_text(run.name, 60)!r} has been deleted. Choose another, or bring it "
                f"back: mlflow runs restore --run-id {run.id}"
            )
        if path is not None:
            ref = path if isinstance(path, TableRef) else self._ref(run, path)
            return load(ref)
        refs = self.tables(run)
        if not refs:
            raise self._without_table(run)
        kept = self.kept_roles(run.experiment_id)
        if kept is not None and kept.table:  # a person's choice, for the runs that have it
            for ref in self.tables(run, everything=True):
                if ref.path == kept.table:
                    return load(ref)
        first: Table | None = None
        failure: RiseError | None = None
        for ref in self._candidates(run, refs):
            try:
                table = load(ref)
            except UnreadableTableError as error:
                failure = failure or error
                continue
            if table.roles.complete:
                return table
            first = first or table
        self._forget_listing(run, _LISTING_SECONDS)
        if first is not None:
            return first
        raise failure or UnreadableTableError(f"Run {run.id} has no readable table.")

    def load_many(
        self,
        runs: Iterable[Run],
        *,
        workers: int = 8,
        on_done: Callable[[Run, Any], None] | None = None,
        use: Callable[[Run, Table], Any] | None = None,
        stop: threading.Event | None = None,
        max_bytes: int | None = None,
        refresh: bool = False,
    ) -> dict[str, Any]:
        """Load the tables of many runs at once; one failure stops no other.

        Parameters
        ----------
        runs : the runs
        workers : how many at a time wait for the server; as many as there are processors read
            and use their tables
        on_done : called with the run and its result as each is done, in the calling thread
        use : called in the worker with the run and its table; its result replaces the table, so
            that hundreds of tables need not be held at once
        stop : set it to leave out the runs not yet begun

        Returns
        -------
        by run id, in the order of `runs`: a Table (or what `use` made of it), or a RiseError.
        Runs left out by `stop` are absent.
        """
        chosen = list({run.id: run for run in runs}.values())
        results: dict[str, Any] = {}
        # more threads than processors compute no faster, and keep those from the server that wait
        turns = threading.Semaphore(os.cpu_count() or 1)

        def work(run: Run) -> Any:
            if stop is not None and stop.is_set():
                return _LEFT_OUT
            try:
                table = self._load_likeliest(run, None, max_bytes, None, refresh, turns)
                if use is None:
                    return table
                with turns:
                    return use(run, table)
            except RiseError as error:
                return error
            except Exception as error:  # a fault in one run must not end the others
                return TrackingError(
                    f"Run {clean_text(run.name, 60)!r} failed: {clean_text(error, 200)} "
                    f"({type(error).__name__})."
                )

        if not chosen:
            return {}
        with ThreadPoolExecutor(min(workers, len(chosen)), "rise-load") as pool:
            futures = {pool.submit(work, run): run for run in chosen}
            for future in as_completed(futures):
                result = future.result()
                if result is _LEFT_OUT:
                    continue
                run = futures[future]
                results[run.id] = result
                if on_done is not None:
                    on_done(run, result)
        return {run.id: results[run.id] for run in chosen if run.id in results}

    # ---------------------------------------------------------------- roles of an experiment

    def keep_roles(self, experiment_id: str, roles: Roles | None) -> None:
        """Remember column roles for an experiment's tables, on this machine; None forgets them.

        They are used by `load` for every table that has all their columns and says nothing itself.
        A table that they name is loaded from every run that has it.
        """
        key = TableCache.key("experiment roles", self.label, experiment_id)
        value = None if roles is None else roles.to_dict()
        self.cache.write_note(key, {"roles": value})

    def kept_roles(self, experiment_id: str) -> Roles | None:
        """Roles kept for an experiment: on this machine, else in its tag ``rise.roles``."""
        key = TableCache.key("experiment roles", self.label, experiment_id)
        value: Any = (self.cache.note(key) or {}).get("roles")
        if value is None:
            with suppress(ValueError):
                value = json.loads(self._experiment_tags.get(experiment_id, {}).get(ROLES_TAG, ""))
        with suppress(ColumnError, TypeError, ValueError):
            return Roles.from_dict(value) if value is not None else None
        return None

    # ------------------------------------------------------------------------------ private

    def _without_table(self, run: Run) -> UnreadableTableError:
        name = clean_text(run.name, 60)
        if self._has_nested(run):
            return NestedTablesError(
                f"Run {name!r} has no table of predictions itself: its nested runs hold them. "
                "Choose one of those."
            )
        why, remedy = "none of its files is parquet, CSV, JSON or JSON lines.", "Log one with"
        files = self._files_of(run)
        if isinstance(files, LocalFiles) and not files.root.is_dir():
            why = f"its folder {clean_text(files.root, 160)} is not on this machine."
            remedy = "If it had files, bring them to that place; or log a table with"
        return UnreadableTableError(
            f"Run {name!r} has no table of predictions: {why} {remedy} rise_core.tracking."
            "log_predictions(y_true, y_prob, sensitive_features=…)."
        )

    def _has_nested(self, run: Run) -> bool:
        """Whether runs are nested in a run; asked once in a while, as pages ask for all at once."""
        asked, found = self._nested.get(run.id, (-_FRESH_SECONDS, False))
        if time.monotonic() - asked >= _FRESH_SECONDS:
            parent = f"tags.`{PARENT_TAG}` = '{run.id}'"
            found = bool(self.runs(run.experiment_id, filter=parent, max_results=1).runs)
            self._nested[run.id] = (time.monotonic(), found)
        return found

    def _as_run(self, run: Run | str) -> Run:
        return self.run(run) if isinstance(run, str) else run

    def _ref(self, run: Run, path: str) -> TableRef:
        path = safe_path(path)
        return next((ref for ref in logged_tables(run.tags) if ref.path == path), TableRef(path))

    def _load(
        self,
        run: Run,
        ref: TableRef,
        max_bytes: int,
        roles: Roles | None,
        refresh: bool,
        turns: AbstractContextManager[Any],
    ) -> Table:
        path = safe_path(ref.path)
        where = f"{path} of run {clean_text(run.name, 60)!r}"
        ref = replace(ref, path=path)
        if ref.root:
            run = replace(run, artifact_uri=ref.root)
        try:
            entry, files = self._fetch(run, ref, max_bytes, refresh)
        except ArtifactStoreError:
            self._forget_listing(run)
            raise
        with turns:
            found = read_table(entry.file, where)
        chosen, origin = roles, "given"
        if chosen is None:
            chosen, origin = self._roles(run, ref, found, entry, files)
        return Table(
            frame=found.frame,
            roles=chosen,
            path=path,
            size=entry.size,
            key=TableCache.key(self.label, run.id, ref.root, path, entry.digest),
            run_id=run.id,
            notes=found.notes,
            roles_from=origin,
        )

    def _roles(
        self, run: Run, ref: TableRef, found: TableFile, entry: CacheEntry, files: RunFiles | None
    ) -> tuple[Roles, str]:
        written: Any = found.roles
        if written is None:
            # a table from the cache must have the same roles as on the day it was fetched
            key = TableCache.key("roles", self.label, run.id, ref.root, ref.path, entry.digest)
            if files is None:
                written = (self.cache.note(key) or {}).get("roles")
            else:
                written = self.with_files(run, lambda files: _written_roles(files, ref), files)
                told = written is not None or self.cache.note(key) is not None
                if told and files.local(ref.path) is None:
                    self.cache.write_note(key, {"roles": written})
        if written is not None:
            with suppress(ColumnError):
                roles = Roles.from_dict(written)
                if all(name in found.frame.columns for name in roles.columns()):
                    return roles, "logged"
        kept = self.kept_roles(run.experiment_id)
        if kept is not None and all(name in found.frame.columns for name in kept.columns()):
            return kept, "experiment"
        return guess_roles(found.frame), "guessed"

    def _candidates(self, run: Run, refs: list[TableRef]) -> Iterator[TableRef]:
        """Tables to try; where none that the tags name can be read, the run's other files too."""
        yield from refs[:_MAX_TRIED]
        if logged_tables(run.tags):
            known = {ref.path for ref in refs}
            others = [ref for ref in self._listed(run) if ref.path not in known]
            yield from others[:_MAX_TRIED]

    def _listed(self, run: Run) -> list[TableRef]:
        """Files found by listing; of a run that has ended they are remembered."""
        key = TableCache.key("listing", self.label, run.id)
        note = None if run.running else self.cache.note(key)
        if note is not None and note.get("stamp") == _stamp(run):
            with suppress(KeyError, TypeError, ValueError):
                found = [
                    TableRef(str(path), size, roles_path=str(roles), root=str(root))
                    for path, size, roles, root in note["tables"]
                ]
                if found or time.time() - note["at"] < _LISTING_SECONDS:
                    return found
        found = rank(self.with_files(run, find_tables)) or self._model_tables(run)
        if not run.running:
            self.cache.write_note(
                key,
                {
                    "stamp": _stamp(run),
                    "at": time.time(),
                    "tables": [[ref.path, ref.size, ref.roles_path, ref.root] for ref in found],
                },
            )
        return found

    def _forget_listing(self, run: Run, age: float = 0.0) -> None:
        """List a run anew when it is asked for next, if the last time is `age` seconds ago."""
        key = TableCache.key("listing", self.label, run.id)
        note = self.cache.note(key)
        if note and time.time() - note.get("at", 0.0) >= age:
            self.cache.write_note(key, {})

    def _model_tables(self, run: Run) -> list[TableRef]:
        """Tables among the files of the models a run logged; those are not the run's own files."""
        found: list[TableRef] = []
        for model_id in run.model_ids[:_MAX_MODELS]:
            model = self.ask(
                f"Reading model {clean_text(model_id, 40)}",
                partial(self.client.get_logged_model, model_id),
            )
            root = str(model.artifact_location)
            at_model = replace(run, artifact_uri=root)
            found += [replace(ref, root=root) for ref in self.with_files(at_model, find_tables)]
        return rank(found)

    def _fetch(
        self, run: Run, ref: TableRef, max_bytes: int, refresh: bool
    ) -> tuple[CacheEntry, RunFiles | None]:
        """The file on this disk; and the run's files, when they had to be asked."""
        key = TableCache.key("table", self.label, run.id, ref.root, ref.path)
        with self._lock(key):
            files = self._files_of(run)
            local = files.local(ref.path)
            if local is not None:
                size = local.stat().st_size
                _refuse_large(run, ref.path, size, max_bytes)
                return CacheEntry(local, size, file_digest(local), {}), files
            entry = None if refresh else self.cache.get(key)
            if entry is not None and self._trusted(run, ref, entry, files):
                return entry, files if run.running else None
            listed = ref.size if ref.size is not None else self._size(run, ref.path, files)
            if listed is not None:
                _refuse_large(run, ref.path, listed, max_bytes)
            return self._download(run, ref.path, listed, key, files, max_bytes), files

    def _files_of(self, run: Run) -> RunFiles:
        """The way to a run's files; nothing is asked of the server yet."""
        return self.with_files(run, lambda files: files, watch=False)

    def _trusted(self, run: Run, ref: TableRef, entry: CacheEntry, files: RunFiles) -> bool:
        """Whether a cached file is still the run's: sure once the run has ended, else by size."""
        if ref.digest:
            return ref.digest == entry.digest
        if not run.running:
            return dict(entry.stamp) == _stamp(run)
        return self._size(run, ref.path, files) == entry.size

    def _size(self, run: Run, path: str, files: RunFiles) -> int | None:
        return self.with_files(run, lambda _: files.size(path), files, path)

    def _download(
        self, run: Run, path: str, size: int | None, key: str, files: RunFiles, max_bytes: int
    ) -> CacheEntry:
        with self.cache.workplace() as target:
            for again in (False, True):
                whole = False
                with suppress(_BrokenOffError):
                    # A page to log in at, sent instead of the file, is for MLflow's client.
                    url = None if again else files.proxied(path)
                    if url is None or not self._straight.fetch(url, target):
                        self.with_files(run, lambda _: files.fetch(path, target), files, path)
                    whole = True
                came = target.stat().st_size
                if whole and (size is None or came == size):
                    break
            else:
                of = "an unknown number of" if size is None else f"{size:,}"
                raise ArtifactStoreError(
                    f"{path} of run {clean_text(run.name, 60)!r} arrived incomplete, twice: "
                    f"{came:,} of {of} bytes. A proxy on the way may cut downloads: "
                    "raise its limit, or try again."
                )
            _refuse_large(run, path, came, max_bytes)
            return self.cache.put(key, target, _stamp(run))

    def _lock(self, key: str) -> threading.Lock:
        with self._locks_lock:
            return self._locks.setdefault(key, threading.Lock())

    def ask(self, what: str, call: Callable[[], T]) -> T:
        """Call the tracking server; its failures come out as errors of RISE."""
        if time.monotonic() - self._seen_alive > _FRESH_SECONDS:
            # MLflow's own wait for a server that has gone is long: look first
            self.check()
        try:
            result = self._watched(call)
        except RiseError:
            raise
        except Exception as error:
            raise self._explain(what, error) from error
        self._seen_alive = time.monotonic()
        return result

    def _watched(self, call: Callable[[], T]) -> T:
        """Wait for a call, and look meanwhile whether the server is alive.

        MLflow gives a server that hangs a minute and more; a long listing needs that time, a dead
        server does not. The abandoned call ends by itself in its thread.
        """
        if self.address.path is not None:
            return call()
        outcome: list[T] = []
        failure: list[BaseException] = []
        done = threading.Event()

        def work() -> None:
            try:
                outcome.append(call())
            except BaseException as error:
                failure.append(error)
            finally:
                done.set()

        threading.Thread(target=work, name="rise-call", daemon=True).start()
        patience = self._timeout
        while not done.wait(patience):
            self.check()
            patience = min(2 * patience, 60.0)
        if failure:
            raise failure[0]
        return outcome[0]

    def _explain(self, what: str, error: Exception) -> RiseError:
        code = str(getattr(error, "error_code", ""))
        # of an alias that is not there a database says that it is no valid value
        gone = code in _NOT_UNDERSTOOD and "not found" in str(error)
        if code == "RESOURCE_DOES_NOT_EXIST" or gone:
            return TrackingError(
                f"{what}: not found at {self.label}. It may have been deleted meanwhile: "
                "list the runs again."
            )
        status = getattr(getattr(error, "response", None), "status_code", None)
        denied = ("PERMISSION_DENIED", "UNAUTHENTICATED", "CUSTOMER_UNAUTHORIZED")
        if code in denied or status in (401, 403):
            return AuthenticationError(
                f"{what}: {self.label} refuses it for this user. Ask for the permission, or "
                "use other credentials."
            )
        if code in _NOT_UNDERSTOOD:
            return TrackingError(
                f"{what}: {self.label} does not understand it: {clean_text(error, 200)}"
            )
        try:
            check(self.address, self._timeout)
        except RiseError as dead:
            return dead
        return TrackingError(
            f"{what} failed at {self.label}, which answers otherwise: {_cause(error)} Try again."
        )

    def with_files(
        self,
        run: Run,
        call: Callable[[RunFiles], T],
        files: RunFiles | None = None,
        path: str = "",
        watch: bool = True,
    ) -> T:
        """Touch the files of a run, or the one at `path`; failures name the store that failed.

        What asks nothing of the server needs no `watch`, which costs a thread.
        """
        what = f"{clean_text(path, 80)!r}" if path else "a file"
        try:
            if files is None:
                files = open_files(run.artifact_uri, self.address)
            return self._watched(partial(call, files)) if watch else call(files)
        except RiseError:
            raise
        except Exception as error:
            if self.address.path is None:
                check(self.address, self._timeout)
            if isinstance(error, ImportError):
                package = clean_text(error.name or error, 60)
                raise ArtifactStoreError(
                    f"The files of run {clean_text(run.name, 60)!r} are at "
                    f"{redact(run.artifact_uri)}, and {package} is needed to read them there: "
                    f"pip install {package}."
                ) from error
            status = getattr(getattr(error, "response", None), "status_code", None)
            code = str(getattr(error, "error_code", ""))
            no_bucket = re.search(r"(?i)NoSuchBucket|bucket does not exist", f"{error}") is not None
            if not no_bucket and (status == 404 or code == "RESOURCE_DOES_NOT_EXIST"):
                raise ArtifactStoreError(
                    f"Of run {clean_text(run.name, 60)!r}, {what} is listed but gone from "
                    f"{redact(run.artifact_uri)}. It may have been deleted: try again, "
                    "the run is then listed anew."
                ) from error
            if re.search(r"(?i)IncompleteRead|Connection broken", f"{error}"):
                raise _BrokenOffError(
                    f"Of run {clean_text(run.name, 60)!r}, {what} arrived incomplete: the "
                    f"connection to {self.label} broke off. Try again."
                ) from error
            if re.search(r"(?i)timed?[ -]?out", f"{error}"):
                raise ArtifactStoreError(
                    f"{self.label} answers, but of run {clean_text(run.name, 60)!r} {what} at "
                    f"{redact(run.artifact_uri)} did not come in time. The artifact store may be "
                    "slow or out of reach: try again, or raise MLFLOW_HTTP_REQUEST_TIMEOUT."
                ) from error
            raise ArtifactStoreError(
                f"{self.label} answers, but the files of run {clean_text(run.name, 60)!r} at "
                f"{redact(run.artifact_uri)} cannot be read: {_cause(error)} "
                "Check the artifact store and its credentials, on this machine or, with "
                "--serve-artifacts, on the server's."
            ) from error


_LEFT_OUT = object()


def _cause(error: Exception) -> str:
    """What went wrong, without the addresses that libraries put before it."""
    found = re.search(r"Caused by (.+)", str(error), re.DOTALL)
    return clean_text(found[1].rstrip("()'\"") if found else error, 200)


class _BrokenOffError(ArtifactStoreError):
    """A connection that ended within a file; worth a second try."""


def _written_roles(files: RunFiles, ref: TableRef) -> dict[str, Any] | None:
    """The roles in the file beside a table, if there is one."""
    path = ref.roles_path
    if not path and ref.size is None:  # then its folder has been listed, for the size
        folder = posixpath.dirname(ref.path)
        path = roles_beside(folder, files.entries(folder))
    return read_json_object(files, path) if path else None


def _refuse_large(run: Run, path: str, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise UnreadableTableError(
            f"{path} of run {clean_text(run.name, 60)!r} has {size / 2**20:,.1f} MB, more than the "
            f"limit of {max_bytes / 2**20:,.1f} MB. Raise it ({TABLE_VARIABLE}, or max_bytes in a "
            "script), or log only the label, score and group columns."
        )


def _stamp(run: Run) -> dict[str, Any]:
    return {
        "status": run.status,
        "ended": run.end_time.isoformat() if run.end_time else None,
    }


# ------------------------------------------------------------------ MLflow's entities to ours


def _time(millis: int | None) -> datetime | None:
    return datetime.fromtimestamp(millis / 1000, UTC) if millis else None


def _experiment(entity: Any) -> Experiment:
    return Experiment(
        id=str(entity.experiment_id),
        name=str(entity.name),
        last_update=_time(entity.last_update_time),
        created=_time(entity.creation_time),
        tags=dict(entity.tags or {}),
    )


def _run(entity: Any) -> Run:
    info, data = entity.info, entity.data
    params, tags = dict(data.params), dict(data.tags)
    name = info.run_name or tags.get("mlflow.runName") or info.run_id
    return Run(
        id=info.run_id,
        name=name,
        experiment_id=str(info.experiment_id),
        status=str(info.status),
        start_time=_time(info.start_time),
        end_time=_time(info.end_time),
        dataset=fact(DATASET, tags, params) or _input_name(entity),
        algorithm=fact(ALGORITHM, tags, params) or name,
        environment=fact(ENVIRONMENT, tags, params),
        seed=fact(SEED, tags, params),
        params=params,
        tags=tags,
        metrics={key: _metric(value) for key, value in data.metrics.items()},
        artifact_uri=str(info.artifact_uri or ""),
        parent_id=tags.get(PARENT_TAG),
        user=str(info.user_id or tags.get("mlflow.user") or ""),
        model_ids=_model_ids(entity),
        deleted=info.lifecycle_stage == "deleted",
    )


def _input_name(entity: Any) -> str | None:
    inputs = getattr(getattr(entity, "inputs", None), "dataset_inputs", None) or ()
    return next((str(item.dataset.name) for item in inputs if item.dataset.name), None)


def _model_ids(entity: Any) -> tuple[str, ...]:
    outputs = getattr(getattr(entity, "outputs", None), "model_outputs", None) or ()
    return tuple(dict.fromkeys(str(output.model_id) for output in outputs))


def _metric(value: float) -> float:
    # SQL stores keep an infinite metric as the largest float
    if abs(value) >= 1.7976931348623157e308:
        return float("inf") if value > 0 else float("-inf")
    return float(value)
