"""What can go wrong with a GPU, injected one fault at a time into an engine in miniature."""
