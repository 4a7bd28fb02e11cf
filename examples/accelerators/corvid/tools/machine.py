"""What Corvid's runtime and profiler share: a job's bytes, the machine, and how a kernel ended."""

import pathlib
import signal
import struct
import subprocess
import threading

DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool"]
"""In the order of `enum KeDtype`."""
DIMENSIONS = 8
MACHINE = ["qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=256,elen=64"]
HARNESS_ENDS = {70: "the job was cut short", 71: "too many tensors", 72: "no memory for a tensor"}


class Job:
    """A call: the request's files in, the harness' answer out."""

    def __init__(self, folder: pathlib.Path, request: dict) -> None:
        self.folder, self.request = folder, request
        self.tensors = [*request["inputs"], *request["outputs"]]

    @property
    def program(self) -> pathlib.Path:
        path = self.folder / self.request["artefact"]
        path.chmod(0o755)
        return path

    def encoded(self) -> bytes:
        parts = [struct.pack("<2q", len(self.request["inputs"]), len(self.request["outputs"]))]
        for one in self.tensors:
            shape, strides = (one[name] + [0] * (DIMENSIONS - len(one[name])) for name in ("shape", "strides"))
            parts.append(struct.pack("<q8q8q", one["bytes"], *shape, *strides))
            parts.append(struct.pack("<2i", len(one["shape"]), DTYPES.index(one["dtype"])))
            parts.append((self.folder / one["before"]).read_bytes())
        return b"".join(parts)

    def ended(self, done: tuple[int, bytes]) -> tuple[dict, bool]:
        """What to answer, and whether the kernel returned. Writes the buffers where it did."""
        status, said = done
        wanted = 8 + sum(one["bytes"] for one in self.tensors)
        if status == 0 and len(said) == wanted:
            at = 8
            for one in self.tensors:
                if "after" in one:
                    (self.folder / one["after"]).write_bytes(said[at : at + one["bytes"]])
                at += one["bytes"]
            outputs = [{"dtype": one["dtype"], "shape": one["shape"]} for one in self.request["outputs"]]
            return {"status": "ok", "return_code": struct.unpack_from("<q", said)[0], "outputs": outputs}, True
        if status < 0:
            return {"status": "crashed", "message": signal.Signals(-status).name}, False
        if status in HARNESS_ENDS:
            message = HARNESS_ENDS[status]
            return {"status": "out_of_memory" if status == 72 else "crashed", "message": message}, False
        return {"status": "forbidden", "message": f"the kernel ended the program itself, with status {status}"}, False


def run(job: Job, options: list[str], told=None) -> tuple[int, bytes]:
    """Exit status (minus the signal) and what the harness wrote; ``told`` gets each line of the emulator's."""
    command = [*MACHINE, *options, str(job.program)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe if told else None) as process:
        said: list[bytes] = []
        threads = [threading.Thread(target=lambda: said.append(process.stdout.read()))]
        if told:
            threads.append(threading.Thread(target=lambda: [told(line) for line in process.stderr]))
        for thread in threads:
            thread.start()
        try:
            process.stdin.write(job.encoded())
            process.stdin.close()
        except BrokenPipeError:
            pass  # it ended before it had read its job: how, is told below
        for thread in threads:
            thread.join()
        return process.wait(), said[0]
