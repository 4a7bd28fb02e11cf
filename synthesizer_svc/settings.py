"""Every choice and limit of the synthesizer, with its name and default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import platformdirs

from shared import settings
from shared.errors import UserError
from shared.settings import PortSettings
from synthesizer_svc.asking.settings import AskingSettings
from synthesizer_svc.model import configuration
from synthesizer_svc.model.breaker import BreakerSettings
from synthesizer_svc.model.budgeted import BudgetSettings
from synthesizer_svc.model.configuration import EndpointSettings
from synthesizer_svc.model.prices import PriceSettings
from synthesizer_svc.model.retrying import RetrySettings

ONE_MACHINE = ("memory", "sqlite")
"""Schemes of stores that no other machine reaches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """``MODEL_*``: which model writes kernels beside the schedules, and what it may spend per kernel.

    Its key is ``MODEL_API_KEY``, which is no field: it is read into a ``Secret``.

    Raises:
        ValueError: a share outside 0 to 100, or a limit below 1.
    """

    url: str = ""
    """``https://host/v1``: an endpoint. ``scripted:PATH``: answers from a file. Empty searches without a model."""
    name: str = ""
    """The model, as the endpoint of ``url`` knows it."""
    protocol: str = ""
    """``openai`` or ``anthropic``; empty: what the host of ``url`` is known for, otherwise openai."""
    ca: str = ""
    """Authorities to trust for ``url`` instead of the usual ones, PEM file."""
    allow_plaintext: bool = False
    """Send the key without TLS beyond loopback: for a network that encrypts by itself."""
    endpoints: str = ""
    """A TOML file of endpoints, instead of ``url``."""
    share_percent: int = 50
    """Share of an expansion's candidates that the model writes."""
    output_tokens_max: int = 16_000
    deadline_s: float = 300.0
    """For one answer, retries included."""
    quoted_kernels_max: int = 2
    """Siblings, and failures, quoted in a prompt: each."""

    def __post_init__(self) -> None:
        if not 0 <= self.share_percent <= 100:
            raise ValueError(f"share_percent is {self.share_percent}, expected 0 to 100")
        if self.output_tokens_max < 1 or self.deadline_s <= 0 or self.quoted_kernels_max < 0:
            raise ValueError("limits must be positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """``SYNTHESIZER_*``.

    Raises:
        ValueError: a limit below 1, or a negative number of documents.
    """

    documents_max: int = 4
    """Passages retrieved per expansion."""
    renders_max: int = 400
    """Schedules rendered per expansion before it counts as exhausted."""
    operators_max: int = 32
    """Captured operators kept in memory."""
    capture_s: float = 120.0
    """For capturing one operator."""
    capture_memory_mb: int = 0
    """Memory of the process that captures one; 0: what the machine has."""
    members: int = 1
    """Members of the consumer group in this process."""
    in_flight: int = 16
    """Expansions in hand per member: partitions are handled side by side, so that none waits for a slow model or the
    capture of another operator."""

    def __post_init__(self) -> None:
        counts = (self.renders_max, self.operators_max, self.members, self.in_flight, self.documents_max + 1)
        if min(counts) < 1 or self.capture_s <= 0 or self.capture_memory_mb < 0:
            raise ValueError("limits must be positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    model: ModelSettings = field(default_factory=ModelSettings)
    asking: AskingSettings = field(default_factory=AskingSettings)
    endpoints: tuple[EndpointSettings, ...] = ()
    """Those that ``model`` names, their keys included."""
    retry: RetrySettings = field(default_factory=RetrySettings)
    breaker: BreakerSettings = field(default_factory=BreakerSettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    limits: Limits = field(default_factory=Limits)
    knowledge_url: str = ""
    """``KNOWLEDGE_URL``, ``grpc://host:port``: where a synthesizer of its own asks; empty: it writes without."""
    evaluator_urls: str = ""
    """``EVALUATOR_URLS``, ``chip=grpc://host:port``, separated by commas: who builds what a model wrote, for a
    synthesizer of its own; empty: kernels are handed on without a trial."""


def from_env(environment: Mapping[str, str]) -> Settings:
    """Settings from environment variables.

    Raises:
        UserError: names the variable that does not parse or is out of range, or what is wrong with an endpoint.
    """
    model = settings.from_env(ModelSettings, environment, "MODEL_")
    return Settings(
        model=model,
        asking=settings.from_env(AskingSettings, environment, "MODEL_"),
        endpoints=endpoints(model, environment),
        retry=settings.from_env(RetrySettings, environment, "MODEL_RETRY_"),
        breaker=settings.from_env(BreakerSettings, environment, "MODEL_BREAKER_"),
        budget=budget(environment),
        limits=settings.from_env(Limits, environment, "SYNTHESIZER_"),
        knowledge_url=environment.get("KNOWLEDGE_URL", "").strip(),
        evaluator_urls=environment.get("EVALUATOR_URLS", "").strip(),
    )


def budget(environment: Mapping[str, str]) -> BudgetSettings:
    """What models may cost. Raises ``UserError``: names the variable."""
    asked = settings.from_env(BudgetSettings, environment, "MODEL_BUDGET_")
    store_url = settings.from_env(PortSettings, environment).store_url
    if asked.days_url or store_url.partition(":")[0].lower() not in ONE_MACHINE:
        return asked
    file = platformdirs.user_data_path("kernelevolve", appauthor=False) / "budgets.db"
    return replace(asked, days_url=f"sqlite:{file}")


def endpoints(model: ModelSettings, environment: Mapping[str, str]) -> tuple[EndpointSettings, ...]:
    """The endpoints that ``MODEL_URL`` or ``MODEL_ENDPOINTS`` name; none for a script or no model.

    Raises:
        UserError: what is wrong with one, or both are set.
    """
    if model.endpoints:
        if model.url:
            raise UserError("is set, and MODEL_ENDPOINTS too", where="MODEL_URL", hint="set one of them")
        return configuration.read(Path(model.endpoints), environment)
    if not model.url.lower().startswith(("http:", "https:")):
        return ()
    return (
        configuration.short_form(
            url=model.url,
            model=model.name,
            protocol=model.protocol,
            ca=model.ca,
            allow_plaintext=model.allow_plaintext,
            prices=settings.from_env(PriceSettings, environment, "MODEL_PRICES_").table,
            environment=environment,
        ),
    )
