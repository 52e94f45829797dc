"""Files read into tables: nothing of a text is lost, and what is no table says so."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
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
