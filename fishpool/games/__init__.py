"""Pure rules: a state and the agents' actions give the next state; no clock, no file, no network in this room."""
