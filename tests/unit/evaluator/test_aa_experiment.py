"""The A/A experiment counts what the product would claim: on clocks that are simulated, and on rates that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator_svc.sequential import Stopping
from evaluator_svc.statistics import DELTA_MIN, FEWEST_ROUNDS, Interval, log_ratios, noise_floor, pooled
from evaluator_svc.toolchains import Built
from shared.events import PPM, Speedup, Status
from tests.bench.aa_kernels import MARK_BYTES, with_steps
from tests.bench.aa_report import (
    About,
    Kind,
    Outcome,
    Rate,
    Trial,
    beside_compilers,
    by_operator,
    headlines,
    outcome,
    page,
    rate,
    summary,
)


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [(0, 208, 0.0, 0.01758), (2, 208, 0.00117, 0.03433), (100, 104, 0.9044, 0.98942), (10, 10, 0.69150, 1.0)],
)
def test_rates_have_clopper_and_pearsons_interval(hits, trials, low, high):
    found = Rate(hits=hits, trials=trials).interval
    assert found == (pytest.approx(low, abs=2e-4), pytest.approx(high, abs=2e-4))


def test_a_rate_of_nothing_is_told_as_nothing():
    assert str(Rate(hits=0, trials=0)) == "-"
    assert Rate(hits=0, trials=0).interval == (0.0, 1.0)


def called(found, *, delta=DELTA_MIN, status=Status.PASSED):
    speedup = Speedup(
        baseline="twin",
        ratio_ppm=round(PPM * found.ratio),
        low_ppm=math.floor(PPM * found.low),
        high_ppm=math.ceil(PPM * found.high),
        delta_ppm=math.ceil(PPM * delta),
    )
    return outcome(status, speedup if status is Status.PASSED else None)


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (1.006, 1.02, Outcome.FASTER),
        (1.004, 1.02, Outcome.UNDECIDED),
        (0.98, 1.02, Outcome.UNDECIDED),
        (0.97, 0.999, Outcome.SLOWER),
    ],
)
def test_the_word_is_that_of_the_products_own_claim(low, high, word):
    assert called(Interval(ratio=math.sqrt(low * high), low=low, high=high))[0] is word


def test_a_noisy_moment_is_no_claim_and_any_other_verdict_is_counted_as_wrong():
    found = Interval(ratio=1.0, low=1.0, high=1.0)
    assert called(found, status=Status.NOISY) == (Outcome.NOISY, None)
    assert called(found, status=Status.CHEAT) == (Outcome.OTHER, None)


class Machine:
    """Simulated clocks: heavy-tailed noise, a slow wave, bursts of others' work, and processes of uneven luck."""

    def __init__(self, seed, *, noise, luck):
        self.draw, self.noise, self.luck = np.random.default_rng(seed), noise, luck
        self.now = 0

    def process(self, slowdown=0.0):
        return (1.0 + slowdown) * math.exp(self.luck * self.draw.standard_normal())

    def block(self, per_call):
        self.now += 1
        wave = 1.0 + 0.05 * math.sin(self.now / 7.0)
        burst = 1.3 if self.now % 97 < 10 else 1.0
        return per_call * wave * burst * math.exp(self.noise * self.draw.standard_t(3))

    def measurement(self, slowdown, rule):
        """Mirrored rounds of candidate and twin, until the rule decides."""
        mine, twin = self.process(slowdown), self.process()
        blocks = {"mine": [], "twin": []}
        while True:
            order = ["mine", "twin"] if self.draw.random() < 0.5 else ["twin", "mine"]
            for name in (*order, *reversed(order)):
                blocks[name].append(self.block(mine if name == "mine" else twin))
            logs = log_ratios(blocks["twin"], blocks["mine"])
            if rule.look({"twin": logs}) is not None:
                return pooled([logs], 1)

    def trials(self, kind, slowdown, count, delta):
        rule = Stopping(fewest=FEWEST_ROUNDS, most=32, delta=delta)
        for _ in range(count):
            word, ratio = called(self.measurement(slowdown, rule), delta=delta)
            yield Trial(operator="simulated", kind=kind, busy=False, outcome=word, log_ratio=ratio, rounds=1)


def test_on_simulated_clocks_equal_kernels_win_in_fewer_than_one_of_a_hundred_trials_and_two_per_cent_are_seen():
    machine = Machine(1, noise=0.004, luck=0.001)
    history = [machine.process() / machine.process() for _ in range(100)]
    delta = noise_floor(np.log(history))
    equal = list(machine.trials(Kind.EQUAL, 0.0, 208, delta))
    slowed = list(machine.trials(Kind.SLOWED, 0.02, 104, delta))
    assert rate(equal, Outcome.FASTER).share < 0.01
    assert rate(slowed, Outcome.SLOWER).share >= 0.95
    assert rate(slowed, Outcome.FASTER).hits == 0
    text = page([*equal, *slowed], {"simulated": "2 %"}, About(command="c", machine="m", delta=delta, date="d"))
    assert f"| equal, quiet | 208 | 0 | {rate(equal, Outcome.FASTER)} |" in text
    assert f"- Equal kernels called faster: {rate(equal, Outcome.FASTER)}; aimed at: below 1 %, met" in text


