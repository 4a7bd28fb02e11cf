"""A vendor for tests: its kernels are functions of Python's, its chip is Python, its tool breaks the contract as told.

Run as ``vendor.py COMMAND BREACH REQUEST``. It stands beside its sheet and uses nothing of the project.
"""

import array
import json
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__)


def main(command: str, breach: str, path: pathlib.Path) -> None:
    folder, request = path.parent, json.loads(path.read_text())
    at, _, what = breach.partition(":")
    what = what if at == command else ""
    if what == "hangs":
        time.sleep(600)
    if what == "exits with 1":
        sys.exit("the licence has expired")
    answer = build(folder, request) if command == "build" else call(folder, request)
    returned = answer["status"] == "ok" and command != "build"
    if returned and command == "profile":
        x = request["inputs"][0]
        count = 7 * x["bytes"] // 4 + 100
        if what == "differs":
            count += time.monotonic_ns() % 1_000_000
        answer["metrics"] = {"steps": float("nan") if what == "not finite" else count}
        if what == "misses the metric":
            answer["metrics"] = {"stairs": 12}
        if what == "always the same":
            answer["metrics"] = {"steps": 12}
    if returned:
        break_output(folder / "output-0.after", what, answer)
    result = folder / request["result"]
    if what == "links its result":
        result.symlink_to("/etc/hostname")
    elif what != "writes no result":
        result.write_text("all is well" if what == "writes no JSON" else json.dumps(answer))


def break_output(output: pathlib.Path, what: str, answer: dict) -> None:
    data = output.read_bytes()
    if what == "cuts its output":
        output.write_bytes(data[:-4])
    elif what == "pads its output":
        output.write_bytes(data + b"1234")
    elif what == "writes too much":
        with output.open("wb") as file:
            while True:
                file.write(bytes(1 << 20))
    elif what == "writes no output":
        output.unlink()
    elif what == "links its output":
        output.rename(output.with_name("elsewhere"))
        output.symlink_to(output.with_name("elsewhere"))
    elif what == "makes its output a folder":
        output.unlink()
        output.mkdir()
    elif what == "widens its output":
        answer["outputs"][0]["dtype"] = "float64"
        output.write_bytes(data + data)
    elif what == "zeroes its output":
        output.write_bytes(bytes(len(data)))


def build(folder: pathlib.Path, request: dict) -> dict:
    text = (folder / request["source"]).read_text()
    try:
        compile(text, "kernel", "exec")
    except SyntaxError as error:
        return {"status": "error", "message": f"line {error.lineno}: {error.msg}"}
    (folder / request["artefact"]).write_text(text)
    return {"status": "ok"}


def call(folder: pathlib.Path, request: dict) -> dict:
    """The kernel in a process of its own, as a chip would be."""
    done = subprocess.run([sys.executable, str(HERE), "chip", "", str(folder / "request.json")], check=False)
    if done.returncode != 0:
        return {"status": "crashed", "message": f"ended with {done.returncode}"}
    outputs = [{"dtype": one["dtype"], "shape": one["shape"]} for one in request["outputs"]]
    return {"status": "ok", "return_code": 0, "outputs": outputs}


def chip(folder: pathlib.Path, request: dict) -> None:
    inputs, outputs = (
        [array.array("f", (folder / one["before"]).read_bytes()) for one in request[name]]
        for name in ("inputs", "outputs")
    )
    space: dict = {}
    exec((folder / request["artefact"]).read_text(), space)
    space["kernel"](inputs, outputs, request["inputs"][0]["shape"])
    for one, data in zip([*request["inputs"], *request["outputs"]], [*inputs, *outputs], strict=True):
        if "after" in one:
            (folder / one["after"]).write_bytes(data.tobytes())


if sys.argv[1] == "chip":
    place = pathlib.Path(sys.argv[3])
    chip(place.parent, json.loads(place.read_text()))
else:
    main(sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]))
