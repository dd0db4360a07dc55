"""The rows of `replies`: every call of a model, with what was sent, what came back, and what was read in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fishpool import records
from fishpool.models.calls import Answered
from fishpool.referee import Reading
from fishpool.shards import Shard

if TYPE_CHECKING:
    import polars as pl


def reply_rows(player: str, replies: Iterable[tuple[Any, Reading]]) -> Iterator[dict[str, Any]]:
    """One row a reply that a model gave; `replies` are those of a turn, whoever gave them."""
    for answered, reading in replies:
        if not isinstance(answered, Answered):
            continue
        request, reply = answered.request, answered.reply
        yield {
            "run_id": request.run_id,
            "agent": request.agent,
            "player": player,
            "round": request.round,
            "phase": request.phase,
            "attempt": request.attempt,
            "replicate": request.replicate,
            "backend": request.backend,
            "model": request.model,
            "model_digest": request.digest,
            "prompt_sha256": request.prompt_sha256,
            "request_sha256": request.key,
            "request": request.to_json(),
            "reply": reply.text,
            "thinking": reply.thinking or None,
            "finish_reason": reply.finish_reason,
            "reading": reading.verdict.value,
            "fault": reading.fault or None,
            "tokens_in": reply.tokens_in,
            "tokens_out": reply.tokens_out,
            "latency_ms": reply.latency_ms,
            "from_journal": answered.from_journal,
        }


def with_replies(
    shard: Shard, frames: dict[str, pl.DataFrame], rows: Iterable[Mapping[str, Any]] = ()
) -> dict[str, pl.DataFrame]:
    """The frames of some games of a shard, with the table of replies where a model plays in it."""
    if "replies" not in shard.tables:
        return frames
    some = list(rows)
    columns = {name: [row[name] for row in some] for name in records.schema(shard.game, "replies")}
    return {**frames, "replies": records.frame(shard.game, "replies", columns)}
