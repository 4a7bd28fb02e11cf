"""Whether a kernel builds, for whoever writes kernels: the first stages of an evaluation, and nothing is run.

See ``shared.trial_build``. Builds wait at the gate of the device as those of evaluations do, so that nothing is
compiled while something is timed, and what was built is in the cache when the kernel is evaluated.
"""

from __future__ import annotations

import asyncio
import re

from evaluator_svc.evaluators import Evaluates
from evaluator_svc.toolchains import BuildFailed
from shared import chips
from shared.errors import Fatal, Retryable, Unavailable, UserError
from shared.events import Status
from shared.submissions.kernel import ENTRIES
from shared.trial_build import TEXT_CHARS_MAX, BuildErrors, Built, TrialKernel

DEFAULT_ENTRY = "ke_launch"
_DIRECTORIES = re.compile(r"(?:/[\w.+-]+)+/(?=kernel\.cpp\b)")


class Trials:
    """Implements ``TrialBuild`` with this process's evaluator; ``places`` builds at a time."""

    def __init__(self, evaluator: Evaluates, places: int = 1) -> None:
        self._evaluator = evaluator
        self._chip = evaluator.settings.chip
        self._places = asyncio.Semaphore(places)

    async def build(self, kernel: TrialKernel) -> Built | BuildErrors:
        """See the port.

        Raises:
            UserError: the kernel is for another chip, or in a language that this one does not take, or there is no
                compiler.
            Unavailable: nothing can be built here now.
        """
        if kernel.chip != self._chip:
            raise UserError(f"is `{kernel.chip[:40]}`, this worker's is `{self._chip}`", where="chip")
        languages = chips.load(self._chip).languages
        if kernel.language not in languages:
            raise UserError(f"is `{kernel.language[:40]}`", where="language", hint=f"known: {', '.join(languages)}")
        expected = ENTRIES.get(kernel.language, DEFAULT_ENTRY)
        if kernel.entry not in ("", expected):
            return BuildErrors(status=Status.LAUNCH_FAILED, text=f"the entry is {kernel.entry[:80]}, not {expected}")
        async with self._places:
            try:
                made = await self._evaluator.build(kernel.source, kernel.flags, kernel.language)
            except (Retryable, Fatal, OSError) as error:
                raise Unavailable(f"nothing can be built here: {error}") from error
        return Built() if not isinstance(made, BuildFailed) else BuildErrors(status=made.status, text=said(made))


def said(failed: BuildFailed) -> str:
    """What was found and what the compiler printed, without the paths of this machine."""
    lines = [f"{entry.name}: {entry.value}" for entry in failed.evidence if entry.name != "caught_by"]
    text = "\n".join([*lines, failed.log.strip()]).strip()
    return _DIRECTORIES.sub("", text)[:TEXT_CHARS_MAX]
