"""Reading the files in which people log predictions into one kind of table.

What a file is, its first bytes say, not its name. Texts stay texts: a group "001" must not become
the number 1, nor the group "NA" a missing value.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rise_core.exceptions import UnreadableTableError
from rise_core.tracking.address import clean_text

__all__ = ["ROLES_KEY", "TABLE_SUFFIXES", "TableFile", "read_table", "table_suffix"]

ROLES_KEY = b"rise.roles"
"""Key of the column roles inside a parquet file's own metadata."""

TABLE_SUFFIXES = (
    ".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".jsonl", ".jsonl.gz", ".ndjson",
    ".json", ".json.gz",
)  # fmt: skip
"""Endings of files that may hold a table."""

_DECIMAL_COMMA = r"\s*[+-]?\d+(?:,\d+)?(?:[eE][+-]?\d+)?\s*"
_MAX_UNPACKED = 2 << 30
_MANY_CELLS = 1_000_000
_MAX_CELLS = 400_000_000
_SPLIT_NOTE = (
    "The table is JSON as mlflow.log_table writes it, which keeps 10 decimals: smaller "
    "differences between scores are lost. log_predictions keeps them."
)


@dataclass(frozen=True)
class TableFile:
    """What a file held.

    Parameters
    ----------
    frame : the rows; column names are texts, each once
    notes : what a reader should know of the form, plain sentences
    roles : the roles written inside a parquet file, as a JSON object, or None
    """

    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    roles: Mapping[str, Any] | None = None


def table_suffix(path: str) -> str | None:
    """The table ending of a path, or None."""
    lower = path.lower()
    return next((end for end in sorted(TABLE_SUFFIXES, key=len, reverse=True)
                 if lower.endswith(end)), None)  # fmt: skip


def read_table(file: Path, name: str = "") -> TableFile:
    """Read parquet, CSV (also gzipped), JSON lines, and JSON in split, records or column form.

    Parameters
    ----------
    file : where it is
    name : what to call it in messages; its name by default

    Raises
    ------
    UnreadableTableError
        when the content is damaged, no table, or far larger than its file.
    """
    name = name or file.name
    with file.open("rb") as stream:
        head = stream.read(512)
    if not head:
        raise UnreadableTableError(f"{name} is empty (0 bytes). Write the table again.")
    if head[:4] == b"PAR1":
        found = _read_parquet(file, name)
    else:
        body = _unpack(file, name) if head[:2] == b"\x1f\x8b" else file.read_bytes()
        _refuse_foreign(body[:512], name)
        found = _read_text(body, name)
    return TableFile(_tidy(found.frame), found.notes, found.roles)


def _refuse_foreign(head: bytes, name: str) -> None:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if re.search(r"(?i)\.parquet\b", name):
        raise UnreadableTableError(
            f"{name} is no parquet file, or a damaged one: it does not start with PAR1. "
            "Write the table again."
        )
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise UnreadableTableError(
            f"{name} holds a web page or XML instead of a table, such as a proxy's login or error "
            "page. Check where it came from, then write the table again."
        )
    if start.startswith(b"version https://git-lfs"):
        raise UnreadableTableError(
            f"{name} is a Git LFS pointer, not the table itself. Run `git lfs pull`, log it again."
        )
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnreadableTableError(f"{name} is UTF-16 text. Write it as UTF-8 or as parquet.")
    if b"\x00" in head:
        raise UnreadableTableError(
            f"{name} is a binary file of an unknown kind. "
            "Readable are parquet, CSV (also gzipped), JSON and JSON lines."
        )


def _read_parquet(file: Path, name: str) -> TableFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(file)
        rows, columns = about.num_rows, about.num_columns
        if rows * columns > _MAX_CELLS:
            raise UnreadableTableError(
                f"{name} holds {rows:,} rows of {columns} columns, too many to read at once. "
                "Log the label, score and group columns only."
            )
        with pq.ParquetFile(file, metadata=about) as parquet:
            # Small tables are many, and read at the same time: more threads would be in the way.
            large = rows * columns > _MANY_CELLS
            table = _plain_types(parquet.read(use_threads=large))
        raw = (table.schema.metadata or {}).get(ROLES_KEY)
        frame = table.to_pandas(use_threads=large)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableTableError(
            f"{name} is damaged and cannot be read as parquet: {clean_text(error, 160)}. "
            "Write the table again."
        ) from error
    if not isinstance(frame.index, pd.RangeIndex) or frame.index.name is not None:
        frame = frame.reset_index()
    roles = None
    if raw is not None:
        try:
            roles = json.loads(raw)
        except ValueError:
            roles = None
    return TableFile(frame, (), roles if isinstance(roles, dict) else None)


