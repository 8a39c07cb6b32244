"""The families of rules behind `stopping` and `suggestion`: text in, decisions out; no torch, no LSP."""
