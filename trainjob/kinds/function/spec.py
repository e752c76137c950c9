"""`spec.model.function`."""

from typing import Annotated, Any, ClassVar

from pydantic import Field

from trainjob.kinds.facts import SCRATCH_RATE, ColumnFields, Facts
from trainjob.kinds.usage import Usage
from trainjob.schema.base import StrictModel

FUNCTION = r"^[A-Za-z_][\pL\pM\pN_.]*:[A-Za-z_][\pL\pM\pN_]*$"


class Function(StrictModel):
    """Your own Ray Train loop, run unmodified on every worker."""

    facts: ClassVar[Facts] = Facts(
        field="function",
        noun="function",
        hub_task=None,
        scores=(),
        needs_dataset=False,
        formats=(),
        columns=ColumnFields(allowed=("text", "label", "cleaning"), required={}),
        metrics={},
        abilities=frozenset(),
        usual_baselines=(),
        is_users_loop=True,
    )

    name: Annotated[str, Field(pattern=FUNCTION)]
    """`module:function`; the module is beside the YAML or installed."""
    config: dict[str, Any] = {}
    """Passed to the function as its only argument."""

    @property
    def description(self) -> str:
        return f"Function {self.name}"

    @property
    def worker_modules(self) -> list[str]:
        return []

    @property
    def library(self) -> None:
        return None

    def usage(self, uri: str) -> Usage:
        return []

    @property
    def usual_learning_rate(self) -> float:
        return SCRATCH_RATE
