"""A model's text is hostile: what becomes a kernel, and the typed reason for everything else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthesizer_svc.answer_text import ANSWER_CHARS_MAX, SOURCE_BYTES_MAX, Parsed, Unparsable, parse

KERNEL = """#include "ke_abi.h"
extern "C" int ke_launch(const KeTensor *in, int n_in, KeTensor *out, int n_out, void *stream) {
  return KE_OK;
}
"""
BLOCK = f"```cpp\n{KERNEL}```\n"
OTHER = KERNEL.replace("KE_OK", "KE_DECLINED")

ACCEPTED = {
    "a block alone": BLOCK,
    "prose around it": f"Unrolled by four.\n\n{BLOCK}\nIt should be faster.",
    "windows line ends": BLOCK.replace("\n", "\r\n"),
    "tildes": BLOCK.replace("```", "~~~"),
    "four backticks around three": f"````cpp\n{KERNEL}````\n",
    "no language": BLOCK.replace("cpp", ""),
    "upper case language": BLOCK.replace("cpp", "CPP"),
    "language with attributes": BLOCK.replace("```cpp", '```cpp title="k.cpp"'),
    "a small snippet before": f"Instead of\n```cpp\nx = a / b;\n```\nthis:\n{BLOCK}",
    "a call of it elsewhere": f"```cpp\nint r = ke_launch(in, 1, out, 1, 0);\n```\n{BLOCK}",
    "python beside it": f"```python\nprint(1)\n```\n{BLOCK}",
    "the same block twice": BLOCK + "In full:\n" + BLOCK,
    "thinking with a block of its own": f"<think>first ```cpp\n{OTHER}``` no</think>\n{BLOCK}",
    "an apology and a kernel": f"I'm sorry for the earlier error.\n{BLOCK}",
    "indented fence": BLOCK.replace("```", "  ```"),
    "thinking whose beginning the server left out": f"I could try ```cpp but no.</think>\n{BLOCK}",
    "thinking by another name": f"<reasoning>hm</reasoning>{BLOCK}",
    "a byte order mark": f"\ufeff{BLOCK}",
    "an answer wrapped in markdown": f"````markdown\nHere:\n{BLOCK}````\n",
    "an answer wrapped without a tag": f"~~~~\n{BLOCK}~~~~\n",
}

REJECTED = {
    "nothing": ("", "empty"),
    "white space": (" \n\t\n", "empty"),
    "prose": ("You could try to vectorise the inner loop.", "no_block"),
    "a refusal": ("I'm sorry, but I can't help with that.", "refused"),
    "bare code": (KERNEL, "no_block"),
    "an unclosed fence": (f"```cpp\n{KERNEL}", "truncated"),
    "a fence closed by the wrong mark": (f"```cpp\n{KERNEL}~~~\n", "truncated"),
    "a fence closed too short": (f"````cpp\n{KERNEL}```\n", "truncated"),
    "two kernels": (BLOCK + BLOCK.replace("KE_OK", "KE_DECLINED"), "several_blocks"),
    "another language": (f"```rust\n{KERNEL}```\n", "wrong_language"),
    "another symbol": (BLOCK.replace("ke_launch", "launch"), "no_entry"),
    "a longer symbol": (BLOCK.replace("ke_launch", "my_ke_launch"), "no_entry"),
    "only a declaration": ("```cpp\nint ke_launch(int a);\n```\n", "no_entry"),
    "only a comment": ("```cpp\n// int ke_launch(int a) {\nint f() { return 0; }\n```\n", "no_entry"),
    "only a string": ('```cpp\nconst char *s = "int ke_launch(int a) {";\n```\n', "no_entry"),
    "an empty block": ("```cpp\n```\n", "no_entry"),
    "a NUL": (BLOCK.replace("return", "\0return"), "unreadable"),
    "half a surrogate pair": (BLOCK.replace("return", "/*\ud800*/ return"), "unreadable"),
    "an endless answer": ("x" * (ANSWER_CHARS_MAX + 1), "too_long"),
    "code in JSON": ('{"code": "int ke_launch() { return 0; }"}', "code_in_json"),
    "code in a block of JSON": ('```json\n{"code": "int ke_launch() {}"}\n```\n', "code_in_json"),
    "thinking without an end": (f"<think>{BLOCK}", "truncated"),
    "nothing but thinking": ("<think>Unroll.</think>\n", "empty"),
    "a fence inside the code": (BLOCK.replace("  return", "/*\n```\n*/  return"), "truncated"),
    "a bell": (BLOCK.replace("return", "\areturn"), "unreadable"),
    "a nested block of another language": (f"````markdown\n```rust\n{KERNEL}```\n````\n", "wrong_language"),
    "an endless source": (f"```cpp\n{KERNEL}//{'x' * SOURCE_BYTES_MAX}\n```\n", "too_long"),
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
def test_exactly_the_kernel_is_taken(text):
    parsed = parse(text, language="cpp")
    assert isinstance(parsed, Parsed), parsed
    assert parsed.source == KERNEL


@pytest.mark.parametrize(("text", "code"), REJECTED.values(), ids=REJECTED)
def test_anything_else_is_rejected_with_its_reason(text, code):
    parsed = parse(text, language="cpp")
    assert isinstance(parsed, Unparsable), parsed
    assert parsed.code == code
    assert parsed.detail


def test_an_answer_the_endpoint_cut_is_truncated_even_if_a_block_is_closed():
    parsed = parse(BLOCK, language="cpp", truncated=True)
    assert isinstance(parsed, Unparsable)
    assert parsed.code == "truncated"


def test_the_prose_around_the_block_is_kept_as_rationale():
    parsed = parse(f"Unrolled by\nfour.\n{BLOCK}It should be faster.", language="cpp")
    assert parsed == Parsed(source=KERNEL, rationale="Unrolled by four. It should be faster.")


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from(["```", "````", "~~~", "cpp", "\n", KERNEL, "ke_launch(", "{", '"', "/*", "<think>", " "]))
)
def test_no_text_breaks_the_parser_and_what_it_accepts_was_in_the_text(pieces):
    text = "".join(pieces)
    parsed = parse(text, language="cpp")
    if isinstance(parsed, Parsed):
        assert parsed.source.strip() in text


@pytest.mark.parametrize("piece", ["/*", '"\\', "ke_launch(", "```a`", "<think>", "(", "// ", "\\\n"])
def test_hostile_repetition_is_parsed_in_linear_time(piece):
    body = piece * (SOURCE_BYTES_MAX // len(piece) - 1)
    for text in (body, f"```cpp\n{body}\n```\n"):
        assert isinstance(parse(text, language="cpp"), Unparsable)


def test_thinking_ends_where_it_stands_outside_the_code():
    source = KERNEL.replace("return", "/* </think> */ return")
    assert parse(f"```cpp\n{source}```\n", language="cpp") == Parsed(source=source)


MODULE = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
"""

