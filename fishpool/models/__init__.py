"""Language models: what a call is, who answers it, the journal that keeps every reply, and how a reply is read."""
