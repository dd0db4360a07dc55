"""What can go wrong with a model call, in the three kinds that are treated differently.

A `TransportFault` is tried again and is never charged to a player; a `Stop` ends the whole job with its sentence, since
no further call could do better; an `Exhausted` is what a caller sees when the trying again came to an end.
"""

from __future__ import annotations


class TransportFault(Exception):
    """Worth another try: connection, timeout, 408, 429, 5xx, busy. `retry_after` is what the server asked for, in s."""

    def __init__(self, sentence: str, retry_after: float | None = None, *, unreachable: bool = False):
        super().__init__(sentence)
        self.retry_after = retry_after
        self.unreachable = unreachable  # nothing answered at all


class Stop(Exception):
    """Nothing that another try would change: 400, 401, 404, a prompt over the context, a miss while offline."""


class Exhausted(Exception):
    """All tries of one call failed while the server was there: the run is void."""
