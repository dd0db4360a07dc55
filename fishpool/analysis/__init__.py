"""What SQL cannot say: bootstrap intervals, rankings, mixtures, equilibria. Arrays in, arrays out; no files here."""
