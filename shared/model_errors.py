"""Why a model that was asked gave no answer, as events name it (pure)."""

from __future__ import annotations

from enum import StrEnum


class ModelErrorCode(StrEnum):
    """Why there is no answer; ``CandidateRejected.code``."""

    BUDGET = "budget"
    """The search's or the day's budget does not allow another call."""
    ENDPOINT = "endpoint"
    """No endpoint can be reached or they fail, after all attempts."""
    REJECTED = "rejected"
    """An endpoint rejects the request itself, e.g. a field or the model's name: asking again cannot help."""
    CREDENTIALS = "credentials"
    SPEND_LIMIT = "spend_limit"
    """The vendor's own limit: asking again cannot help until somebody pays."""
    CONTEXT = "context"
    """The prompt does not fit into the model's context."""
    DEADLINE = "deadline"
    REFUSED = "refused"
    """By the endpoint's content filter, without text."""
    ANSWER = "answer"
    """The endpoint answered with what is no answer of its protocol, after all attempts."""


NO_ANSWER = tuple(code for code in ModelErrorCode if code is not ModelErrorCode.REFUSED)
"""``CandidateRejected.code`` where there was nothing to read, so that nothing is said of the model or of the space."""
