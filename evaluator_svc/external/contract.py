"""What a vendor's commands are asked and what they answer, held to the contract (pure; ``docs/chips.md``).

A breach is the adapter's fault, never the kernel's: ``Breach`` says what is wrong and how to mend it, in one line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluator_svc.tensors import TensorSpec
from shared.chips.external import CONTRACT, METRIC
from shared.events import Bound, Count

REQUEST, RESULT, ARTEFACT, SOURCE = "request.json", "result.json", "artefact", "source"
RESULT_BYTES_MAX = 64 << 10
MESSAGE_MAX, SUMMARY_MAX, METRICS_MAX = 4000, 400, 64
COST_MAX = 1 << 62
OK, ERROR = "ok", "error"
ENDINGS = ("crashed", "out_of_memory", "not_loaded", "forbidden")


class Breach(Exception):
    """The adapter broke the contract."""

    def __init__(self, what: str, mend: str) -> None:
        self.what, self.mend = what, mend
        super().__init__(f"{what} ({mend})")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildAnswer:
    """``error`` is empty where the kernel was built."""

    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Of ``run`` and ``profile``. ``ending`` is empty where the entry returned, with ``code``."""

    ending: str = ""
    message: str = ""
    code: int = 0
    metrics: Mapping[str, float] | None = None
    bound: Bound = Bound.UNKNOWN
    summary: str = ""


def before(index: int, *, output: bool) -> str:
    """The name of the file with what a buffer holds before the call."""
    return f"{'output' if output else 'input'}-{index}.before"


def after(index: int, *, output: bool) -> str:
    return f"{'output' if output else 'input'}-{index}.after"


def build_request(*, chip: str, language: str, flags: Sequence[str], suffix: str) -> dict[str, Any]:
    return {
        "contract": CONTRACT,
        "command": "build",
        "chip": chip,
        "language": language,
        "flags": list(flags),
        "source": f"{SOURCE}{suffix}",
        "artefact": ARTEFACT,
        "result": RESULT,
    }


def call_request(
    command: str,
    *,
    chip: str,
    language: str,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    inputs_back: bool,
) -> dict[str, Any]:
    def tensors(specs: Sequence[TensorSpec], *, output: bool) -> list[dict[str, Any]]:
        return [_tensor(spec, index, output=output, back=output or inputs_back) for index, spec in enumerate(specs)]

    return {
        "contract": CONTRACT,
        "command": command,
        "chip": chip,
        "language": language,
        "artefact": ARTEFACT,
        "inputs": tensors(inputs, output=False),
        "outputs": tensors(outputs, output=True),
        "result": RESULT,
    }


def _tensor(spec: TensorSpec, index: int, *, output: bool, back: bool) -> dict[str, Any]:
    strides, step = [], 1
    for size in reversed(spec.shape):
        strides.append(step)
        step *= size
    told = {
        "dtype": spec.dtype.value,
        "shape": list(spec.shape),
        "strides": strides[::-1],
        "bytes": spec.nbytes,
        "before": before(index, output=output),
    }
    return told | ({"after": after(index, output=output)} if back else {})


def read_build(text: bytes) -> BuildAnswer:
    """Raises ``Breach``."""
    said = _object(text, ("status", "message"))
    status = _one_of(said, "status", (OK, ERROR))
    return BuildAnswer(error=_message(said) if status == ERROR else "")


def read_run(text: bytes, outputs: Sequence[TensorSpec]) -> Answer:
    """Raises ``Breach``."""
    said = _object(text, ("status", "message", "return_code", "outputs"))
    return _answer(said, outputs)


def read_profile(text: bytes, outputs: Sequence[TensorSpec]) -> Answer:
    """Raises ``Breach``."""
    said = _object(text, ("status", "message", "return_code", "outputs", "metrics", "bound", "summary"))
    found = _answer(said, outputs)
    if found.ending:
        return found
    bound = Bound(_one_of(said, "bound", tuple(one.value for one in Bound))) if "bound" in said else Bound.UNKNOWN
    return Answer(code=found.code, metrics=_metrics(said), bound=bound, summary=_text(said, "summary", SUMMARY_MAX))


def cost(metrics: Mapping[str, float], metric: str, *, counted: bool) -> int:
    """The cost of a call.

    Raises:
        Breach: the metric is missing, not positive, or no whole number though it is counted.
    """
    if metric not in metrics:
        known = ", ".join(sorted(metrics)) or "nothing"
        raise Breach(
            f"profile told no metric `{metric}`, only {known}"[:300],
            "name it so in metrics, or mend the sheet's `metric`",
        )
    found = metrics[metric]
    if counted and found != int(found):
        raise Breach(f"metric `{metric}` is {found}", 'what is counted is a whole number; else basis = "modelled"')
    if not 0 < found <= COST_MAX:
        raise Breach(f"metric `{metric}` is {found:g}", "the cost of a call is above 0")
    return max(1, round(found))


