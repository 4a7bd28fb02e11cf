"""How models are asked: choices and limits, with names and defaults."""

from __future__ import annotations

from dataclasses import dataclass

HYBRID = "hybrid"
ASKINGS = ("whole", "edits", "moves", HYBRID)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskingSettings:
    """``MODEL_*``, beside those of the model itself.

    Raises:
        ValueError: an unknown way of asking, or a limit below its least.
    """

    asking: str = HYBRID
    """``whole`` kernels; ``edits`` of a parent; ``moves`` of a schedule; ``hybrid``: results decide who writes. Moves
    need an emitter of the language and a parent of a schedule, or none: otherwise, and for drafts that nothing can be
    edited of, kernels are whole.
    """
    prompt_tokens_max: int = 64_000
    """Of a question, before repairs; an endpoint's ``context_tokens`` may leave less."""
    edits_lines: int = 300
    """Parents with more lines are edited, in ``hybrid``."""
    moves_offered_max: int = 40
    """Changes of a schedule that a model may choose from."""
    moves_output_tokens_max: int = 4_000
    """For a choice of moves, thinking included."""
    repair_turns: int = 2
    """Times that a model is told what is wrong with its answer, per candidate."""
    repair_tokens_max: int = 40_000
    """Tokens of those turns, read and written, per candidate; estimated before each."""
    trial_s: float = 120.0
    """For building what a model wrote, before it is handed on; after that it is handed on as it is."""
    machine_hour_micro: int = 1_000_000
    """What an hour of this machine is worth, in millionths of the currency: ``hybrid`` adds up time and money by it."""

    def __post_init__(self) -> None:
        if self.asking not in ASKINGS:
            raise ValueError(f"asking is {self.asking!r}, expected one of {', '.join(ASKINGS)}")
        if (
            min(self.prompt_tokens_max, self.moves_offered_max, self.moves_output_tokens_max, self.machine_hour_micro)
            < 1
        ):
            raise ValueError("limits must be positive")
        if self.trial_s <= 0:
            raise ValueError("limits must be positive")
        if min(self.repair_turns, self.repair_tokens_max, self.edits_lines) < 0:
            raise ValueError("limits must not be negative")
