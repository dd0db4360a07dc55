"""An oracle says what a document decides about another: a file of decisions, formal rules, or a model (its prompt).

An oracle is no player: it holds no state between rounds, takes no turn and wants nothing, so it has a room of its own.
The contract is `fishpool.games.dictator.Oracle`; the source is section 3.1 of the paper named there.
"""
