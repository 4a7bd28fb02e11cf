"""What is known at a node, as the parts of a prompt (pure).

A part is there when there is something to say in it. A model that chooses moves is not shown sources: schedules say all
that it can change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from shared.events import PPM, Bound, MoveOutcome, SkillDistilled, Status
from shared.submissions.kernel import EMULATED, HOSTED
from synthesizer_svc.prompts import quoting
from synthesizer_svc.prompts.budget import PartName
from synthesizer_svc.prompts.given import Asking, PromptInput, Quoted
from synthesizer_svc.prompts.pieces import Part, Piece

RATIONALE_CHARS_MAX = 160


def parts(given: PromptInput) -> Iterator[Part]:
    """The parts of the user's message, in order: what a search shares, what a node has, the task."""
    yield Part(name=PartName.OPERATOR, pieces=(_operator(given),))
    if given.parents:
        yield Part(name=PartName.DIAGNOSIS, heading="# Diagnosis", pieces=tuple(map(_diagnosis, given.parents)))
    if given.passages:
        yield Part(name=PartName.DOCUMENTS, heading=_documents_heading(given), pieces=tuple(_passages(given)))
    yield from _lists(given)
    yield from _kernels(given)
    if given.history:
        lines = _numbered(given.history)
        yield _list(PartName.HISTORY, "# How it came to be, newest first", lines)
    if given.asking is Asking.MOVES:
        choices = Piece(template="user/choices.j2", source=given.choices, quote=quoting.visible)
        yield Part(name=PartName.CHOICES, pieces=(choices,))
    yield Part(name=PartName.TASK, pieces=(_task(given),))


def tag(language: str) -> str:
    """The tag of a fence around code in ``language``."""
    return "python" if language in HOSTED else "c" if language == EMULATED else language


def claim(skill: SkillDistilled) -> str:
    """A skill as one line: what was claimed, by how much, how sure, and where it was measured."""
    if skill.statement:
        return quoting.inline(skill.statement)
    ratio = f"time x{skill.ratio_ppm / PPM:.3f} [{skill.low_ppm / PPM:.3f}, {skill.high_ppm / PPM:.3f}]"
    where = f"measured on {skill.chip} when {skill.bound.value}-bound"
    return quoting.inline(f"{skill.move}: {ratio}, {skill.status.value}, {where}")


def came_to(outcome: MoveOutcome) -> str:
    """What came of a move, as one line without the move."""
    if outcome.status is not Status.PASSED:
        return quoting.inline(outcome.signature or outcome.status.value)
    what, told = "time", f"speedup {outcome.ratio_ppm / PPM:.3f}" if outcome.ratio_ppm else "correct, not timed"
    if outcome.basis:
        what, told = (
            "cost",
            quoting.inline(f"{outcome.ratio_ppm / PPM:.3f} times less cost ({outcome.basis}, not timed)"),
        )
    if outcome.gain_ppm:
        told += f", {PPM / outcome.gain_ppm:.3f} times the {what} of what it changed"
    return told


def move(outcome: MoveOutcome) -> str:
    """A move by its name, with why it was made where somebody said so."""
    said = quoting.inline(outcome.move.rationale, RATIONALE_CHARS_MAX)
    return quoting.inline(outcome.move.name) + (f" ({said})" if said else "")


def grouped(setbacks: Sequence[MoveOutcome], first: str) -> list[str]:
    """A line per error, that of signature ``first`` before others, then one per move that did not pay."""
    errors: dict[str, list[str]] = {first: []} if first else {}
    slower: list[str] = []
    for outcome in setbacks:
        if outcome.status is Status.PASSED:
            slower.append(f"{move(outcome)}: {came_to(outcome)}")
        else:
            errors.setdefault(outcome.signature or outcome.status.value, []).append(move(outcome))
    failed = [
        f"{quoting.inline(error)} ({_times(moves)}): {'; '.join(moves)}" for error, moves in errors.items() if moves
    ]
    return [*failed, *slower]


def _operator(given: PromptInput) -> Piece:
    return Piece(
        template="user/operator.j2",
        values={"name": given.operator_name, "threads": given.threads, "gpu": given.gpu},
        source=given.operator_source,
        quote=lambda source: quoting.fenced(source, "python"),
    )


