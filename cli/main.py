"""``kernelevolve``: the command group, and the one place where a user's mistake becomes one line and an exit code."""

from __future__ import annotations

import importlib
import os
import sys

import click

from cli import divergence
from cli.interrupted import Interrupted
from shared import crashes, exit_codes, inspection
from shared.errors import KernelEvolveError, ReplayDivergence, UserError

COMMANDS = {
    "optimize": "Search for a faster kernel of an operator.",
    "evaluate": "Prove and time a kernel of your own.",
    "admit": "Tell how many wrong answers an operator's check rejects.",
    "resume": "Go on with a search after a pause, a crash or an interruption.",
    "export": "Write what models were asked and answered, for training.",
    "replay": "Verify a recorded search, or continue it another way.",
    "explain": "Tell why each kernel was tried and what was measured.",
    "report": "Write the HTML report of a search again.",
    "chips": "List the chips and what each needs on this machine.",
    "knowledge": "Search, list and add documents; list skills.",
    "submit": "Start a search on a server.",
    "list": "List the searches on a server.",
    "get": "Tell how a search on a server stands.",
    "watch": "Follow a search on a server to its end.",
    "cancel": "End a search on a server.",
    "serve": "Run one service, or all of them, in the foreground.",
    "dlq": "List, show and redrive records that no service could handle.",
    "models": "List the configured models; check what their endpoints do.",
    "token": "Make bearer tokens for a server.",
}
"""Name and summary, so that ``--help`` imports no command."""

HELP = f"""Search for the fastest validated kernel of a PyTorch operator on a chip.

\b
Example:
  kernelevolve optimize examples/operators/softmax.py --evaluations 40

\b
Exit codes:
{exit_codes.listed()}
"""


class Lazy(click.Group):
    """Imports a command's module when it is used, so that ``--help`` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"cli.commands.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Lazy, help=HELP, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="kernelevolve", prog_name="kernelevolve")
def cli() -> None:
    """The command group; ``HELP`` is what it tells of itself."""


def main() -> None:
    """Console entry point. User errors: one line on stderr, exit code 2; a diverging replay: exit code 3."""
    crashes.without_secrets()
    try:
        inspection.keep_out(os.environ)
        cli.main(prog_name="kernelevolve", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(exit_codes.INTERRUPTED)
    except Interrupted as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)
    except UserError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(exit_codes.BAD_INPUT)
    except ReplayDivergence as error:
        click.echo(f"diverged: {divergence.describe(error)}", err=True)
        sys.exit(exit_codes.DIVERGED)
    except KernelEvolveError as error:
        click.echo(f"failed: {type(error).__name__}: {error}", err=True)
        sys.exit(exit_codes.FAILED)
    except BrokenPipeError:
        # The reader of our output (head, less) went away; Python would complain again while flushing stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        os.dup2(sys.stdout.fileno(), sys.stderr.fileno())
        sys.exit(exit_codes.FAILED)
    except OSError as error:
        # A full or failing disk: the journal is whole up to its last entry.
        click.echo(f"failed: {error}", err=True)
        sys.exit(exit_codes.FAILED)


if __name__ == "__main__":
    main()
