"""The report: one page that a reviewer can open offline, from the finished database and the figures' specifications."""
