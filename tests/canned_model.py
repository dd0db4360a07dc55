"""A model whose replies are given, for tests of what is done with replies: everything but the server is the real thing.

`canned(monkeypatch, replies)` puts it in the place of `fishpool.players.model`; the records then come from the real
referee, reader and runners.
"""

import json
import sys
from types import ModuleType

from fishpool import referee
from fishpool.models.calls import Answered, Reply, Request
from fishpool.models.reader import read_reply

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title=1\">{{ 7*7 }} & \u202e"
DIGEST = "0" * 64


def canned(monkeypatch, reply_to):
    """`reply_to(view)` gives the text of a reply; a repair request has the fault under `error`."""

    class Kind:
        def __init__(self, shard, site, players):
            self.players = players
            self.games_at_once = 1

        async def open(self):
            pass

        async def close(self):
            pass

        def seat(self, player, seat):
            return CannedPlayer(player.name, seat, reply_to)

        def versions(self):
            return {
                player.name: {"name": "canned", "digest": DIGEST, "backend": "ollama", "prompts": {"choose": "1" * 64}}
                for player in self.players
            }

    module = ModuleType("fishpool.players.model")
    module.Kind = Kind
    monkeypatch.setitem(sys.modules, "fishpool.players.model", module)


class CannedPlayer(referee.Player):
    repairs = 1
    keeps_time = True

    def __init__(self, name, seat, reply_to):
        self.name, self.seat, self.reply_to = name, seat, reply_to

    async def act(self, view):
        request = Request(
            backend="ollama",
            model="canned",
            digest=DIGEST,
            messages=(
                {"role": "system", "content": f"You play a game. {HOSTILE}"},
                {"role": "user", "content": json.dumps({key: view[key] for key in ("round", "error") if key in view})},
            ),
            schema=None,
            options={"seed": 1},
            thinking=None,
            run_id=self.seat.run_id,
            agent=self.seat.agent,
            round=view["round"],
            phase=view.get("phase", "choose"),
            attempt=2 if view.get("error") else 1,
        )
        return Answered(request, Reply(self.reply_to(view), "", "stop", 100, 10, 250.0), from_journal=False)

    def read(self, reply, legal):
        return read_reply(reply.reply, legal)

    def seconds(self, reply):
        return reply.reply.latency_ms / 1000
