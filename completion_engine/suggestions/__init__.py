"""The families of rules of `stopping` and `suggestion`: text in, decisions out; no torch, no LSP."""
