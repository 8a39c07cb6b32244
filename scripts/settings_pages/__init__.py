"""Makes the editors' settings pages and docs/settings.md from the table of settings."""
