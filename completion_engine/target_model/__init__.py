"""The model that verifies: its files, caches and costs, and the proof that rows leave each other alone."""
