"""What bubblewrap is told of a box."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path

import pytest

from evaluator_svc.sandbox import NOTHING_BUILT, lowered
from shared import boxes
from shared.boxes import Box, Mount, options
from shared.events import Trust

ROOT = Path(__file__).parents[3]


def told(box, **copied):
    return options(box, {Path(path): fd for path, fd in copied.items()})


def follows(said, *words):
    return any(said[at : at + len(words)] == list(words) for at in range(len(said)))


def test_every_box_is_without_network_processes_capabilities_and_environment():
    said = told(Box(mounts=()))
    for option in ("--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-user", "--clearenv", "--new-session"):
        assert option in said
    assert follows(said, "--cap-drop", "ALL")
    assert follows(said, "--remount-ro", "/")
    assert not {"--dev", "--proc", "--share-net"} & {*said}


def test_a_gpus_box_has_the_nodes_of_its_device_and_of_no_other():
    said = told(Box(mounts=boxes.GPU_MOUNTS, devices=boxes.gpu(3), processes=True))
    nodes = [after for option, after in pairwise(said) if option == "--dev-bind"]
    assert nodes == ["/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]
    assert follows(said, "--ro-bind-try", "/sys", "/sys")
    assert follows(said, "--proc", "/proc")


def test_a_gpus_box_may_write_to_its_device_and_to_its_own_part_of_proc():
    box = Box(mounts=boxes.GPU_MOUNTS, devices=boxes.gpu(0), processes=True)
    assert {"/dev/nvidia0", "/proc"} <= {*box.writable}
    assert "/sys" not in box.writable
    assert "/dev" not in box.writable


def test_what_another_user_cannot_walk_to_is_put_into_the_box_read_only():
    hidden = Mount(source=Path("/root/kernel.so"), target="/ke/kernel.so")
    said = options(Box(mounts=(hidden,)), {hidden.source: 9})
    assert follows(said, "--perms", "0555", "--ro-bind-data", "9", "/ke/kernel.so")
    assert "/root/kernel.so" not in said


def test_mounts_are_read_only_unless_they_say_otherwise():
    said = told(
        Box(mounts=(Mount(source=Path("/a"), target="/b"), Mount(source=Path("/c"), target="/d", writable=True)))
    )
    assert follows(said, "--ro-bind-try", "/a", "/b")
    assert follows(said, "--bind", "/c", "/d")


@pytest.mark.parametrize(
    ("levels", "trust"),
    [
        (("namespaces+mounts+seccomp+landlock+rlimits",), Trust.L4),
        (("namespaces+mounts+rlimits",), Trust.L4),
        (("user+seccomp+landlock+rlimits",), Trust.L4),
        (("seccomp+rlimits",), Trust.L2),
        (("namespaces+mounts+seccomp", "seccomp+rlimits"), Trust.L2),
        (("namespaces+mounts+seccomp", NOTHING_BUILT), Trust.L4),
        (("namespaces+mounts+seccomp", ""), Trust.L2),
    ],
)
def test_trust_is_capped_where_one_layer_alone_holds(levels, trust):
    assert lowered(Trust.L4, *levels) is trust
    assert lowered(Trust.L1, *levels) is Trust.L1


def test_nothing_that_comes_from_a_box_is_unpickled():
    """Neither by name nor through a loader that unpickles: nowhere in the evaluator or in what it shares."""
    unpickling = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}
    for path in (*(ROOT / "evaluator_svc").rglob("*.py"), *(ROOT / "shared").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not unpickling & {alias.name.partition(".")[0] for alias in node.names}, path
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").partition(".")[0] not in unpickling, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load":
                whose = ast.unparse(node.func.value)
                assert whose not in {"torch", "torch.jit", "np", "numpy"}, (path, node.lineno)
