"""`albatross study`: many trials from one file, interrupted and resumed at will."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from cyclopts import App, Parameter

from albatross.cli.drawing import check_format, save_charts, save_tradeoffs
from albatross.cli.tables import print_summary
from albatross.cli.terminal import TERMINAL
from albatross.core.errors import InvalidInput, check_whole
from albatross.core.files import whole_file
from albatross.studies.journal import RESULTS, TIMINGS, Journal
from albatross.studies.plan import read_study
from albatross.studies.report.document import Picture, as_html
from albatross.studies.report.series import study_charts, study_tradeoffs
from albatross.studies.report.study import compare_policies, study_blocks, summarize
from albatross.studies.runner import finish

NARROWEST = 100
"""Columns: two intervals side by side and a name do not fit into fewer."""

CURVES = "Cumulative regret. Thin: each seed; thick: their mean, with a 95 % interval."

study = App(name="study", help="Many trials from one TOML file: run, resume, show, compare, export, report.", help_format="plaintext")


@study.command
def run(file: Path, *, folder: Path | None = None, engine: str = "local", jobs: int | None = None) -> None:
    """Run the trials of a study that are not finished yet. Interrupt it as you like: the next call goes on from there.

    Parameters
    ----------
    file
        The study, a TOML file.
    folder
        Where the results are kept; if not given, out/ and the name of the file.
    engine
        local, ray (a cluster on this machine) or ray://host:port (a cluster that runs already).
    jobs
        Processes to use on this machine; if not given, one per core.
    """
    if jobs is not None:
        check_whole("--jobs", jobs, 1)
    planned, journal = read_study(file), _journal(file, folder)
    finish([planned], journal, engine, jobs, TERMINAL)
    print_summary(summarize(planned, journal))
    print(f"Curves: {journal.folder / RESULTS}   Times: {journal.folder / TIMINGS}")


@study.command
def show(file: Path, *, folder: Path | None = None) -> None:
    """The finished part of a study as a table.

    Parameters
    ----------
    file
        The study, a TOML file.
    folder
        Where the results are kept; if not given, out/ and the name of the file.
    """
    print_summary(summarize(read_study(file), _journal(file, folder)))


@study.command
def compare(file: Path, policy: str, *, at: Annotated[list[int] | None, Parameter(negative=())] = None, folder: Path | None = None) -> None:
    """One policy of a study against whoever else does best on each data set, paired by seed.

    Parameters
    ----------
    file
        The study, a TOML file.
    policy
        Its name; where the study varies its parameters, with these, as `albatross study show` has it.
    at
        The steps at which regret is compared; if not given, the horizon.
    folder
        Where the results are kept; if not given, out/ and the name of the file.
    """
    summary = compare_policies(read_study(file), _journal(file, folder), policy, at or ())
    print_summary(summary, folded=-1, narrowest=NARROWEST)


@study.command
def export(file: Path, target: Path, *, folder: Path | None = None) -> None:
    """Write the finished part of a study to one .parquet or .csv file, one row per trial and checkpoint.

    Parameters
    ----------
    file
        The study, a TOML file.
    target
        The file to write.
    folder
        Where the results are kept; if not given, out/ and the name of the file.
    """
    planned, journal = read_study(file), _journal(file, folder)
    journal.export(planned.trials(), target)


@study.command
def figure(file: Path, target: Path, *, along: str | None = None, folder: Path | None = None) -> None:
    """Draw the finished part of a study to a .png, .svg or .pdf file: cumulative regret over time, one panel per data set.

    Parameters
    ----------
    file
        The study, a TOML file.
    target
        The file to write.
    along
        Draw instead what this parameter buys and costs: regret and time for each of its values.
    folder
        Where the results are kept; if not given, out/ and the name of the file.
    """
    check_format(target)
    planned, journal = read_study(file), _journal(file, folder)
    if along is None:
        save_charts(study_charts(planned, journal), target)
    else:
        save_tradeoffs(study_tradeoffs(planned, journal, along), along, target)


@study.command
def report(file: Path, target: Path, *, folder: Path | None = None) -> None:
    """Write the finished part of a study to one .html file: curves to choose from, and its tables. It needs no network.

    Parameters
    ----------
    file
        The study, a TOML file.
    target
        The file to write.
    folder
        Where the results are kept; if not given, out/ and the name of the file.
    """
    if target.suffix.lower() != ".html":
        raise InvalidInput(f"{target}; accepted: a name ending in .html")
    planned, journal = read_study(file), _journal(file, folder)
    charts = study_charts(planned, journal)
    with TemporaryDirectory() as beside:
        picture = Picture(Path(beside) / "curves.svg", CURVES, charts)
        save_charts(charts, picture.file)
        text = as_html(planned.title, study_blocks(planned, journal, picture))
    with whole_file(target) as partial:
        partial.write_text(text, encoding="utf-8")


def _journal(file: Path, folder: Path | None) -> Journal:
    return Journal(Path("out") / file.stem if folder is None else folder)
