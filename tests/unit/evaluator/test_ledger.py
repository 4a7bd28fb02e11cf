"""What an evaluation leaves on record."""

from __future__ import annotations

import json

from evaluator_svc.layers import Layer, caught, caught_by
from evaluator_svc.ledger import FORMAT, Call, Ledger, Stage
from shared.events import Entry


def test_a_ledger_reads_as_json_in_the_order_things_happened() -> None:
    ledger = Ledger()
    ledger.facts["kernel"] = "abc"
    ledger.seeds["own inputs"] = 7
    ledger.check(Layer.JUDGE.value, "own inputs", "passed")
    for calls in (3, 1, 2):
        ledger.call(
            Call(stage=Stage.BLOCK, process=1, contestant="candidate", case="fresh 0", calls=calls, controller_ns=10)
        )

    read = json.loads(ledger.encoded())

    assert read["format"] == FORMAT
    assert [call["calls"] for call in read["calls"]] == [3, 1, 2]
    assert read["checks"] == [{"layer": "judge", "subject": "own inputs", "outcome": "passed"}]
    assert read["seeds"] == {"own inputs": 7}


def test_a_clock_that_was_not_there_is_null_and_not_zero() -> None:
    ledger = Ledger()
    ledger.call(Call(stage=Stage.FRESH, process=1, contestant="eager", case="fresh 0", calls=1, controller_ns=10))

    (call,) = json.loads(ledger.encoded())["calls"]

    assert call["device_ns"] is None
    assert call["runner_ns"] is None


def test_equal_ledgers_are_equal_blobs() -> None:
    one, other = Ledger(facts={"a": "1", "b": "2"}), Ledger(facts={"b": "2", "a": "1"})

    assert one.encoded() == other.encoded()


def test_the_layer_that_caught_a_kernel_is_read_back_from_its_evidence() -> None:
    evidence = (caught(Layer.CLOCKS), Entry(name="reason", value="the answer came before the work was done"))

    assert caught_by(evidence) is Layer.CLOCKS
    assert caught_by(evidence[1:]) is None
