"""What a model is told when its answer cannot be used (pure)."""

from __future__ import annotations

from shared.trial_build import BuildErrors
from synthesizer_svc.answer_text import Unparsable
from synthesizer_svc.asking.form import Form
from synthesizer_svc.prompts.rendering import render


def about_answer(problem: Unparsable, form: Form, form_again: str) -> str:
    """Why no kernel could be read, and in which form to answer again."""
    return render("repair/answer.j2", problem=problem, form=form, form_again=form_again)


def about_build(errors: BuildErrors, form: Form, form_again: str) -> str:
    """What the compiler says of the kernel, and in which form to answer again."""
    return render("repair/build.j2", errors=errors, form=form, form_again=form_again)
