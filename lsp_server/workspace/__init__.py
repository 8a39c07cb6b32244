"""The state of one editor: documents, folders, settings and indexes."""
