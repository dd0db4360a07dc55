"""From a shard to records: pairing, playing (in columns or through the referee) and writing down, one module a game."""
