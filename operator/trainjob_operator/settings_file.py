"""The file of the settings, which may change while the operator runs."""

import asyncio
import logging
from pathlib import Path

from trainjob.errors import UserError
from trainjob_operator.metrics import SETTINGS_REFUSED
from trainjob_operator.settings import Settings, load_settings

CHECK_SECONDS = 5.0

logger = logging.getLogger("trainjob.operator")


async def await_other_settings(path: Path, current: Settings) -> None:
    """Returns once the file holds other valid settings than `current`. As long as it holds invalid ones, a metric says
    so; the log says once what is wrong."""
    told = ""
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        problem = ""
        try:
            if await asyncio.to_thread(load_settings, path) != current:
                return
        except UserError as error:
            problem = str(error)
        SETTINGS_REFUSED.set(bool(problem))
        if problem and problem != told:
            logger.error("the settings have changed and cannot be used; the earlier ones still hold: %s", problem)
        told = problem
