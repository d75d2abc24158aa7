# SPDX-License-Identifier: BSD-3-Clause
"""Results of experiments."""
from __future__ import annotations

import csv
import importlib
import json
import os
from typing import Any

import numpy as np

from ._library import ArgumentError


class Table(dict):
    """A dict of NumPy arrays, one per column, all of one length; `metadata` is the file's CSVW (units and definitions
    of columns, command, commit, seeds, machine)."""

    metadata: dict[str, Any]


def _column(texts, datatype):
    missing = "" in texts
    if datatype == "double" or (datatype == "integer" and missing):
        return np.array([float(t) if t else np.nan for t in texts])
    if datatype == "integer":
        return np.array([int(t) for t in texts], np.int64)
    if datatype == "boolean" and not missing:
        return np.array([t == "true" for t in texts], bool)
    values = np.empty(len(texts), object)
    values[:] = [None if not t else t == "true" if datatype == "boolean" else t for t in texts]
    return values


def read(path: str | os.PathLike[str], frame: str | None = None) -> Any:
    """The columns of a CSV file that `attnum run`, `bench` or `regress` has written, by name, with the types of the
    metadata next to it (PATH-metadata.json).

        table = attnum.read("results/convergence/curves.csv")
        table["step"], table["residual"], table.metadata["dc:title"]

    Reals are float64, integers int64, true and false bool, text str. Missing: nan, which makes integers float64, and
    None. frame="pandas": a pandas.DataFrame, with the metadata in its `attrs`; frame="polars": a polars.DataFrame."""
    if frame not in (None, "pandas", "polars"):
        raise ArgumentError(f"frame: {frame!r}, expected pandas or polars")
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ArgumentError(f"path: {os.fspath(path)} is no CSV file: {error}") from None
    try:
        with open(f"{os.fspath(path)}-metadata.json", encoding="utf-8") as file:
            metadata = json.load(file)
    except FileNotFoundError:
        raise ArgumentError(f"path: no {os.fspath(path)}-metadata.json, which says what the columns are") from None
    types = {column["name"]: column["datatype"] for column in metadata["tableSchema"]["columns"]}
    if not rows or list(types) != rows[0] or any(len(row) != len(types) for row in rows):
        raise ArgumentError(f"path: {os.fspath(path)} does not have the columns of its metadata")
    table = Table((name, _column([row[i] for row in rows[1:]], types[name])) for i, name in enumerate(rows[0]))
    table.metadata = metadata
    if frame is None:
        return table
    library = importlib.import_module(frame)
    if frame == "polars":
        return library.DataFrame({name: column.tolist() if column.dtype == object else column
                                  for name, column in table.items()})
    data = library.DataFrame(dict(table))
    data.attrs["metadata"] = metadata
    return data