def counts(metrics: Mapping[str, float]) -> tuple[Count, ...]:
    """The metrics that are whole numbers, by name."""
    whole = {name: int(number) for name, number in metrics.items() if number == int(number) and number <= COST_MAX}
    return tuple(Count(name=name, value=number) for name, number in sorted(whole.items()))


def _answer(said: Mapping[str, Any], outputs: Sequence[TensorSpec]) -> Answer:
    status = _one_of(said, "status", (OK, *ENDINGS))
    if status != OK:
        return Answer(ending=status, message=_message(said))
    code = _needed(said, "return_code")
    if type(code) is not int or not -(1 << 31) <= code < 1 << 31:
        raise Breach(f"return_code is {_shown(code)}", "the whole number that the kernel's entry returned")
    told = _needed(said, "outputs")
    if not isinstance(told, list) or len(told) != len(outputs):
        count = len(told) if isinstance(told, list) else 0
        raise Breach(f"outputs are {count}, expected {len(outputs)}", "one of each output of the request, in its order")
    for index, (one, spec) in enumerate(zip(told, outputs, strict=True)):
        if not isinstance(one, dict) or set(one) != {"dtype", "shape"}:
            raise Breach(f"outputs[{index}] is {_shown(one)}", '{"dtype": …, "shape": […]}')
        if one["dtype"] != spec.dtype.value:
            raise Breach(
                f"output {index} is {_shown(one['dtype'])}, asked for was {spec.dtype.value}",
                "write the request's dtype",
            )
        if one["shape"] != list(spec.shape):
            raise Breach(
                f"output {index} has shape {_shown(one['shape'])}, asked for was {list(spec.shape)}",
                "write the request's shape",
            )
    return Answer(code=code)


def _metrics(said: Mapping[str, Any]) -> dict[str, float]:
    metrics = _needed(said, "metrics")
    if not isinstance(metrics, dict) or not 0 < len(metrics) <= METRICS_MAX:
        raise Breach("metrics is no object of 1 to 64 numbers", '{"metrics": {"instructions": 2826}}')
    for name, number in metrics.items():
        if not METRIC.fullmatch(name):
            raise Breach(f"metric `{_shown(name)}` is no name", "lower case letters, digits and _, at most 48")
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise Breach(f"metric `{name}` is {_shown(number)}", "expected a number")
        if not 0 <= number <= sys.float_info.max:  # a whole number may be beyond any float
            raise Breach(
                f"metric `{name}` is {_shown(number)}",
                "expected a finite number, 0 or above; leave out what is unknown",
            )
    return metrics


def _object(text: bytes, known: Sequence[str]) -> Mapping[str, Any]:
    try:
        said = json.loads(text.decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        why = str(error).partition("\n")[0][:120]
        raise Breach(f"{RESULT} is no JSON: {why}", "write one JSON object; print nothing else into it") from error
    if not isinstance(said, dict):
        raise Breach(f"{RESULT} is no JSON object", 'e.g. {"status": "ok", …}')
    for key in said:
        if key not in known:
            raise Breach(f"{RESULT} has the unknown key `{_shown(key)}`", f"known: {', '.join(known)}")
    return said


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _needed(said: Mapping[str, Any], key: str) -> Any:
    if key not in said:
        raise Breach(f"{RESULT} lacks `{key}`", "see the command's schema")
    return said[key]


def _one_of(said: Mapping[str, Any], key: str, known: Sequence[str]) -> str:
    found = _needed(said, key)
    if found not in known:
        raise Breach(f"{key} is {_shown(found)}", f"one of {', '.join(known)}")
    return str(found)


def _message(said: Mapping[str, Any]) -> str:
    _needed(said, "message")
    found = _text(said, "message", MESSAGE_MAX)
    if not found.strip():
        raise Breach("message is empty", "say what went wrong with the kernel")
    return found


def _text(said: Mapping[str, Any], key: str, most: int) -> str:
    found = said.get(key, "")
    if not isinstance(found, str) or len(found) > most:
        raise Breach(f"{key} is no text of at most {most} characters", "cut it")
    return _printable(found)


def _printable(text: str, keep: Callable[[str], bool] = str.isprintable) -> str:
    return "".join(c if keep(c) or c == "\n" else " " for c in text)


def _shown(value: Any) -> str:
    return _printable(repr(value))[:80]
