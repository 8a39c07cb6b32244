"""The editor's state: documents, folders, settings, indexes."""
