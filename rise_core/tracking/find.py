"""Which of a run's files is the table of predictions: few requests, likeliest first."""

from __future__ import annotations

import posixpath
import re

from rise_core.tracking.entities import TableRef
from rise_core.tracking.files import FileEntry, RunFiles
from rise_core.tracking.formats import table_suffix, unsafe_reason

__all__ = ["ROLES_FILE", "find_tables", "rank", "roles_beside"]

ROLES_FILE = "roles.json"

_MAX_LISTINGS = 8
_MAX_DEPTH = 3
_OWN_FOLDER = "rise"
_NO_TABLES = re.compile(
    r"(?i)(^|/)(roles|.*metadata|.*schema|.*config|.*settings|.*params|.*vocab|.*tokenizer.*|"
    r"input_example|serving_input_example|package|.*summary|.*metrics|.*report)\.json(\.gz)?$"
)
_DULL_FOLDERS = re.compile(
    r"(?i)(^|/)(model|models|model_.*|.*_model|checkpoints?|plots?|images?|figures?|logs?|code|"
    r"estimator|data_explanation|shap|explanations?|mlflow.*|traces?)$"
)
_ENDINGS = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".jsonl", ".ndjson", ".jsonl.gz",
            ".json", ".json.gz")  # fmt: skip


def find_tables(files: RunFiles) -> list[TableRef]:
    """Files that may be tables: the top folder, then the likely folders below, not deep.

    Stops at the table `log_predictions` writes; never asks for more than eight listings.
    """
    found: list[TableRef] = []
    waiting = [("", 0)]
    for _ in range(_MAX_LISTINGS):
        if not waiting:
            break
        folder, depth = waiting.pop(0)
        folders: list[str] = []
        entries = files.entries(folder)
        roles = roles_beside(folder, entries)
        for entry in entries:
            if entry.is_dir:
                if depth + 1 < _MAX_DEPTH and not _DULL_FOLDERS.search(entry.path):
                    folders.append(entry.path)
            elif _may_be_table(entry):
                found.append(TableRef(entry.path, entry.size, roles_path=roles))
        if folder == _OWN_FOLDER and found:
            break
        folders.sort(key=lambda path: (path != _OWN_FOLDER, not _likely(path), path))
        waiting += [(path, depth + 1) for path in folders]
    return found


def roles_beside(folder: str, entries: list[FileEntry]) -> str:
    """Path of the file with column roles in a folder, or ""."""
    path = posixpath.join(folder, ROLES_FILE)
    return path if any(entry.path == path and not entry.is_dir for entry in entries) else ""


def rank(refs: list[TableRef]) -> list[TableRef]:
    """Likeliest table of predictions first; unsafe names last, where their refusal is seen."""

    def order(ref: TableRef) -> tuple[object, ...]:
        end = table_suffix(ref.path)
        return (
            unsafe_reason(ref.path) is not None,
            posixpath.dirname(ref.path) != _OWN_FOLDER,
            not _likely(ref.path),
            _ENDINGS.index(end) if end in _ENDINGS else len(_ENDINGS),
            ref.path,
        )

    return sorted(refs, key=order)


def _may_be_table(entry: FileEntry) -> bool:
    return table_suffix(entry.path) is not None and not _NO_TABLES.search(entry.path)


def _likely(path: str) -> bool:
    return re.search(r"(?i)pred|eval|score|prob|test|result|output", path) is not None
