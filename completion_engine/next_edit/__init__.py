"""The next edit: repeat a recent edit where it belongs, if the target agrees."""
