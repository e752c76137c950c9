"""`tracking.json`: the run in each experiment tracker, and how much of it is written there."""

from pydantic import TypeAdapter

from trainjob.runs.files import TRACKING
from trainjob.runs.refusals import refuse_damaged
from trainjob.schema.base import StrictModel
from trainjob.storage import Folder


class Tracked(StrictModel):
    """One run, or one trial of a search, in one tracker."""

    key: str
    """Random; kept before the tracker's run is created, so that an interruption between the two makes no second one."""
    id: str = ""
    """The tracker's id of the run; empty before it is created."""
    url: str = ""
    """Address of the run's page."""
    records: int = 0
    """Number of records that are written."""
    last: float = 0.0
    """Time of the last of them."""
    ended: str = ""
    """The state that the run ended with in the tracker; empty until all results are written."""
    trials: "dict[int, Tracked]" = {}
    """The trials of a search, by number."""


_FILE = TypeAdapter(dict[str, Tracked])


def read_tracked(run: Folder) -> dict[str, Tracked]:
    """The records of each tracker, by its name. Raises UserError for a damaged file."""
    if not run.exists(TRACKING):
        return {}
    with refuse_damaged(run, TRACKING):
        return _FILE.validate_json(run.read(TRACKING))


def write_tracked(run: Folder, tracked: dict[str, Tracked]) -> None:
    run.write(TRACKING, _FILE.dump_json(tracked, indent=1))
