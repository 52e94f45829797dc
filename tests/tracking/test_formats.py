"""Files read into tables: nothing of a text is lost, and what is no table says so."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rise_core.columns import guess_roles
from rise_core.exceptions import UnreadableTableError
from rise_core.tracking import read_table


def write(folder: Path, name: str, content: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def test_csv_keeps_codes_and_the_text_na(tmp_path: Path) -> None:
    file = write(
        tmp_path, "p.csv",
        "id,y,p,zone,area,n\n1,0,.5,001,NA,7\n2,1,.25,002,EU,8\n3,1,,010,,9\n",
    )  # fmt: skip
    frame = read_table(file).frame
    assert list(frame["zone"]) == ["001", "002", "010"]
    assert frame["area"].isna().tolist() == [False, False, True]
    assert frame["area"][0] == "NA"
    assert frame["n"].tolist() == [7, 8, 9]
    assert frame["p"].isna().tolist() == [False, False, True]
    assert frame["y"].dtype.kind == "i"


def test_csv_codes_with_gaps_stay_text(tmp_path: Path) -> None:
    frame = read_table(write(tmp_path, "p.csv", "zone,p\n001,.5\n,.2\n003,.1\n")).frame
    assert frame["zone"].dropna().tolist() == ["001", "003"]


def test_csv_numbers_stay_numbers(tmp_path: Path) -> None:
    frame = read_table(write(tmp_path, "p.csv", "y,p\n0,0.5\n1,1\n1,nan\n")).frame
    assert frame["y"].tolist() == [0, 1, 1]
    assert frame["p"].dtype.kind == "f"
    assert np.isnan(frame["p"][2])


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_csv_separators_and_byte_order_mark(tmp_path: Path, separator: str) -> None:
    text = "\ufeffy_true;y_prob;sex\n1;.5;m\n0;.25;f\n".replace(";", separator)
    frame = read_table(write(tmp_path, "p.csv", text)).frame
    assert list(frame.columns) == ["y_true", "y_prob", "sex"]
    assert frame["y_prob"].tolist() == [0.5, 0.25]


def test_gzipped_by_content_not_by_name(tmp_path: Path) -> None:
    file = write(tmp_path, "p.csv", gzip.compress(b"y,p\n1,.5\n0,.1\n"))
    assert len(read_table(file).frame) == 2


@pytest.mark.parametrize(
    "value",
    [
        [{"y": 1, "p": 0.123456789012, "g": "001"}, {"y": 0, "p": 1e-9, "g": None}],
        {"y": [1, 0], "p": [0.123456789012, 1e-9], "g": ["001", None]},
        {"columns": ["y", "p", "g"], "data": [[1, 0.123456789012, "001"], [0, 1e-9, None]]},
        {"y": {"0": 1, "1": 0}, "p": {"0": 0.123456789012, "1": 1e-9},
         "g": {"0": "001", "1": None}},
        {"predictions": [{"y": 1, "p": 0.123456789012, "g": "001"}, {"y": 0, "p": 1e-9}]},
    ],
    ids=["records", "lists", "split", "columns", "wrapped"],
)  # fmt: skip
def test_json_forms(tmp_path: Path, value: object) -> None:
    found = read_table(write(tmp_path, "p.json", json.dumps(value)))
    assert found.frame["y"].tolist() == [1, 0]
    assert found.frame["p"].tolist() == [0.123456789012, 1e-9]
    assert found.frame["g"][0] == "001"
    assert pd.isna(found.frame["g"][1])
    split = isinstance(value, dict) and "columns" in value
    assert bool(found.notes) == split


def test_json_lines(tmp_path: Path) -> None:
    text = '{"y": 1, "p": 0.5}\n\n{"y": 0, "p": 0.25, "g": "a"}\n'
    frame = read_table(write(tmp_path, "p.jsonl", text)).frame
    assert frame["p"].tolist() == [0.5, 0.25]
    assert list(frame.columns) == ["y", "p", "g"]
    alone = read_table(write(tmp_path, "q.jsonl", '{"y": [1, 0], "p": [0.5, 0.1]}\n')).frame
    assert len(alone) == 2


def test_domainbed_style_lists_are_spread(tmp_path: Path) -> None:
    rows = [
        {"predicted_probabilities": [1 - p, p], "true_label": y, "domain": d, "gender": g}
        for p, y, d, g in [(0.9, 1, "a", "f"), (0.2, 0, "b", "m"), (0.6, 1, "a", "m")]
    ]
    frame = read_table(write(tmp_path, "p.json", json.dumps(rows))).frame
    assert frame["predicted_probabilities_1"].tolist() == [0.9, 0.2, 0.6]
    roles = guess_roles(frame)
    assert roles.y_prob == "predicted_probabilities_1"
    assert (roles.y_true, roles.environment, roles.sensitive_features) == (
        "true_label", "domain", ("gender",),
    )  # fmt: skip
    assert roles.pos_label == "1"


def test_lists_in_parquet_are_spread_too(tmp_path: Path) -> None:
    file = tmp_path / "p.parquet"
    pd.DataFrame({"y": [1, 0], "probs": [[0.25, 0.75], [0.5, 0.5]], "one": [[3.0], [4.0]]}
                 ).to_parquet(file)  # fmt: skip
    frame = read_table(file).frame
    assert frame["probs_1"].tolist() == [0.75, 0.5]
    assert frame["one"].tolist() == [3.0, 4.0]


def test_lists_of_different_lengths_are_left_as_they_are(tmp_path: Path) -> None:
    file = write(tmp_path, "p.json", json.dumps([{"a": [1, 2]}, {"a": [1]}]))
    assert read_table(file).frame["a"].tolist() == [[1, 2], [1]]


def test_named_index_becomes_a_column(tmp_path: Path) -> None:
    file = tmp_path / "p.parquet"
    frame = pd.DataFrame({"p": [0.5, 0.1]}, index=pd.Index(["a", "b"], name="row_id"))
    frame.to_parquet(file)
    assert read_table(file).frame["row_id"].tolist() == ["a", "b"]


def test_columns_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    value = {"columns": ["p", "p", 3], "data": [[0.1, 0.2, 0.3]]}
    frame = read_table(write(tmp_path, "p.json", json.dumps(value))).frame
    assert list(frame.columns) == ["p", "p (2)", "3"]
    guess_roles(frame)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("p.csv", b"", "is empty"),
        ("p.parquet", b"PAR1", "damaged"),
        ("p.parquet", b"PAR1" + b"\x00" * 200 + b"PAR1", "damaged"),
        ("p.parquet", b"y,p\n1,2\n", "no parquet file"),
        ("p.csv", b"<!DOCTYPE html><html>Sign in</html>", "web page"),
        ("p.csv", b"just one column\n1\n2\n", "no comma"),
        ("p.csv", b'a,b\n1,2\n"3,4\n', "cannot be read as CSV"),
        ("p.csv", b"a,b\n1,2\n1,2,3,4\n", "cannot be read as CSV"),
        ("p.csv", b"a,b\n1,2,3\n4,5,6\n", "more fields than its header"),
        ("p.csv", "größe,p\n1,2\n".encode("latin-1"), "not UTF-8"),
        ("p.csv", "y,p\n1,2\n".encode("utf-16"), "UTF-16"),
        ("p.csv", b"\x89PNG\r\n\x1a\n\x00\x00", "binary file"),
        ("p.csv.gz", gzip.compress(b"y,p\n1,2\n" * 999)[:40], "cannot be unpacked"),
        ("p.csv.gz", b"\x1f\x8b" + b"\x00" * 50, "cannot be unpacked"),
        ("p.csv", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"),
        ("p.json", b'{"y": [1, 0', "damaged JSON"),
        ("p.json", b'{"y": 1}', "not a table"),
        ("p.json", b"[]", "not a table"),
        ("p.json", b"[[1, 2], [3, 4]]", "not a table"),
        ("p.json", b'{"y": [1], "p": [1, 2]}', "different lengths"),
        ("p.json", b'{"columns": ["a"], "data": [[1, 2]]}', "not a table"),
        ("p.jsonl", b'{"y": 1}\n{"y": \n{"y": 2}\n', "line 2"),
    ],
    # gzip writes the time into its bytes: an id made of them differs from process to process
    ids=lambda value: "" if isinstance(value, bytes) else None,
)
def test_what_is_no_table_says_so(tmp_path: Path, name: str, content: bytes, text: str) -> None:
    file = write(tmp_path, name, content)
    with pytest.raises(UnreadableTableError, match=text) as caught:
        read_table(file, f"out/{name} of run 'x'")
    assert f"out/{name} of run 'x'" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_gzip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rise_core.tracking.formats._MAX_UNPACKED", 1 << 20)
    file = write(tmp_path, "p.csv.gz", gzip.compress(b"y,p\n" + b"1,0\n" * 400_000))
    with pytest.raises(UnreadableTableError, match="unpacks to more than"):
        read_table(file)


def test_a_parquet_of_too_many_cells_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rise_core.tracking.formats._MAX_CELLS", 10)
    file = tmp_path / "p.parquet"
    pd.DataFrame({"p": [0.5] * 6, "y": [1] * 6}).to_parquet(file)
    with pytest.raises(UnreadableTableError, match="6 rows of 2 columns"):
        read_table(file)


# ---------------------------------------------------------------- what databases and Excel write


def write_parquet(folder: Path, **columns: pa.Array) -> Path:
    file = folder / "p.parquet"
    pq.write_table(pa.table(columns), file)
    return file


def test_decimals_are_numbers_and_long_codes_stay_exact(tmp_path: Path) -> None:
    score = [Decimal("0.125"), None, Decimal("0.900")]
    code = [Decimal(10**19 + k) for k in range(3)]
    frame = read_table(
        write_parquet(
            tmp_path,
            y_true=pa.array([Decimal(1), Decimal(0), Decimal(1)], pa.decimal128(1, 0)),
            y_prob=pa.array(score, pa.decimal128(6, 3)),
            id=pa.array(code, pa.decimal128(20, 0)),
        )
    ).frame
    assert frame["y_prob"].tolist()[::2] == [0.125, 0.9]
    assert np.isnan(frame["y_prob"][1])
    assert frame["y_true"].dtype.kind == "i"
    assert frame["id"].tolist() == code


def test_bytes_are_text_where_they_are_any(tmp_path: Path) -> None:
    frame = read_table(
        write_parquet(
            tmp_path,
            sex=pa.array(["weiblich ♀".encode(), None, b"m"]),
            picture=pa.array([b"\x89PNG\xff", b"\xfe", b""]),
        )
    ).frame
    assert frame["sex"].dropna().tolist() == ["weiblich ♀", "m"]
    assert frame["picture"].tolist() == [b"\x89PNG\xff", b"\xfe", b""]


def test_kinds_that_a_parquet_file_may_hold(tmp_path: Path) -> None:
    """None of them stops the columns beside it."""
    when = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2)]
    found = read_table(
        write_parquet(
            tmp_path,
            y_true=pa.array(["no", "yes"]).dictionary_encode(),
            y_prob=pa.array([0.25, 0.75], pa.float32()),
            sex=pa.array(["f", "m"], pa.large_string()),
            when=pa.array(when, pa.timestamp("ms", "Europe/Berlin")),
            info=pa.array([{"a": {"b": 1}}, None]),
            words=pa.array([["x"], ["y", "z"]]),
            pairs=pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
            nothing=pa.nulls(2),
        )
    ).frame
    assert found["y_prob"].tolist() == [0.25, 0.75]
    assert found["when"].tolist() == when
    roles = guess_roles(found)
    assert (roles.y_true, roles.y_prob, roles.sensitive_features) == (
        "y_true",
        "y_prob",
        ("sex", "when"),
    )


def test_decimal_commas_are_read_and_said(tmp_path: Path) -> None:
    text = "y_true;y_prob;sex;zone\n1;0,75;m;A1\n0;;f;1,5 km\n0;1;f;NA\n1;1,5e-2;m;B\n"
    found = read_table(write(tmp_path, "p.csv", text))
    assert found.frame["y_prob"].dropna().tolist() == [0.75, 1, 0.015]
    assert found.frame["zone"].tolist() == ["A1", "1,5 km", "NA", "B"]
    (note,) = found.notes
    assert "decimal comma" in note
    assert note.endswith("in: y_prob.")
    # between commas a comma decides nothing: the text stays text
    quoted = read_table(write(tmp_path, "q.csv", 'y,p\n1,"0,75"\n0,"0,5"\n')).frame
    assert quoted["p"].tolist() == ["0,75", "0,5"]


def test_a_list_that_is_missing_is_a_missing_row(tmp_path: Path) -> None:
    rows = [{"y": 1, "p": None}, {"y": 0, "p": [0.75, 0.25]}, {"y": 1, "p": [None, 0.5]}]
    frame = read_table(write(tmp_path, "p.json", json.dumps(rows))).frame
    assert frame["p_1"].tolist()[1:] == [0.25, 0.5]
    assert frame["p_1"].isna().tolist() == [True, False, False]
    assert frame["p_0"].isna().tolist() == [True, False, True]


def test_spread_lists_do_not_hide_a_column_of_that_name(tmp_path: Path) -> None:
    rows = [{"p": [0.25, 0.75], "p_1": "x"}, {"p": [0.5, 0.5], "p_1": "y"}]
    frame = read_table(write(tmp_path, "p.json", json.dumps(rows))).frame
    assert list(frame.columns) == ["p_0", "p_1", "p_1 (2)"]
    assert frame["p_1 (2)"].tolist() == ["x", "y"]


def test_columns_without_a_name(tmp_path: Path) -> None:
    frame = read_table(write(tmp_path, "p.csv", ",y,\n0,1,a\n1,0,b\n")).frame
    assert frame.columns.is_unique
    assert frame.shape == (2, 3)
    named = read_table(write_parquet(tmp_path, **{"": pa.array(["a"]), " ": pa.array(["b"])}))
    assert list(named.frame.columns) == ["", " (2)"]
