"""Who answers a model call: one module a sort of server, each with `make(server, endpoint)`, a `calls.Backend`.

A backend sends one request once and says what came of it; it neither tries again nor remembers. Sources: each module
names the documents and measurements of its server.
"""
