"""An event loop that does at once what the SDK gives to threads.

The recording engine answers from memory. Handing each of some hundred registrations to a thread, and waking the loop
when it is done, takes longer than the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class AtOnce(asyncio.SelectorEventLoop):
    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done
