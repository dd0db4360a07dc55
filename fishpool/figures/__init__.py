"""A figure is a function from tables to a chart; it computes nothing that its tables do not hold."""