MODULES = {
    "python": f"```python\n{MODULE}```\n",
    "triton": f"```triton\n{MODULE}```\n",
    "no tag": f"```\n{MODULE}```\n",
    "a usage example beside it": f"```python\n{MODULE}```\nUse:\n```python\nModelNew()(x)\n```\n",
    "a fragment that is no Python beside it": f"Instead of\n```python\nfor x in\n```\n```py\n{MODULE}```\n",
    "an escape that Python warns of": f'```python\n{MODULE}P = "\\d"\n```\n',
}

NO_MODULES = {
    "half a module": (f"```python\n{MODULE}    def broken(\n```\n", "syntax"),
    "another class": (f"```python\n{MODULE.replace('ModelNew', 'Model')}```\n", "no_entry"),
    "only a use of it": ("```python\nModelNew()\n```\n", "no_entry"),
    "only a string": ('```python\n"""\nclass ModelNew: pass\n"""\n```\n', "no_entry"),
    "inside a function": ("```python\ndef f():\n    class ModelNew: pass\n```\n", "no_entry"),
    "C++": (BLOCK, "wrong_language"),
    "a NUL": (f"```python\n{MODULE}\0```\n", "truncated"),
    "a NUL in a line": (f"```python\n{MODULE}# \0\n```\n", "unreadable"),
    "brackets without end": (f"```python\n{MODULE}{'[' * 1000}{']' * 1000}\n```\n", "syntax"),
    "an f-string of too many holes": (f"```python\n{MODULE}x = f'{'{x}' * 6_000}'\n```\n", "syntax"),
    "a tower of signs": (f"```python\n{MODULE}x = {'-' * 50_000}1\n```\n", "syntax"),
}


@pytest.mark.parametrize("text", MODULES.values(), ids=MODULES)
def test_a_module_is_parsed_and_never_run(text):
    parsed = parse(text, language="triton", entry="ModelNew")
    assert isinstance(parsed, Parsed), parsed
    assert parsed.source.startswith(MODULE)


@pytest.mark.parametrize(("text", "code"), NO_MODULES.values(), ids=NO_MODULES)
def test_what_is_no_module_with_the_entry_is_rejected(text, code):
    parsed = parse(text, language="triton", entry="ModelNew")
    assert isinstance(parsed, Unparsable), parsed
    assert parsed.code == code


PIECES = [
    "-",
    "not ",
    "lambda:",
    "a.",
    "(",
    "[",
    "{a:",
    "f'",
    '"',
    "if a:\n ",
    "@a\n",
    "a<",
    "\t",
    "x=",
    "else ",
    "\\\n",
]


@pytest.mark.parametrize("piece", PIECES)
def test_no_module_takes_the_parser_down(piece):
    body = piece * (SOURCE_BYTES_MAX // len(piece) - 1)
    assert isinstance(parse(f"```python\n{body}\n```\n", language="python", entry="ModelNew"), Unparsable)


@given(st.text(max_size=300), st.sampled_from(["cpp", "triton", "python", "hip"]), st.booleans())
def test_any_text_at_all_is_a_kernel_or_a_reason(text, language, truncated):
    for wrapped in (text, f"```{language}\n{text}\n```", f"<think>{text}"):
        assert isinstance(parse(wrapped, language=language, truncated=truncated), Parsed | Unparsable)
