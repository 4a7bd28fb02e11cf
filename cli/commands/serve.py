"""``kernelevolve serve``: run one service, or all four, in the foreground until told to stop."""

from __future__ import annotations

import os
import runpy
import sys

import click

from cli.chip_option import chip_id

SERVICES = ("search", "synthesizer", "knowledge", "evaluator")


@click.command("serve")
@click.argument("service", required=False, type=click.Choice(SERVICES))
@click.option("--chip", callback=chip_id, help="What an evaluator evaluates for; like EVALUATOR_CHIP.")
def command(service: str | None, chip: str | None) -> None:
    """Run SERVICE as this process; without one, all four together. SIGTERM drains it, a second one ends it.

    \b
    The environment says everything else, above all:
      BUS_URL STORE_URL CACHE_URL  where records flow and are kept; default: this process and ./data
      GRPC_LISTEN METRICS_LISTEN   host:port to serve gRPC and Prometheus on; default: not
      KNOWLEDGE_URL                grpc://host:port where a synthesizer asks for documents and skills

    \b
    Examples:
      GRPC_LISTEN=127.0.0.1:7443 kernelevolve serve
      BUS_URL=kafka://db:9092 STORE_URL=mongodb://db/ke CACHE_URL=redis://db kernelevolve serve evaluator
    """
    if chip is not None:
        os.environ["EVALUATOR_CHIP"] = chip
    if service is not None:
        runpy.run_module(f"{service}_svc", run_name="__main__")
        return
    from deploy import together
    from shared import process

    sys.exit(process.main(lambda ports: together.services(ports, os.environ)))
