"""Writing the prediction tables: small, and byte for byte the same for the same predictions."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from demo.cards import DATASETS, DatasetCard
from demo.pack import roles
from demo.train.problem import TRAIN, Problem
from rise_core.tracking.formats import ROLES_KEY


def evaluated_rows(problem: Problem) -> pd.DataFrame:
    """All columns but the score, for the validation and held-out rows, by ascending row id."""
    card = DATASETS[problem.dataset]
    split = problem.split()
    frame = pd.DataFrame(
        {
            "row_id": problem.row_id,
            "y_true": np.where(problem.y == 1, card.positive, card.negative),
            **{name: column.to_numpy() for name, column in problem.sensitive.items()},
            "environment": problem.environment,
            "split": split,
        }
    )
    return frame[split != TRAIN].sort_values("row_id")


def digest(rows: pd.DataFrame) -> str:
    """Sixteen hex digits that name the evaluated rows, their labels and groups."""
    text = rows.to_csv(index=False).encode()
    return hashlib.sha256(text).hexdigest()[:16]


def write(card: DatasetCard, rows: pd.DataFrame, y_prob: NDArray[np.float32], path: Path) -> None:
    """Write ``row_id, y_true, y_prob, groups …, environment, split`` as zstd parquet.

    The roles of the columns travel inside the file, as with ``log_predictions``. No pandas metadata
    and no schema copy: they carry library versions and would change the bytes.
    """
    columns: dict[str, pa.Array] = {}
    for name, values in rows.items():
        kind = pa.int32() if name == "row_id" else pa.string()
        columns[str(name)] = pa.array(values.to_numpy(), kind)
        if name == "y_true":
            columns["y_prob"] = pa.array(y_prob, pa.float32())
    text = [name for name in columns if name not in ("row_id", "y_prob")]
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    table = pa.table(columns)
    with pq.ParquetWriter(
        partial,
        table.schema,
        compression="zstd",
        compression_level=19,
        use_dictionary=text,
        column_encoding={"row_id": "DELTA_BINARY_PACKED", "y_prob": "BYTE_STREAM_SPLIT"},
        store_schema=False,
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({ROLES_KEY: json.dumps(roles(card).to_dict())})
    partial.replace(path)
