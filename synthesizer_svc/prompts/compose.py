"""One universal prompt, composed from whatever is known at a node (pure).

There are no separate drafting, debugging and improving prompts: what is asked follows from what is shown. ``system``
depends on chip and language alone and comes first, so endpoints can cache it; the operator, which all nodes of a search
share, opens ``user``; what changes per node comes last.
"""

from __future__ import annotations

import re

import jinja2

from shared.abi import HEADER_NAME, header
from shared.events import PPM, SkillDistilled
from synthesizer_svc.prompts.given import Prompt, PromptInput, Quoted

SOURCE_CHARS_MAX = 24_000
"""Per quoted source; about 500 lines. A cut is marked."""
PASSAGE_CHARS_MAX = 4_000
EVIDENCE_CHARS_MAX = 600


def compose(given: PromptInput) -> Prompt:
    """The prompt for ``given``; equal inputs give equal bytes."""
    system = _ENVIRONMENT.get_template("system.j2").render(
        language=given.language,
        entry=given.entry,
        header_name=HEADER_NAME,
        header=header(),
        chip=given.chip,
        isa=given.isa,
        flags=given.flags,
    )
    user = _ENVIRONMENT.get_template("user.j2").render(
        operator_name=given.operator_name,
        operator_source=given.operator_source,
        language=given.language,
        threads=given.threads,
        passages=given.passages,
        skills=given.skills,
        parents=given.parents,
        siblings=given.siblings,
        negative=given.negative,
        task=_task(given),
    )
    return Prompt(system=system, user=user)


def fenced(text: str, tag: str = "") -> str:
    """``text`` in a fence longer than any run of backticks inside it, cut at ``SOURCE_CHARS_MAX`` with a mark."""
    text = _cut(text.rstrip("\n"), SOURCE_CHARS_MAX)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{tag}\n{text}\n{fence}"


def quoted(text: str) -> str:
    """A document as a Markdown quotation, so that its headings do not become the prompt's."""
    return "\n".join(f"> {line}".rstrip() for line in _cut(text.strip(), PASSAGE_CHARS_MAX).split("\n"))


def claim(skill: SkillDistilled) -> str:
    """A skill as one line: what was claimed, by how much, how sure, and where it was measured."""
    if skill.statement:
        return skill.statement
    ratio = f"time x{skill.ratio_ppm / PPM:.3f} [{skill.low_ppm / PPM:.3f}, {skill.high_ppm / PPM:.3f}]"
    return f"{skill.move}: {ratio}, {skill.status.value}, measured on {skill.chip} when {skill.bound.value}-bound"


def history(parent: Quoted) -> str:
    """What was measured on ``parent``: status, evidence, speedup, roofline and diagnosis, a line each."""
    evaluation = parent.evaluation
    if evaluation is None:
        return "Not measured yet."
    lines = [f"Status: {evaluation.status.value}."]
    lines += [f"- {e.name}: {_cut(e.value, EVIDENCE_CHARS_MAX)}" for e in evaluation.evidence]
    lines += [
        f"Speedup over {s.baseline}: {s.ratio_ppm / PPM:.3f} [{s.low_ppm / PPM:.3f}, {s.high_ppm / PPM:.3f}]."
        for s in evaluation.speedups
    ]
    if evaluation.roofline.fraction_ppm:
        lines.append(
            f"Speed of light: {evaluation.roofline.fraction_ppm / PPM:.0%} of a floor of "
            f"{evaluation.roofline.floor_ns / 1000:.1f} us."
        )
    diagnosis = evaluation.diagnosis
    lines.append(f"Bound by: {diagnosis.bound.value}. {diagnosis.summary}".rstrip())
    lines += [f"- {e.name}: {_cut(e.value, EVIDENCE_CHARS_MAX)}" for e in diagnosis.evidence]
    return "\n".join(lines)


def _task(given: PromptInput) -> str:
    if not given.parents:
        return f"Write the fastest {given.language} kernel you can for this operator and chip."
    if len(given.parents) > 1:
        return "Combine what is best in the kernels above into one that is faster than each."
    parent = given.parents[0]
    if parent.failed:
        return "Find why the kernel above fails and write one that is correct, keeping what makes it fast."
    bound = parent.evaluation.diagnosis.bound.value if parent.evaluation else "unknown"
    return f"Write a faster kernel. What limits the one above: {bound}. Change what that points at."


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}\n[... {len(text) - limit} characters left out]"


def _environment() -> jinja2.Environment:
    # Prompts are plain text: escaping for HTML would corrupt the code in them.
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("synthesizer_svc", "templates"),
        autoescape=False,  # noqa: S701
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters.update(fenced=fenced, quoted=quoted, claim=claim, history=history)
    return environment


_ENVIRONMENT = _environment()
