"""What the driver's program says, and what a calibration must refuse."""

from __future__ import annotations

import asyncio

import pytest

from evaluator_svc import nvidia
from evaluator_svc.gpu_calibration import check_cold
from evaluator_svc.gpu_watch import DeviceWatch, compared
from evaluator_svc.nvidia import Gpu, parse
from shared.errors import Fatal

LINE = "GPU-1b2c, NVIDIA H200, 580.159.04, 512, 1980, 1980, 33, Not Active, Not Active, Not Active\n"


def test_a_quiet_device_is_read_with_its_clocks() -> None:
    gpu = parse(LINE)
    assert gpu is not None
    assert (gpu.uuid, gpu.clock, gpu.clock_max, gpu.memory_used, gpu.throttled) == ("GPU-1b2c", 1980, 1980, 512, False)


def test_any_one_reason_of_slowing_down_counts() -> None:
    gpu = parse(LINE.replace("Not Active, Not Active, Not Active", "Not Active, Active, Not Active"))
    assert gpu is not None
    assert gpu.throttled is True


def test_what_the_driver_cannot_tell_is_unknown_and_not_zero() -> None:
    gpu = parse(LINE.replace(" 33, Not Active", " [N/A], [N/A]").replace(" 1980, 1980", " [N/A], 1980"))
    assert gpu is not None
    assert (gpu.clock, gpu.temperature, gpu.throttled) == (None, None, None)


@pytest.mark.parametrize("text", ["", "No devices were found\n", LINE + LINE])
def test_anything_else_than_one_line_of_the_form_is_no_answer(text: str) -> None:
    assert parse(text) is None


def test_a_flush_that_leaves_the_cache_warm_is_refused() -> None:
    check_cold({"16777216": 4.1e12}, 4.0e12)
    with pytest.raises(Fatal, match="16 MiB are read at 9000 GB/s"):
        check_cold({"16777216": 9.0e12}, 4.0e12)


def gpu(line: str = LINE) -> Gpu:
    found = parse(line)
    assert found is not None
    return found


def test_a_device_that_keeps_its_clock_disturbs_nothing() -> None:
    seen = compared(gpu(), gpu())
    assert seen.disturbed == ()
    assert seen.seen[0].value == "1980 to 1980 MHz, 33 °C, throttled false"


@pytest.mark.parametrize("after", [LINE.replace(" 1980,", " 1900,", 1), LINE.replace("Not Active", "Active", 1)])
def test_a_falling_clock_or_throttling_makes_a_moment_disturbed(after: str) -> None:
    assert compared(gpu(), gpu(after)).disturbed


def test_a_driver_that_says_nothing_is_unknown_and_disturbs_nothing() -> None:
    seen = compared(None, gpu())
    assert seen.disturbed == ()
    assert "unknown" in seen.seen[0].value


def test_where_there_is_no_device_nobody_is_asked_and_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "ask", lambda: pytest.fail("asked"))

    async def watched() -> None:
        watch = DeviceWatch(on=False)
        await watch.begin()
        seen = await watch.end()
        assert (seen.seen, seen.disturbed) == ((), ())

    asyncio.run(watched())


def test_the_driver_is_asked_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([gpu(), gpu(LINE.replace(" 1980,", " 1500,", 1))])
    monkeypatch.setattr(nvidia, "ask", lambda: next(answers))

    async def watched() -> str:
        watch = DeviceWatch(on=True)
        await watch.begin()
        return (await watch.end()).disturbed[0].value

    assert asyncio.run(watched()).startswith("1980 to 1500 MHz")


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n", True),
        ("RmProfilingAdminOnly: 0\n", False),
        ("", False),
    ],
)
def test_whether_counters_are_for_administrators_is_the_drivers_word(text: str, only: bool) -> None:
    assert nvidia.restricted(text) is only
