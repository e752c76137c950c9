"""Finds the tracker of an item of `spec.tracking`."""

from importlib import import_module
from importlib.metadata import entry_points

from trainjob.api.tracking import CustomTracker
from trainjob.api.tracking import Tracker as Settings
from trainjob.errors import UserError
from trainjob.tracking.tracker import Tracker

GROUP = "trainjob.trackers"


def open_tracker(settings: Settings, job_name: str) -> Tracker:
    """A built-in tracker is `open_tracker(settings, job_name)` of the module of its name in this folder; a custom one
    is its entry point, called with the options and the TrainJob's name. Raises UserError if a package is missing."""
    if settings.custom is not None:
        return _custom(settings.custom, job_name)
    name = settings.chosen
    try:
        return import_module(f"trainjob.tracking.{name}").open_tracker(getattr(settings, name), job_name)
    except ModuleNotFoundError as error:
        raise UserError(
            f"the package {error.name} is not installed: pip install 'trainjob[{name}]', or use an image that has it"
        ) from None


def _custom(settings: CustomTracker, job_name: str) -> Tracker:
    installed = entry_points(group=GROUP)
    if settings.name not in installed.names:
        known = ", ".join(sorted(installed.names)) or "none"
        raise UserError(f"no installed package has an entry point {settings.name} in {GROUP} (found: {known})")
    return installed[settings.name].load()(settings.options, job_name)
