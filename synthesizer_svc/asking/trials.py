"""Building a model's kernel before it is handed on: by an evaluator, where one can be reached."""

from __future__ import annotations

import asyncio
import logging

from shared.errors import Retryable, UserError
from shared.trial_build import BuildErrors, TrialBuild, TrialKernel
from synthesizer_svc.asking.ways import Draft

log = logging.getLogger(__name__)


class Trials:
    """Builds drafts for ``chip``, each within ``limit_s``; without a builder every draft stands as it is."""

    def __init__(self, builder: TrialBuild | None, chip: str, limit_s: float) -> None:
        self._builder, self._chip, self._limit_s = builder, chip, limit_s

    async def errors(self, draft: Draft) -> BuildErrors | None:
        """Why ``draft`` does not build; None when it does, or when nobody can tell."""
        if self._builder is None or draft.schedule is not None:
            return None
        kernel = TrialKernel(
            chip=self._chip,
            language=draft.form.language,
            source=draft.source,
            flags=draft.form.flags,
            entry=draft.form.entry,
        )
        try:
            async with asyncio.timeout(self._limit_s):
                found = await self._builder.build(kernel)
        except UserError as error:  # of who set this up: it does not pass by itself
            log.warning("a kernel is handed on without a trial build: %s", error)
            return None
        except (Retryable, TimeoutError) as error:
            log.info("a kernel is handed on without a trial build: %s", str(error) or "it takes too long")
            return None
        return found if isinstance(found, BuildErrors) else None
