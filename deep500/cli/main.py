"""The ``deep500`` command: its options, and what its exit codes mean.

====  ==================================================================================================
code  meaning
====  ==================================================================================================
0     done; a recipe PASSED
1     a recipe FAILED: a metric is worse than acceptable, or the training diverged; or a check of an operator did
2     the user's mistake, or the machine's (a full disk), told in one line on the standard error
70    a fault of Deep500 itself, shown with its traceback (``EX_SOFTWARE`` of ``sysexits.h``)
130   interrupted with Ctrl-C; a result file that was asked for is written and marked as incomplete, a checkpoint
      after the step that was under way
141   whoever read the output left before its end (``deep500 list operators | head -1``)
143   ended with SIGTERM, otherwise as with Ctrl-C
====  ==================================================================================================
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from deep500._version import __version__
from deep500.cli.bench import BENCH_EXAMPLES, BenchCommand, bench_command
from deep500.cli.blame import circumstance
from deep500.cli.compare import COMPARE_EXAMPLES, compare_command
from deep500.cli.console import OWN_FAULT, print_error, print_table, print_traceback
from deep500.cli.env import ENV_EXAMPLES, environment_command
from deep500.cli.exit_codes import FAULT, INTERRUPTED, MISTAKE, PASSED, UNREAD
from deep500.cli.export import EXPORT_EXAMPLES, export_command
from deep500.cli.fleet.app import fleet_app
from deep500.cli.lint import LINT_EXAMPLES, lint_command
from deep500.cli.merge import MERGE_EXAMPLES, merge_command
from deep500.cli.op import op_app
from deep500.cli.picture import PICTURE_EXAMPLES, picture_command
from deep500.cli.process import run_as_process
from deep500.cli.profile import PROFILE_EXAMPLES, profile_command
from deep500.cli.run import RUN_EXAMPLES, recipe_command
from deep500.cli.scale import SCALE_EXAMPLES, scale_command
from deep500.cli.summary import SUMMARY_EXAMPLES, summary_command
from deep500.cli.validate import VALIDATE_EXAMPLES, validate_command
from deep500.core.errors import Deep500Error

__all__ = ["app", "main", "run_command"]

#: The parser's errors, wherever this version of Typer keeps them (in itself or in click).
_PARSER_ERRORS = tuple(c for c in typer.BadParameter.__mro__ if issubclass(c, Exception) and c is not Exception)

# The first character keeps Typer from making paragraphs of the lines.
EXAMPLES = """\b
Examples:
  deep500 run digits_lenet
  deep500 run my_recipe.py --framework tensorflow --output result.json
  deep500 list frameworks
"""
LIST_EXAMPLES = """\b
Examples:
  deep500 list
  deep500 list frameworks
  deep500 list models
"""

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def main() -> None:
    """Run the command with the process's arguments and leave with its exit code."""
    sys.exit(run_as_process(lambda: run_command(sys.argv[1:])))


def run_command(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    try:
        given = list(arguments)
        code = int(app(given, standalone_mode=False, prog_name="deep500", obj=tuple(given)) or 0)
        sys.stdout.flush()  # here a full disk shows, or a reader that has left
        return code
    except _PARSER_ERRORS as error:
        print_error(getattr(error, "format_message", error.__str__)())
        return MISTAKE
    except Deep500Error as error:
        print_error(error)
        return MISTAKE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except (SystemExit, BrokenPipeError):  # Typer answers a closed pipe with code 1, which is a recipe that FAILED
        return UNREAD
    except Exception as error:  # noqa: BLE001, RUF100 - the last resort: told in full, with an exit code of its own
        reason = circumstance(error)
        if reason is not None:
            print_error(reason)
            return MISTAKE
        print_traceback()
        print_error(OWN_FAULT)
        return FAULT


@app.callback(epilog=EXAMPLES)
def deep500(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Run recipes under any framework, and see what there is to run."""
    if version:
        print(f"deep500 {__version__}")
        raise typer.Exit()
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(name="list", epilog=LIST_EXAMPLES)
def list_(
    kind: Annotated[str | None, typer.Argument(help="What to list; without it, the kinds are listed.")] = None,
) -> int:
    """List what a recipe can name: frameworks, models, datasets and more."""
    from deep500.cli.listing import KINDS, list_kind

    print_table([(name,) for name in KINDS] if kind is None else list_kind(kind))
    return PASSED


app.command(name="run", epilog=RUN_EXAMPLES)(recipe_command)
app.command(name="env", epilog=ENV_EXAMPLES)(environment_command)
app.command(name="bench", cls=BenchCommand, epilog=BENCH_EXAMPLES)(bench_command)
app.command(name="lint", epilog=LINT_EXAMPLES)(lint_command)
app.command(name="compare", epilog=COMPARE_EXAMPLES)(compare_command)
app.command(name="merge", epilog=MERGE_EXAMPLES)(merge_command)
app.command(name="export", epilog=EXPORT_EXAMPLES)(export_command)
app.command(name="validate", epilog=VALIDATE_EXAMPLES)(validate_command)
app.command(name="profile", epilog=PROFILE_EXAMPLES)(profile_command)
app.command(name="summary", epilog=SUMMARY_EXAMPLES)(summary_command)
app.command(name="picture", epilog=PICTURE_EXAMPLES)(picture_command)
app.command(name="scale", epilog=SCALE_EXAMPLES)(scale_command)
app.add_typer(op_app, name="op")
app.add_typer(fleet_app, name="fleet")
