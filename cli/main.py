"""``kernelevolve``: the command group, and the one place where a user's mistake becomes one line and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.metadata import version

import click

from cli import divergence
from cli.interruptible import Interrupted
from shared.errors import KernelEvolveError, ReplayDivergence, UserError

COMMANDS = ("optimize", "evaluate", "resume", "replay", "explain", "report", "chips", "knowledge")

EXIT_USER_ERROR = 2
EXIT_DIVERGED = 3
EXIT_FAILED = 1


class Lazy(click.Group):
    """Imports a command's module when it is used, so that ``--help`` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"cli.commands.{cmd_name}").command
        return command


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(version("kernelevolve"), prog_name="kernelevolve")
def cli() -> None:
    """Search for the fastest validated kernel of a PyTorch operator on a chip.

    \b
    Example:
      kernelevolve optimize examples/operators/softmax.py --evaluations 40
    """


def main() -> None:
    """Console entry point. User errors: one line on stderr, exit code 2; a diverging replay: exit code 3."""
    try:
        cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except Interrupted as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)
    except UserError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(EXIT_USER_ERROR)
    except ReplayDivergence as error:
        click.echo(f"diverged: {divergence.describe(error)}", err=True)
        sys.exit(EXIT_DIVERGED)
    except KernelEvolveError as error:
        click.echo(f"failed: {type(error).__name__}: {error}", err=True)
        sys.exit(EXIT_FAILED)
    except BrokenPipeError:
        # The reader of our output (head, less) went away; Python would complain again while flushing stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)


if __name__ == "__main__":
    main()