def _diagnosis(parent: Quoted) -> Piece:
    evaluation = parent.evaluation
    roofline = evaluation.roofline if evaluation else None
    taken = roofline.floor_ns * PPM // roofline.fraction_ppm if roofline and roofline.fraction_ppm else 0
    return Piece(template="user/diagnosis.j2", values={"parent": parent, "evaluation": evaluation, "taken_ns": taken})


def _documents_heading(given: PromptInput) -> str:
    evaluation = given.parents[0].evaluation if given.parents else None
    if evaluation is None:
        return "# Documents"
    if evaluation.status is not Status.PASSED:
        return f"# Documents on {evaluation.status.value}"
    bound = evaluation.diagnosis.bound
    return "# Documents" if bound is Bound.UNKNOWN else f"# Documents for what is bound by {bound.value}"


def _passages(given: PromptInput) -> Iterator[Piece]:
    for passage in given.passages:
        yield Piece(
            template="user/passage.j2",
            values={"title": passage.title, "document_id": passage.document_id},
            source=passage.text,
            quote=quoting.quoted,
            id=passage.document_id,
        )


def _lists(given: PromptInput) -> Iterator[Part]:
    if given.skills:
        lines, names = [claim(skill) for skill in given.skills], [skill.skill_id for skill in given.skills]
        yield _list(PartName.SKILLS, "# Measured before", lines, names)
    parent = given.parents[0] if given.parents else None
    first = parent.outcome.signature if parent and parent.outcome else ""
    if lines := grouped(given.setbacks, first):
        yield _list(PartName.SETBACKS, "# Tried, and failed or did not pay", lines)


def _list(name: PartName, heading: str, lines: Sequence[str], ids: Sequence[str] = ()) -> Part:
    named = zip_longest(lines, ids, fillvalue="")
    pieces = tuple(Piece(template="user/item.j2", values={"line": line}, id=each) for line, each in named)
    return Part(name=name, heading=f"{heading}\n", pieces=pieces, joint="\n")


def _kernels(given: PromptInput) -> Iterator[Part]:
    roles = (
        (PartName.FAILURES, "Failed, do not repeat", given.negative),
        (PartName.SIBLINGS, "Tried beside it", given.siblings),
    )
    for name, role, kernels in roles:
        pieces = tuple(_kernel(given, role, kernel) for kernel in kernels if _says_something(given, kernel))
        if pieces:
            yield Part(name=name, pieces=pieces)
    if given.parents:
        one = "repair" if given.parents[0].failed else "improve"
        role = f"Kernel to {'combine' if len(given.parents) > 1 else one}"
        yield Part(name=PartName.PARENTS, pieces=tuple(_kernel(given, role, parent) for parent in given.parents))


def _kernel(given: PromptInput, role: str, kernel: Quoted) -> Piece:
    remark = ""
    if kernel.outcome and kernel.outcome not in given.history:
        remark = f"By {move(kernel.outcome)}: {came_to(kernel.outcome)}."
    return Piece(
        template="user/kernel.j2",
        values={"role": role, "candidate_id": kernel.candidate_id, "remark": remark},
        source="" if given.asking is Asking.MOVES else kernel.source,
        quote=lambda source: quoting.fenced(source, tag(kernel.language or given.language)),
        id=kernel.candidate_id,
    )


def _says_something(given: PromptInput, kernel: Quoted) -> bool:
    """Without its source, a kernel is worth showing for what came of its move, once."""
    return given.asking is not Asking.MOVES or (kernel.outcome is not None and kernel.outcome not in given.setbacks)


def _numbered(history: Sequence[MoveOutcome]) -> list[str]:
    return [f"{quoting.inline(o.candidate_id)} by {move(o)}: {came_to(o)}" for o in history]


def _task(given: PromptInput) -> Piece:
    first = given.parents[0] if given.parents else None
    return Piece(
        template="user/task.j2",
        values={"parents": given.parents, "first": first, "asking": given.asking, "title": tag(given.language)},
    )


def _times(moves: Sequence[str]) -> str:
    return "once" if len(moves) == 1 else f"{len(moves)} times"
