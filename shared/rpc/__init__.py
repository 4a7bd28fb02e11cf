"""gRPC for every service and client: the one place, besides servicers (``*/grpc_api.py``), that imports grpc.

::

    settings    GRPC_* of a server, KERNELEVOLVE_* of a client
    methods     every method: role, deadline, may it be repeated
    tokens      bearer tokens and their roles
    auth        the server's check of them
    errors      the project's errors as rich statuses, and back
    limits      deadlines, and streams that move to another server on drain
    telemetry   metrics, spans and log lines of every call
    handlers    how the four above wrap a servicer's method
    health      standard health from the runtime's
    credentials TLS and mTLS
    server      serving: all servicers of a process
    client      connect: a channel with all of it
"""

from __future__ import annotations

import os

# The evaluator starts children beside a running server. gRPC's fork handlers would wait for its threads; no child of
# ours uses gRPC. Read when gRPC is first used, which is after this.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
# gRPC's own lines on stderr would break one-line errors and the live view; what they tell is in the status too.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
