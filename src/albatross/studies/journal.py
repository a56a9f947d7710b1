"""Finished trials on disk: a journal with one line per trial, and Parquet tables made from it.

A trial is identified by a hash of its recipe and of its source code. So a finished trial is never run twice, an
interrupted study continues where it stopped, and an edited policy is run again.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albatross.core.errors import InvalidInput
from albatross.core.files import whole_file
from albatross.kernels.compiling import source_fingerprint
from albatross.studies.trials import Result, Trial

JOURNAL = "journal.jsonl"
RESULTS = "results.parquet"
TIMINGS = "timings.parquet"

CURVES = ("regret", "pseudo_regret", "ndcg")


def trial_key(trial: Trial) -> str:
    """The key of a trial: the same only for the same recipe and the same code."""
    text = json.dumps([trial.recipe(), source_fingerprint(type(trial.policy))], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class Journal:
    """The finished trials of one folder. One process writes at a time."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / JOURNAL
        self._finished = self._read()

    def __contains__(self, trial: Trial) -> bool:
        return trial_key(trial) in self._finished

    def __getitem__(self, trial: Trial) -> Result:
        entry = self._finished[trial_key(trial)]
        curves = {name: np.array(entry[name]) for name in CURVES}
        return Result(
            checkpoints=np.array(entry["checkpoints"]),
            **curves,
            trivial=entry["trivial"],
            counters=entry["counters"],
            seconds=entry["seconds"],
            state_id=entry["state_id"],
        )

    def add(self, trial: Trial, result: Result) -> None:
        """Write a finished trial to disk (fsync). It is never run again."""
        key = trial_key(trial)
        entry: dict[str, Any] = {"key": key, "recipe": trial.recipe(), "checkpoints": result.checkpoints.tolist()}
        entry |= {name: getattr(result, name).tolist() for name in CURVES}
        entry |= {"trivial": result.trivial, "counters": result.counters, "seconds": result.seconds, "state_id": result.state_id}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._finished[key] = entry

    def finished(self, trials: Iterable[Trial]) -> dict[Trial, Result]:
        """The finished ones among these trials, in order, with their results."""
        return {trial: self[trial] for trial in trials if trial in self}

    def write_parquet(self, trials: Sequence[Trial]) -> None:
        """The finished ones among these trials as two tables: the curves, which depend only on the recipes, and the times.

        One row per trial and checkpoint, in the order of the trials, so the same study gives the same bytes however it was run.
        """
        finished = list(self.finished(trials).items())
        lengths = [result.checkpoints.size for _, result in finished]

        def repeated(values: Sequence[Any]) -> Any:
            return np.repeat(np.array(values, dtype=object if values and isinstance(values[0], str) else None), lengths)

        def joined(name: str) -> Any:
            curves = [getattr(result, name) for _, result in finished]
            return np.concatenate([np.full(size, np.nan) if not curve.size else curve for curve, size in zip(curves, lengths, strict=True)])

        recipes = [trial.recipe() for trial, _ in finished]
        words = {
            "dataset": [trial.dataset for trial, _ in finished],
            "policy": [recipe["policy"] for recipe in recipes],
            "parameters": [json.dumps(recipe["parameters"]) for recipe in recipes],
            "protocol": [trial.protocol() for trial, _ in finished],
            "seed": [trial.seed for trial, _ in finished],
            "horizon": [trial.horizon for trial, _ in finished],
            "key": [trial_key(trial) for trial, _ in finished],
        }
        if not finished:
            raise InvalidInput(f"{self.folder} has no finished trial of this study; accepted: a folder in which it was run")
        table = {name: repeated(values) for name, values in words.items()}
        table |= {"step": joined("checkpoints"), **{name: joined(name) for name in CURVES}}
        table |= {
            "recipe": repeated([json.dumps(recipe) for recipe in recipes]),
            "state_id": repeated([done.state_id for _, done in finished]),
        }
        times = {name: np.array(values, dtype=object if isinstance(values[0], str) else None) for name, values in words.items()}
        times["seconds"] = np.array([result.seconds for _, result in finished])
        _write(table, self.folder / RESULTS)
        _write(times, self.folder / TIMINGS)

    def export(self, trials: Sequence[Trial], target: Path) -> None:
        """The curves of the finished ones among these trials as one .parquet or .csv file."""
        if target.suffix not in (".parquet", ".csv"):
            raise InvalidInput(f"{target}; accepted: a name ending in .parquet or .csv")
        self.write_parquet(trials)
        with whole_file(target) as partial:
            if target.suffix == ".parquet":
                shutil.copyfile(self.folder / RESULTS, partial)
            else:
                _write_csv(self.folder / RESULTS, partial)

    def _read(self) -> dict[str, dict[str, Any]]:
        """All complete lines. An incomplete last line, left by a crash, is removed from the file, so that the next entry starts a line."""
        if not self.path.exists():
            return {}
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
        entries = []
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                entries.append(json.loads(line))
            except ValueError as error:
                raise InvalidInput(f"{self.path}, line {number} is damaged ({error}); remove the line to run that trial again") from error
        return {entry["key"]: entry for entry in entries}


def _write(table: dict[str, Any], path: Path) -> None:
    import duckdb  # slow to import, and needed only to write tables

    with whole_file(path) as partial, duckdb.connect(config={"threads": "1"}) as connection:
        connection.execute(f'COPY (SELECT * FROM "table") TO {_quoted(partial)} (FORMAT parquet)')  # DuckDB finds the argument by its name


def _write_csv(source: Path, target: Path) -> None:
    import duckdb  # as above

    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT * FROM {_quoted(source)}) TO {_quoted(target)} (FORMAT csv, HEADER)")


def _quoted(path: Path) -> str:
    """A path as an SQL string."""
    return "'" + str(path).replace("'", "''") + "'"
