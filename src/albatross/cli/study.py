"""`albatross study`: many trials from one file; they can be interrupted and resumed."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from cyclopts import App, Parameter

from albatross.cli.drawing import check_format, save_charts, save_growth, save_tradeoffs
from albatross.cli.tables import print_summary
from albatross.cli.terminal import TERMINAL
from albatross.core.errors import InvalidInput, check_whole
from albatross.core.files import whole_file
from albatross.studies.journal import RESULTS, TIMINGS, Journal
from albatross.studies.plan import Study, read_study
from albatross.studies.report.document import Heading, Picture, as_html, as_markdown
from albatross.studies.report.growth import growth_summary
from albatross.studies.report.series import study_charts, study_tradeoffs
from albatross.studies.report.standing import as_blocks, mean_ranks, standings
from albatross.studies.report.study import compare_policies, study_blocks, summarize
from albatross.studies.reproducing.growth import measure_growth
from albatross.studies.runner import finish_tuned
from albatross.studies.tuning import settle

NARROWEST = 120
"""Columns. Two intervals and a name need at least so many."""

CURVES = "Cumulative regret. Thin: each seed; thick: their mean, with a 95 % interval."

study = App(
    name="study", help="Many trials from one TOML file: run, resume, show, compare, rank, growth, export, report.", help_format="plaintext"
)


@study.command
def run(file: Path, *, folder: Path | None = None, engine: str = "local", jobs: int | None = None) -> None:
    """Run the trials of a study that are not finished yet. It can be interrupted: the next call continues from there.

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
    journal = _journal(file, folder)
    settled = finish_tuned(read_study(file), journal, engine, jobs, TERMINAL)
    print_summary(summarize(settled, journal))
    print(f"Curves: {journal.folder / RESULTS}   Times: {journal.folder / TIMINGS}")


@study.command
def show(file: Path, *, folder: Path | None = None) -> None:
    """Print the finished part of a study as a table.

    Parameters
    ----------
    file
        The study, a TOML file.
    folder
        Where the results are kept; if not given, out/ and the name of the file.
    """
    journal = _journal(file, folder)
    print_summary(summarize(_settled(file, journal), journal))


@study.command
def compare(file: Path, policy: str, *, at: Annotated[list[int] | None, Parameter(negative=())] = None, folder: Path | None = None) -> None:
    """Compare one policy of a study with the best of the others on each data set, paired by seed.

    Parameters
    ----------
    file
        The study, a TOML file.
    policy
        Its name; if the study varies its parameters, with these, as `albatross study show` prints it.
    at
        The steps at which regret is compared; if not given, the horizon.
    folder
        Where the results are kept; if not given, out/ and the name of the file.
    """
    journal = _journal(file, folder)
    summary = compare_policies(_settled(file, journal), journal, policy, at or ())
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
    journal = _journal(file, folder)
    journal.export(_settled(file, journal).trials(), target)


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
        Draw instead regret and time for each value of this parameter.
    folder
        Where the results are kept; if not given, out/ and the name of the file.
    """
    check_format(target)
    journal = _journal(file, folder)
    planned = _settled(file, journal)
    if along is None:
        save_charts(study_charts(planned, journal), target)
    else:
        save_tradeoffs(study_tradeoffs(planned, journal, along), along, target)


@study.command
def report(file: Path, target: Path, *, folder: Path | None = None) -> None:
    """Write the finished part of a study to one .html file with interactive curves and tables. It needs no network.

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
    journal = _journal(file, folder)
    planned = _settled(file, journal)
    charts = study_charts(planned, journal)
    with TemporaryDirectory() as beside:
        picture = Picture(Path(beside) / "curves.svg", CURVES, charts)
        save_charts(charts, picture.file)
        text = as_html(planned.title, study_blocks(planned, journal, picture))
    with whole_file(target) as partial:
        partial.write_text(text, encoding="utf-8")


@study.command
def rank(
    *files: Path,
    at: Annotated[list[int] | None, Parameter(negative=())] = None,
    markdown: Path | None = None,
    folder: Path = Path("out"),
) -> None:
    """Rank the policies of some studies by regret, per data set and by mean rank over all data sets.

    Parameters
    ----------
    files
        The studies, TOML files.
    at
        The steps at which regret is shown, beside the horizon.
    markdown
        Write the tables to this file instead of the terminal.
    folder
        The folder that holds the result folders, each named like its study.
    """
    journals = [Journal(folder / file.stem) for file in files]
    studies = [_settled(file, journal) for file, journal in zip(files, journals, strict=True)]
    ranked = list(zip(studies, journals, strict=True))
    summaries = [mean_ranks(ranked), *(standings(study, journal, at or ()) for study, journal in ranked)]
    if markdown is None:
        for summary in summaries:
            print_summary(summary, narrowest=NARROWEST)
        return
    blocks = [block for summary in summaries for block in (Heading(summary.title), *as_blocks(summary))]
    with whole_file(markdown) as partial:
        partial.write_text(as_markdown(blocks), encoding="utf-8")


@study.command
def growth(*files: Path, figure: Path | None = None, folder: Path = Path("out")) -> None:
    """Fit how the regret of each policy grows: with time if a study has one world, else with the size in which its worlds differ.

    Parameters
    ----------
    files
        The studies, TOML files.
    figure
        Draw regret by size to this .png, .svg or .pdf file, a panel per study.
    folder
        The folder that holds the result folders, each named like its study.
    """
    if figure is not None:
        check_format(figure, "--figure")
    journals = [Journal(folder / file.stem) for file in files]
    grown = [measure_growth(_settled(file, journal), journal) for file, journal in zip(files, journals, strict=True)]
    for each in grown:
        print_summary(growth_summary(each))
    if figure is not None:
        save_growth(grown, figure)


def _journal(file: Path, folder: Path | None) -> Journal:
    return Journal(Path("out") / file.stem if folder is None else folder)


def _settled(file: Path, journal: Journal) -> Study:
    """The study with the parameters tuned so far. What is not tuned yet is left out, with a message."""
    study = settle(read_study(file), journal)
    if study.choices:
        TERMINAL.warn(f"{len(study.choices)} policies are not tuned yet and left out; `albatross study run` goes on from there.")
    return study
