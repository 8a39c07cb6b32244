"""Text to tokens and back: the tokenizer, the prompt, the text being written."""
