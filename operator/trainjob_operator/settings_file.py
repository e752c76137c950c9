"""Watches the settings file for changes while the operator runs."""

import asyncio
import logging
from pathlib import Path

from trainjob.errors import UserError
from trainjob_operator.metrics import SETTINGS_REFUSED
from trainjob_operator.settings import Settings, load_settings

CHECK_SECONDS = 5.0

logger = logging.getLogger("trainjob.operator")


async def wait_for_new_settings(path: Path, current: Settings) -> None:
    """Returns once the file contains valid settings other than `current`. While they are invalid, a metric is 1 and the
    log names each problem once."""
    logged = ""
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        problem = ""
        try:
            if await asyncio.to_thread(load_settings, path) != current:
                return
        except UserError as error:
            problem = str(error)
        SETTINGS_REFUSED.set(bool(problem))
        if problem and problem != logged:
            logger.error("the changed settings are invalid; the earlier ones stay in force: %s", problem)
        logged = problem
