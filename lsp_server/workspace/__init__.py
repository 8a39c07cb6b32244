"""What the server knows of an editor: documents, folders, settings, indexes."""
