"""What is said in words to an endpoint that cannot be told by a field (pure)."""

from __future__ import annotations

from dataclasses import replace

from synthesizer_svc.model import CompletionRequest, Message
from synthesizer_svc.model.capabilities import Capabilities, SchemaOutput

SCHEMA = "Answer with one JSON object and nothing else. It must be an instance of this JSON schema:\n"


def with_schema(request: CompletionRequest, capabilities: Capabilities) -> tuple[Message, ...]:
    """The messages; the last one ends with the schema where decoding does not follow it. The prefix stays as it is."""
    if not request.schema or capabilities.schema in (SchemaOutput.SCHEMA, SchemaOutput.UNKNOWN):
        return request.messages
    *before, last = request.messages
    return (*before, replace(last, text=f"{last.text}\n\n{SCHEMA}{request.schema}"))
