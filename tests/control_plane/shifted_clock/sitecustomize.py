"""Python runs this at its start where PYTHONPATH names this folder: its clock is off by CLOCK_SHIFT_SECONDS."""

import datetime
import os
import time

SHIFT = float(os.environ["CLOCK_SHIFT_SECONDS"])

_time, _datetime = time.time, datetime.datetime


class ShiftedDatetime(_datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> "ShiftedDatetime":
        return cls.fromtimestamp(_time() + SHIFT, tz)


time.time = lambda: _time() + SHIFT
datetime.datetime = ShiftedDatetime
