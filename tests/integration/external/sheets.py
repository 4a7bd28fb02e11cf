"""Sheets of the vendor for tests, in folders of their own."""

from __future__ import annotations

import shutil
from pathlib import Path

VENDOR = Path(__file__).with_name("vendor.py")
PYTHON = Path("/usr/bin/python3")
RIGHT = """\
def kernel(inputs, outputs, shape):
    x, b = inputs
    for at in range(len(x)):
        outputs[0][at] = x[at] + b[at % len(b)]
"""
KERNELS = {
    "right": RIGHT,
    "wrong": RIGHT.replace("+", "-"),
    "crashes": "import os\ndef kernel(inputs, outputs, shape):\n    os.abort()\n",
    "hangs": "def kernel(inputs, outputs, shape):\n    while True:\n        pass\n",
    "idle": "def kernel(inputs, outputs, shape):\n    pass\n",
    "broken": "def kernel(:\n",
}
SHEET = """\
title = "A chip of tests"
vendor = "tests"
architecture = "python"
languages = ["toy"]
toolchain = "external"

[external]
contract = 1
version = "1"
basis = "{basis}"
metric = "steps"
unit = "steps"
inputs_back = {back}
flags = ["-O[0-3]"]
suffixes = {{ toy = ".toy" }}
"""
COMMAND = """
[external.{name}]
command = ["/usr/bin/python3", "{{sheet}}/vendor.py", "{name}", "{breach}"]
time_s = {time_s}
"""
CHECK = """
[external.check]
language = "toy"
"""


def vendor(folder: Path, *, breach: str = "", basis: str = "counted", time_s: float = 3, back: bool = False) -> Path:
    """A sheet whose tool keeps the contract, but for ``breach``: ``command:what``."""
    shutil.copy(VENDOR, folder / "vendor.py")
    text = SHEET.format(basis=basis, back=str(back).lower())
    for name in ("build", "run", "profile"):
        text += COMMAND.format(name=name, breach=breach, time_s=time_s)
    text += CHECK
    for name, source in KERNELS.items():
        (folder / f"{name}.toy").write_text(source)
        text += f'{name} = "{name}.toy"\n'
    path = folder / "toy.toml"
    path.write_text(text)
    return path
