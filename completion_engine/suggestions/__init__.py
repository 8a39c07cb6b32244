"""Rules for suggestions: where generated text ends, and how it fits the text around the cursor."""
