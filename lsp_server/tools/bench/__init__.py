"""The measurements behind `slipstream bench`: real prompts in, figures out."""
