"""The local arena: agents in any language meet at the prisoner's dilemma over HTTP and WebSocket.

`matches` decides, `store` keeps, `edges` speaks HTTP and WebSocket, `server` runs it all, `results` writes the records.
The rules are those of `fishpool.games.prisoners_dilemma`; the calls are described in docs/arena.md.
"""
