"""Scores that are estimates with intervals, field by field."""

from typing import ClassVar

from trainjob.evaluation.estimates import Estimate, ScoreEstimates
from trainjob.evaluation.scores.base import Measure, Scores
from trainjob.formatting import count, score


class EstimatedScores(Scores):
    """The scores of a set of rows. A subclass has the fields of its `ScoreEstimates`, the first of `compared_types`."""

    hub_types: ClassVar[tuple[str, ...]]
    """The names of the estimates on the Hugging Face hub, in their order."""
    unit: ClassVar[str] = "rows"
    """The plural noun for a row."""

    rows: int

    def _named(self) -> dict[str, Estimate | None]:
        """The estimates by field; None for those that are not defined on these rows."""
        return {name: getattr(self, name) for name in self.compared_types()[0].model_fields}

    @property
    def estimates(self) -> ScoreEstimates:
        return self.compared_types()[0](**self._named())

    def as_metrics(self, set_name: str) -> dict[str, float]:
        values = {f"{set_name}_{name}": each.value for name, each in self._named().items() if each}
        return {f"{set_name}_loss": self.loss, **values}

    def size(self) -> tuple[str, int]:
        return self.unit, self.rows

    def measures(self) -> list[Measure]:
        found = zip(self.hub_types, self.estimates.headings, self._named().values(), strict=True)
        return [Measure(hub_type, name, each.value) for hub_type, name, each in found if each]

    def tiles(self) -> list[tuple[str, str]]:
        return [(each.name, score(each.value)) for each in self.measures()]

    def in_brief(self) -> str:
        return f"{'   '.join(f'{name} {value}' for name, value in self.tiles())}   {count(self.rows)} {self.unit}"

    def headline(self) -> str:
        return f"{count(self.rows)} {self.unit}: {self._cells()}"

    def _cells(self) -> str:
        """The estimates in words."""
        shown = zip(self.estimates.headings, self.estimates.cells(), strict=True)
        return ", ".join(f"{name} {cell}" for name, cell in shown)
