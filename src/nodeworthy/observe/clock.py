"""The real clock: the one place that reads time and sleeps."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """The port `Clock` on this machine's clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
