"""The commands of the `slipstream` program, one module each; what is heavy is imported when one runs."""
