"""The command line: one file per verb."""

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

import albatross
from albatross.cli.arguments import fold_settings
from albatross.core.errors import InvalidInput
from albatross.core.extras import explain_missing

REFUSED, INTERRUPTED = 2, 130
"""Exit codes: invalid input or another error; the interrupt key."""

app = App(
    name="albatross",
    help="Online recommendation that starts from nothing and learns from every rating, at once.",
    version=albatross.__version__,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
)
app.command("albatross.cli.demo:demo", name="demo", help="See four policies learn from nothing, in about a minute.")
app.command("albatross.cli.run:run", name="run", help="Run policies side by side on a data set or a file of ratings.")
app.command("albatross.cli.watch:watch", name="watch", help="Run policies side by side and watch their curves grow on a web page.")
app.command("albatross.cli.reproduce:reproduce", name="reproduce", help="Run the paper's evaluation and judge each of its claims.")
app.command("albatross.cli.study:study", name="study", help="Many trials from one TOML file: run, resume, show, export.")
app.command("albatross.cli.data:data", name="data", help="The rating data sets: list, fetch, path.")
app.command("albatross.cli.listing:show", name="list", help="Print the policies and the data sets, with their parameters.")
app.command("albatross.cli.check:check", name="check", help="Check a policy, yours or ours, against the contract that all policies obey.")
app.command("albatross.cli.service.serve:serve", name="serve", help="Serve a folder over HTTP: recommend, rate, learn at once.")
app.command("albatross.cli.service.play:play", name="play", help="Simulated customers for a running service, to watch on its page.")
app.command("albatross.cli.cluster.commands:cluster", name="cluster", help="A service of several processes, on PostgreSQL and Ray.")
app.command("albatross.cli.service.keys:keys", name="keys", help="API keys of a service: create, list, rotate, revoke.")
app.command("albatross.cli.service.importing:import_ratings", name="import", help="Import past ratings into a folder of the service.")
app.command("albatross.cli.service.export:export", name="export", help="Write the events of a folder to a file, as JSONL or Parquet.")
app.command("albatross.cli.service.verify:verify", name="verify", help="Rebuild the model of a folder from its log alone, bit for bit.")
app.command("albatross.cli.service.replay:replay", name="replay", help="Build a new folder from a log with another policy.")
app.command("albatross.cli.service.snapshot:snapshot", name="snapshot", help="Write the model of a folder beside its log.")
app.command("albatross.cli.service.backup:backup", name="backup", help="Copy a folder to a new one, while it serves, and verify the copy.")
app.command("albatross.cli.service.restore:restore", name="restore", help="Make a folder from a backup.")
app.command("albatross.cli.service.forget:forget", name="forget", help="Erase a user, and rebuild the model without them.")
app.command("albatross.cli.service.doctor:doctor", name="doctor", help="Check whether a folder and this machine are ready to serve.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that cannot show λ gets a question mark, not a traceback
    try:
        app(
            fold_settings(sys.argv[1:] if arguments is None else arguments),
            print_error=False,
            exit_on_error=False,
            result_action="return_none",
        )
        sys.stdout.flush()
    except (InvalidInput, CycloptsError) as error:
        return _complain(" ".join(str(error).split()), REFUSED)
    except ImportError as error:
        # The parser loads a command's module when it is used, and wraps the error.
        sentence = explain_missing(error.__cause__ if isinstance(error.__cause__, ImportError) else error)
        if sentence is None:
            raise
        return _complain(sentence, REFUSED)
    except MemoryError as error:
        return _complain(f"not enough memory: {error}", REFUSED)
    except OSError as error:
        return _complain(str(error), REFUSED)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    return 0


def _complain(message: str, code: int) -> int:
    print(f"albatross: {message}", file=sys.stderr)
    return code
