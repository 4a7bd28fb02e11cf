"""``kernelevolve token``: bearer tokens for a server."""

from __future__ import annotations

import re

import click

from shared.errors import UserError
from shared.rpc import tokens


@click.group("token")
def command() -> None:
    """Make bearer tokens for a server's token file (GRPC_TOKENS).

    \b
    Example:
      kernelevolve token new --role submit --name ci
    """


@command.command("new")
@click.option("--role", required=True, type=click.Choice(tokens.ROLES), help="Each may do what those before it may.")
@click.option("--name", required=True, help="Whose it is; the server's log names it.")
def new(role: str, name: str) -> None:
    """Make a token, and the lines of the token file that make a server accept it.

    The token goes to stderr, once; nobody keeps it. The lines go to stdout.

    \b
    Example:
      kernelevolve token new --role submit --name ci >> tokens.toml
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise UserError(f"`{name}` is not 1 to 64 letters, digits, _ and -", where="--name")
    token = tokens.mint()
    click.echo(f"# the token, shown only now; give it to clients as KERNELEVOLVE_TOKEN:\n{token}", err=True)
    click.echo(tokens.table(name, tokens.role_of(role), tokens.fingerprint(token)), nl=False)
