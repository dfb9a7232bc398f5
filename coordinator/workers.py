"""Work that would hold up the coordinator's loop: done on threads, its results handed back to the loop.

A result is a value or the exception; the callback runs where the owner calls `Done.deliver`, on the loop.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from msgspec import Struct

THREADS: Final = 2

Job = Callable[[], object]
Callback = Callable[[object], None]
Work = Callable[[Job, Callback], None]
"""`work(job, callback)`: run the job elsewhere, later call back with its result or the exception of it."""


class Done(Struct, frozen=True):
    """A job that is over."""

    callback: Callback
    result: object

    def deliver(self) -> None:
        """Tell whoever gave the job."""
        self.callback(self.result)


class Workers:
    """`put` takes each `Done` (a queue's method); it is called on the worker's thread."""

    def __init__(self, put: Callable[[Done], None], threads: int = THREADS) -> None:
        self._put = put
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="worker")

    def __call__(self, job: Job, callback: Callback) -> None:
        """Run the job on a thread."""
        self._pool.submit(self._run, job, callback)

    def close(self) -> None:
        """Let running jobs end, drop those that have not begun."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, job: Job, callback: Callback) -> None:
        result: object
        try:
            result = job()
        except Exception as error:
            result = error
        self._put(Done(callback, result))
