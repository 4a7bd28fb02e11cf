"""What endpoints answer, good and bad, as scripts of the fault server."""

from __future__ import annotations

from tests.fakes.fault_server import Script, Wire

TEXT = "```cpp\nint größe = 1; // 好 🙂\n```"
USAGE = {"prompt_tokens": 20, "completion_tokens": 7, "total_tokens": 27}


def delta(text: str | None = None, finish: str | None = None, **more: object) -> dict[str, object]:
    """A chunk of a stream of chat completions."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "model": "m-1", "choices": [choice], **more}


def completion(text: str | None = TEXT, finish: str = "stop", **more: object) -> dict[str, object]:
    """A chat completion that does not stream."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}
    return {"id": "c", "object": "chat.completion", "model": "m-1", "choices": [choice], "usage": USAGE, **more}


def error(message: str, code: object = None, kind: str = "invalid_request_error") -> dict[str, object]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


async def streamed(wire: Wire) -> None:
    """A good answer."""
    await wire.begin_stream()
    await wire.event(delta())
    for piece in (TEXT[:9], TEXT[9:12], TEXT[12:]):
        await wire.event(delta(piece))
    await wire.event(delta(finish="stop"))
    await wire.event({"id": "c", "model": "m-1", "choices": [], "usage": USAGE})
    await wire.event("[DONE]")
    await wire.end_stream()


async def messages(wire: Wire) -> None:
    """A good answer in Anthropic's protocol."""
    usage = {"input_tokens": 12, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 8, "output_tokens": 1}
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": [], "usage": usage}
    text = {"type": "text_delta", "text": TEXT}
    await wire.begin_stream()
    for told in (
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": text},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ):
        await wire.event(told, str(told["type"]))
    await wire.end_stream()


def answered(status: int, body: object = b"", *headers: str, **head: object) -> Script:
    """The same whole answer each time."""

    async def script(wire: Wire) -> None:
        await wire.answer(status, body, headers, **head)

    return script


def cut_after(body: bytes, status: int = 200) -> Script:
    """Less than what was announced, and the end of the connection."""

    async def script(wire: Wire) -> None:
        await wire.answer(status, body, length=len(body) + 100)
        wire.close()

    return script


async def silent(wire: Wire) -> None:
    """Nothing, not even a head."""
    await wire.hang()


async def stalled(wire: Wire) -> None:
    """The beginning of an answer, and nothing more."""
    await wire.begin_stream()
    await wire.event(delta("he"))
    await wire.hang()


async def reset(wire: Wire) -> None:
    wire.reset()


async def closed(wire: Wire) -> None:
    """No answer: what a connection gives that the server had just closed."""
    wire.close()


async def not_http(wire: Wire) -> None:
    await wire.send(b"SSH-2.0-OpenSSH_9.2\r\n")
    wire.close()