def _plain_types(table: Any) -> Any:
    """Decimals as numbers, bytes as text: databases write both, and pandas knows neither."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        kind = field.type
        if pa.types.is_decimal(kind):
            # long codes stay decimals: as a float two of them could become one
            wanted = pa.float64() if kind.scale > 0 else pa.int64() if kind.precision < 19 else None
        elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            wanted = pa.large_string()
        else:
            wanted = None
        if wanted is not None:
            with suppress(pa.ArrowInvalid):  # bytes that are no text, such as pictures
                table = table.set_column(place, field.name, table.column(place).cast(wanted))
    return table


def _unpack(file: Path, name: str) -> bytes:
    try:
        with gzip.open(file, "rb") as stream:
            body = stream.read(_MAX_UNPACKED + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableTableError(
            f"{name} is damaged and cannot be unpacked: {clean_text(error, 160)}. "
            "Write the table again."
        ) from error
    if len(body) > _MAX_UNPACKED:
        raise UnreadableTableError(
            f"{name} unpacks to more than {_MAX_UNPACKED >> 30} GB. "
            "Log the label, score and group columns only, as parquet."
        )
    return body


def _read_text(body: bytes, name: str) -> TableFile:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableTableError(
            f"{name} is not UTF-8 text (byte {error.start}). Write it as UTF-8 or as parquet."
        ) from error
    if text.lstrip()[:1] in ("{", "["):
        return _read_json(text, name)
    return _read_csv(text, name)


# ----------------------------------------------------------------------------------------- CSV


def _read_csv(text: str, name: str) -> TableFile:
    header = text.split("\n", 1)[0]
    separator = max((",", ";", "\t", "|"), key=header.count)
    if separator not in header:
        raise UnreadableTableError(
            f"{name} holds no table: its first line has no comma, semicolon or tab "
            f"({clean_text(header, 60)!r})."
        )
    try:
        names, first = _first_rows(text, separator)
        if len(first) > len(names):
            # pandas would quietly make row names of the first column and shift the others
            raise ValueError("its rows have more fields than its header has names")
        frame = pd.read_csv(io.StringIO(text), sep=separator, low_memory=False)
        # before the search for hidden texts, which would keep "NA" beside "0,5"
        note = "" if separator == "," else _read_decimal_commas(frame)
        codes = [
            place for place, column in enumerate(frame.columns) if _may_hide_text(frame[column])
        ]
        if codes:
            plain = pd.read_csv(
                io.StringIO(text), sep=separator, usecols=codes, dtype=str,
                keep_default_na=False, na_values=[""],
            )  # fmt: skip
            for column in plain.columns:
                if _is_text(frame[column], plain[column]):
                    frame[column] = plain[column]
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError, csv.Error) as error:
        raise UnreadableTableError(
            f"{name} cannot be read as CSV: {clean_text(error, 160)}. Write the table again."
        ) from error
    return TableFile(frame, (note,) if note else ())


def _read_decimal_commas(frame: pd.DataFrame) -> str:
    """Make numbers of "0,5", where a comma separates no columns; what was read so, in words."""
    read = []
    for column in frame.columns:
        if not pd.api.types.is_string_dtype(frame[column].dtype):
            continue
        texts = frame[column].dropna().astype(str)
        if not texts.head(20).str.fullmatch(_DECIMAL_COMMA).all():
            continue  # the first few tell without a look at each row
        if texts.str.contains(",").any() and texts.str.fullmatch(_DECIMAL_COMMA).all():
            frame[column] = pd.to_numeric(frame[column].str.replace(",", "."))
            read.append(clean_text(column, 40))
    if not read:
        return ""
    return f"Numbers with a decimal comma were read as numbers, in: {clean_text(', '.join(read))}."


def _first_rows(text: str, separator: str) -> tuple[list[str], list[str]]:
    rows = csv.reader(io.StringIO(text), delimiter=separator)
    return next(rows, []), next(rows, [])


def _may_hide_text(column: pd.Series) -> bool:
    """Whether pandas may have made numbers or gaps of what were texts."""
    if pd.api.types.is_bool_dtype(column.dtype):
        return False
    if pd.api.types.is_numeric_dtype(column.dtype):
        head = column.dropna().iloc[:20_000]
        if not len(head):
            return True
        whole = bool(np.all(np.mod(head, 1) == 0))
        return whole and head.nunique() <= 1000
    return bool(column.isna().any())


def _is_text(parsed: pd.Series, plain: pd.Series) -> bool:
    """Whether the texts say more than what pandas made of them ("001", "NA")."""
    texts = pd.Series(plain.dropna().unique(), dtype="str")
    if pd.api.types.is_numeric_dtype(parsed.dtype):
        return bool(texts.str.fullmatch(r"\s*[+-]?0\d+").any())
    return True


# ---------------------------------------------------------------------------------------- JSON


def _read_json(text: str, name: str) -> TableFile:
    try:
        value = json.loads(text)
    except ValueError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2 or not lines[0].rstrip().endswith(("}", "]")):
            raise UnreadableTableError(
                f"{name} is damaged JSON: {clean_text(error, 120)}. Write the table again."
            ) from error
        value = [_json_line(line, number, name) for number, line in enumerate(lines, 1)]
    try:
        frame, notes = _json_frame(value)
    except (ValueError, TypeError, KeyError) as error:
        raise UnreadableTableError(
            f"{name} is JSON, but not a table: {clean_text(error, 160)}. Wanted are records "
            '[{"y_true": 1, …}, …], columns {"y_true": [1, …], …} or split orient.'
        ) from error
    return TableFile(frame, notes)


def _json_line(line: str, number: int, name: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise UnreadableTableError(
            f"{name}: line {number} is damaged JSON: {clean_text(error, 120)}. "
            "Write the table again."
        ) from error


def _json_frame(value: Any) -> tuple[pd.DataFrame, tuple[str, ...]]:
    if isinstance(value, dict) and {"columns", "data"} <= value.keys():
        frame = pd.DataFrame(value["data"], columns=[str(name) for name in value["columns"]])
        return frame, (_SPLIT_NOTE,)
    if isinstance(value, dict) and len(value) == 1:
        (inner,) = value.values()
        if isinstance(inner, list) and inner and isinstance(inner[0], dict):
            value = inner
    if isinstance(value, list):
        if not value or not all(isinstance(row, dict) for row in value):
            kind = type(value[0]).__name__ if value else "no rows"
            raise ValueError(f"a list of {kind}, not of records")
        return pd.DataFrame(value), ()
    columns = {key: column for key, column in value.items() if isinstance(column, (list, dict))}
    if not columns:
        raise ValueError("an object without columns")
    if all(isinstance(column, dict) for column in columns.values()):
        return pd.DataFrame(columns).reset_index(drop=True), ()
    lists = {key: column for key, column in columns.items() if isinstance(column, list)}
    if len({len(column) for column in lists.values()}) != 1:
        raise ValueError("columns of different lengths")
    return pd.DataFrame(lists), ()


# ---------------------------------------------------------------------------------------- tidy


def _tidy(frame: pd.DataFrame) -> pd.DataFrame:
    """Text names, each once; lists of scores spread over columns (p → p_0, p_1)."""
    names = _each_once(frame.columns)
    if names != list(frame.columns):
        frame = frame.copy(deep=False)
        frame.columns = pd.Index(names)
    widths = {name: _list_width(frame[name]) for name in names}
    spread = [name for name, width in widths.items() if width]
    if not spread:
        return frame
    parts: list[pd.DataFrame | pd.Series] = []
    for name in names:
        if name not in spread:
            parts.append(frame[name])
            continue
        values = _as_matrix(frame[name], widths[name])
        if values.shape[1] == 1:
            parts.append(pd.Series(values[:, 0], index=frame.index, name=name))
        else:
            titles = [f"{name}_{place}" for place in range(values.shape[1])]
            parts.append(pd.DataFrame(values, index=frame.index, columns=titles))
    whole = pd.concat(parts, axis=1)
    whole.columns = pd.Index(_each_once(whole.columns))  # "p_0" may have been there beside "p"
    return whole


def _each_once(columns: Iterable[Any]) -> list[str]:
    names: dict[str, None] = {}
    for column in columns:
        base = str(column).strip()
        name, number = base, 1
        while name in names:
            number += 1
            name = f"{base} ({number})"
        names[name] = None
    return list(names)


_LIST = (list, tuple, np.ndarray)


def _list_width(column: pd.Series) -> int:
    """Length of the number lists in a column; 0 when it does not hold lists of one length.

    A row may lack its list, or a list one of its numbers.
    """
    if column.dtype != object:
        return 0
    first = next((row for row in column if isinstance(row, _LIST)), ())
    if not 1 <= len(first) <= 1000:
        return 0
    width = len(first)
    same = all(
        len(row) == width
        and all(cell is None or isinstance(cell, (int, float, np.number)) for cell in row)
        if isinstance(row, _LIST)
        else _is_gap(row)
        for row in column
    )
    return width if same else 0


def _is_gap(value: object) -> bool:
    return value is None or (isinstance(value, float) and bool(np.isnan(value)))


def _as_matrix(column: pd.Series, width: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Rows of number lists as a matrix; a row without a list is missing throughout."""
    gap = [np.nan] * width
    return np.array([list(row) if isinstance(row, _LIST) else gap for row in column], "float64")


def unsafe_reason(path: str) -> str | None:
    """Why a path from a server must not be used, or None when it is safe.

    A local store resolves paths on this machine's disk, so nothing may lead out of the run.
    """
    if not path:
        return "it is empty"
    if "\x00" in path:
        return "it holds a NUL character"
    if "\\" in path:
        return "it holds a backslash"
    if path.startswith(("/", "~")) or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path):
        return "it is absolute"
    if ".." in path.split("/"):
        return "it leads out of the run's folder (..)"
    return None
