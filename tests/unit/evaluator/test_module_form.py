"""The form of a Python-hosted kernel is read from its text: what is wrong with it, and what it reaches for."""

import json
import subprocess
import sys

import pytest

from evaluator_svc.toolchains import module_form
from evaluator_svc.toolchains.module_form import read

WHOLE = "import torch\nimport torch.nn as nn\nclass ModelNew(nn.Module):\n    def forward(self, x, y=None):\n        "


def features(text):
    form = read(WHOLE + "return x\n" + text)
    assert form.problem == ""
    return form.features


def test_a_plain_module_has_nothing_wrong_and_reaches_for_nothing():
    form = read(WHOLE + "return torch.relu(x)\n")
    assert (form.problem, form.features, form.kernels, form.extensions) == ("", [], [], 0)
    assert form.arguments == [1, 2]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("def f(:\n  pass", "line 1: invalid syntax"),
        ("\n\nx = = 2", "line 3: invalid syntax"),
        ("class Model: pass", "defines no class `ModelNew`"),
        ("class ModelNew: pass", "class `ModelNew` has no method `forward`"),
        ("import torch.nn as nn\nclass ModelNew(nn.Module):\n  x = 1", "class `ModelNew` has no method `forward`"),
        ("class ModelNew:\n  def forward(): pass", "line 2: `forward` does not take `self`"),
        (
            "class ModelNew:\n  def forward(self, *, x): pass",
            "line 2: `forward` needs `x` by keyword; inputs are positional",
        ),
        ("x = 1\0\n", "line 1: a null byte"),
        ("x = " + "(" * 150 + ")" * 150 + "\n#", "defines no class `ModelNew`"),
        ("x = " + "-" * 1000 + "1\n", "nested 1003 deep, more than 500"),
        ("x = " + "(" * 10_000, "line 1: too many nested parentheses"),
        ("x = " + "not " * 100_000 + "1", "nested too deep to be read"),
        ("x = " + "9" * 10_000, "line 1: Exceeds the limit (4300 digits) for integer string conversion"),
        ("#" * (1 << 20) + "\n", "the module is larger than 1024 KiB"),
    ],
)
def test_what_is_wrong_with_the_form_is_one_clear_line(text, problem):
    said = read(text).problem
    assert said.startswith(problem)
    assert "\n" not in said


@pytest.mark.parametrize(
    "text",
    [
        "from kernels import ModelNew",
        "ModelNew = make()",
        "class ModelNew(Other):\n  pass\n",
        "class ModelNew:\n  forward = other",
        "class Base:\n  def forward(self, x): pass\nclass ModelNew(Base):\n  pass",
        "class ModelNew:\n  @magic\n  def forward(): pass",
        "class ModelNew:\n  def forward(*args): pass",
    ],
)
def test_what_a_text_cannot_tell_is_left_to_loading_it(text):
    assert read(text).problem == ""


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ("import threading", "threads"),
        ("from concurrent.futures import ThreadPoolExecutor", "threads"),
        ("import os as o\no.fork()", "subprocess"),
        ("from ctypes import CDLL", "ctypes"),
        ("s = torch.cuda.Stream()", "streams"),
        ("t = torch\nu = t.cuda\ns = u.Stream()", "streams"),
        ("s = getattr(torch.cuda, 'Stream')()", "streams"),
        ("s = getattr(torch.cuda, 'Str' + 'eam')()", "obfuscated"),
        ("import gc", "gc"),
        ("import sys\nf = sys._getframe(1)", "frames"),
        ("x.f_back.f_globals['check'] = ok", "frames"),
        ("exec('x = 1')", "exec"),
        ("exec(text)", "obfuscated"),
        ("f.__code__ = g.__code__", "exec"),
        ("_ = '#'; torch.cuda.Event.elapsed_time = lambda a, b: 1e-3", "monkey-patching"),
        ("n = 5 // 2; torch.allclose = lambda *a: True", "monkey-patching"),
        ("setattr(torch.cuda.Event, 'elapsed_time', f)", "monkey-patching"),
        ("import sys\nsys.modules['x'] = y", "monkey-patching"),
        ("import torch as t\nt.allclose, t.add = a, b", "monkey-patching"),
        ("import base64", "obfuscated"),
        ("x = '" + "A" * 500 + "'", "obfuscated"),
        ("src = 'cudaStreamCreate(&s);'", "streams"),
        ("src = '#define J(a,b) a##b'", "obfuscated"),
        ("f = open('/etc/passwd')", "files"),
        ("f = torch.compile(g)", "torch.compile"),
    ],
)
def test_what_a_text_reaches_for_is_seen_through_strings_aliases_and_names(text, feature):
    assert feature in features(text)


@pytest.mark.parametrize(
    "text",
    [
        "code = 1\nsignal = code\ntime = signal",
        "torch.backends.cuda.matmul.allow_tf32 = True",
        "self.threading = 1",
        "# import threading",
        "x = 'a string that says import threading and exec(x)'",
        "self.weights['a'] = 1",
    ],
)
def test_names_that_only_look_like_it_are_no_features(text):
    assert features(text) == []


def test_a_module_that_inherits_its_reference_is_seen():
    text = "class Model:\n  def forward(self, x): pass\nclass ModelNew(Model):\n  pass\n"
    assert read(text).features == ["reference"]


@pytest.mark.parametrize(
    "text",
    [
        "import triton\n@triton.jit\ndef k(x): pass",
        "from triton import jit as j\n@j\ndef k(x): pass",
        "import triton as t\n@t.autotune(configs=[], key=[])\n@t.jit\ndef k(x): pass",
        "import triton\n@triton.jit(do_not_specialize=['n'])\ndef k(x): pass",
        "import triton\ndef k(x): pass\nk2 = triton.jit(k)",
    ],
)
def test_triton_kernels_that_a_text_defines_are_told(text):
    assert read(WHOLE + "return x\n" + text).kernels == ["k"]


@pytest.mark.parametrize(
    "text",
    [
        "from torch.utils.cpp_extension import load_inline\nm = load_inline(name='x')",
        "import torch.utils.cpp_extension as c\nm = c.load(name='x', sources=[])",
        "from torch.utils import cpp_extension\nm = cpp_extension.load_inline(name='x')",
        "build = torch.utils.cpp_extension.load_inline\nm = build(name='x')",
    ],
)
def test_extensions_that_a_text_builds_are_told(text):
    assert read(WHOLE + "return x\n" + text).extensions == 1


def test_as_a_child_program_it_answers_in_json_and_survives_what_breaks_parsers():
    def ask(text):
        command = [sys.executable, "-I", "-S", module_form.__file__]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False)

    assert json.loads(ask(WHOLE + "return x\n").stdout)["arguments"] == [1, 2]
    assert "nested" in json.loads(ask("x = " + "f" + "()" * 90_000).stdout)["problem"]


def test_kernels_in_files_that_the_text_carries_as_strings_are_seen_and_prose_is_not():
    kernels = "import triton\nimport threading\n\n@triton.jit\ndef double(x): ...\n"
    form = read(f"{WHOLE}return x\nFILES = {{'kernels.py': {kernels!r}, 'notes': 'import triton, then what?'}}\n")
    assert form.kernels == ["double"]
    assert "threads" in form.features