def test_processes_of_uneven_luck_are_what_the_noise_floor_is_for():
    """Rounds cannot average out that one process is placed better; a worker that knows how much does not claim it."""
    without = list(Machine(2, noise=0.002, luck=0.01).trials(Kind.EQUAL, 0.0, 200, 0.0))
    assert rate(without, Outcome.FASTER).share > 0.1
    machine = Machine(3, noise=0.002, luck=0.01)
    delta = noise_floor(np.log([machine.process() / machine.process() for _ in range(200)]))
    assert delta > DELTA_MIN
    assert rate(machine.trials(Kind.EQUAL, 0.0, 200, delta), Outcome.FASTER).share < 0.01


def a_trial(word, *, kind=Kind.EQUAL, busy=False, said=""):
    return Trial(operator="o", kind=kind, busy=busy, outcome=word, said=said)


def test_noisy_trials_are_counted_apart_and_are_no_part_of_the_rates():
    made = [a_trial(word, busy=True) for word in (Outcome.NOISY, Outcome.UNDECIDED)]
    assert rate(made, Outcome.FASTER) == Rate(hits=0, trials=1)
    figures = summary(made, {})["equal, compilers beside"]
    assert figures["trials"] == "2"
    assert figures["NOISY"].startswith("1/2")
    assert by_operator(made, {})[0].startswith("| o | 0 |")


def test_beside_compilers_a_claim_is_right_or_wrong_or_was_not_made():
    words = {
        Kind.EQUAL: (Outcome.UNDECIDED, Outcome.UNDECIDED, Outcome.FASTER, Outcome.SLOWER, Outcome.NOISY),
        Kind.SLOWED: (Outcome.SLOWER, Outcome.UNDECIDED, Outcome.FASTER, Outcome.OTHER, Outcome.NOISY),
    }
    made = [a_trial(word, kind=kind, busy=True) for kind, some in words.items() for word in some]
    equal, slowed = beside_compilers(made)
    assert equal.startswith("| equal | 5 | 1 | 2 | 0 | 2 | 2/5 = 40.0 %")
    assert slowed.startswith("| slowed | 5 | 1 | 1 | 1 | 2 | 2/5 = 40.0 %")


def test_what_was_aimed_at_is_met_by_the_share_and_proved_by_the_interval_alone():
    equal = [a_trial(Outcome.UNDECIDED)] * 208
    slowed = [a_trial(Outcome.SLOWER, kind=Kind.SLOWED)] * 104
    assert "met (the interval does not exclude more)" in headlines(equal)[0]
    assert "met (the interval proves it)" in headlines(equal * 3)[0]
    assert "met (the interval proves it)" in headlines(slowed)[0]
    assert "MISSED" in headlines([*equal, *[a_trial(Outcome.FASTER)] * 3])[0]
    assert "MISSED" in headlines([*slowed, *[a_trial(Outcome.UNDECIDED, kind=Kind.SLOWED)] * 6])[0]


def test_a_page_of_an_interrupted_run_names_what_was_not_made_and_why():
    planned = {(Kind.EQUAL, False): 208, (Kind.SLOWED, True): 39}
    about = About(command="c", machine="m", date="d", stopped="interrupted", planned=planned)
    text = page([a_trial(Outcome.UNDECIDED), a_trial(Outcome.OTHER, said="reason: none")], {}, about)
    assert "**Trials that were not made: 206 of equal, quiet; 39 of slowed, compilers beside**" in text
    assert "**The run did not end by itself: interrupted**" in text
    assert "- o, equal: reason: none" in text
    assert "not made:" not in page([a_trial(Outcome.UNDECIDED)], {}, About(command="c", machine="m", date="d"))


def test_a_kernel_is_slowed_by_one_number_in_what_was_built(tmp_path):
    library = tmp_path / "kernel.so"
    library.write_bytes(b"code" + MARK_BYTES + b"more")
    marked = Built(path=library, digest="d" * 64, log="", build_ns=0, sandbox="")
    assert with_steps(marked, 5, tmp_path).path.read_bytes() == b"code" + (5).to_bytes(8, "little") + b"more"
    library.write_bytes(b"code" + 2 * MARK_BYTES)
    with pytest.raises(ValueError, match="2 times"):
        with_steps(marked, 5, tmp_path)
