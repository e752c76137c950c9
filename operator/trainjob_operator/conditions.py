"""A TrainJob's conditions, for `kubectl wait` and for tools that follow the rules of kstatus."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from trainjob.api.trainjob_status import FINAL, Condition, ConditionType
from trainjob_operator.errors import RayJobError
from trainjob_operator.verdict import Verdict

STALLED_REASONS = ("NoStorage", "UnknownNodePool", "NotAllowed", "NameTaken", "SpecTooLarge", "InvalidSpec")
"""Reasons why a TrainJob gets no RayJob until somebody changes something."""


def conditions_of(
    before: Sequence[Condition], verdict: Verdict, error: RayJobError | None, generation: int, now: datetime
) -> list[Condition]:
    """All conditions, each with the time of its last transition. At most one of Reconciling and Stalled is True, as
    kstatus requires."""
    old = {condition.type: condition for condition in before}

    def condition(name: ConditionType, holds: bool, reason: str, message: str = "") -> Condition:
        status: Literal["True", "False"] = "True" if holds else "False"
        same = name in old and old[name].status == status
        return Condition(
            type=name,
            status=status,
            reason=reason,
            message=message[:4096],
            last_transition_time=old[name].last_transition_time if same else now,
            observed_generation=generation,
        )

    accepted = condition("Accepted", error is None, error.reason if error else "Accepted", str(error or ""))
    held: dict[ConditionType, bool] = {
        "Complete": verdict.phase == "Succeeded",
        "Failed": verdict.phase == "Failed",
        "Suspended": verdict.phase == "Suspended",
        "Reconciling": _is_reconciling(verdict),
        "Stalled": _is_stalled(verdict),
    }
    message = verdict.message or f"{verdict.phase}: {verdict.reason}"  # the only part that Helm and Flux show
    others = [
        condition(name, holds, verdict.reason if holds else "Not" + name, message if holds else "")
        for name, holds in held.items()
    ]
    ready = condition("Ready", verdict.phase == "Succeeded", verdict.reason, message)
    return [accepted, *others, ready]


def with_generation(conditions: Sequence[Condition], generation: int) -> list[Condition]:
    """The same conditions for another generation of the spec."""
    return [condition.model_copy(update={"observed_generation": generation}) for condition in conditions]


def _is_stalled(verdict: Verdict) -> bool:
    """Whether the job cannot proceed until somebody changes something."""
    return verdict.phase == "Failed" or (verdict.phase == "Pending" and verdict.reason in STALLED_REASONS)


def _is_reconciling(verdict: Verdict) -> bool:
    """Whether the operator, KubeRay, a queue or the training is at work. A job that its user has suspended is neither
    reconciling nor stalled."""
    is_over = verdict.phase in FINAL or verdict.reason == "Suspended"
    return not is_over and not _is_stalled(verdict)
