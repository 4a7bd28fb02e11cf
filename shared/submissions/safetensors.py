"""One tensor out of a safetensors file (pure).

The format (https://huggingface.co/docs/safetensors): eight bytes, little-endian, with the length of a JSON header; the
header, a tensor's ``dtype``, ``shape`` and ``data_offsets`` by name; the tensors' bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from shared.dtypes import DType
from shared.errors import OperatorError

HEADER_BYTES_MAX = 1 << 20
TENSOR_BYTES_MAX = 256 << 10
"""Its bytes become part of the operator's text, which is held to a megabyte."""
_DTYPES = {
    "F64": DType.F64, "F32": DType.F32, "F16": DType.F16, "BF16": DType.BF16, "I64": DType.I64, "I32": DType.I32,
    "I16": DType.I16, "I8": DType.I8, "U8": DType.U8, "BOOL": DType.BOOL,
}  # fmt: skip


def tensor(data: bytes, key: str, shape: Sequence[int], dtype: DType, where: str) -> bytes:
    """The bytes of tensor ``key``, which must have this shape and type.

    Raises:
        OperatorError: malformed, no such tensor, another shape or type, or too large.
    """
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(HEADER_BYTES_MAX, len(data) - 8):
        raise OperatorError("is no safetensors file", where=where)
    try:
        header = json.loads(data[8 : 8 + length])
        entry = header.get(key)
        found = None if entry is None else (_DTYPES.get(entry["dtype"]), list(entry["shape"]))
        begin, end = (0, 0) if entry is None else map(int, entry["data_offsets"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise OperatorError("has a malformed header", where=where) from error
    if found is None:
        raise OperatorError(f"has no tensor `{key}`", where=where)
    if found != (dtype, list(shape)):
        raise OperatorError(
            f"tensor `{key}` is {entry['dtype']}{found[1]}, the definition says {dtype.value}{list(shape)}", where=where
        )
    content = data[8 + length :]
    if not 0 <= begin <= end <= len(content) or end - begin != _bytes(shape, dtype):
        raise OperatorError("has a malformed header", where=where)
    if end - begin > TENSOR_BYTES_MAX:
        raise OperatorError(
            f"tensor `{key}` has {end - begin} bytes, more than the {TENSOR_BYTES_MAX >> 10} KiB supported", where=where
        )
    return content[begin:end]


def _bytes(shape: Sequence[int], dtype: DType) -> int:
    count = dtype.itemsize
    for size in shape:
        count *= size
    return count
