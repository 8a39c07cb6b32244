"""The target on the CPU: its decoders, and what they are made of."""
