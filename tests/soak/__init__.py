"""Long days: windows that come and go at every step, and windows that type; the host must be as it was."""
