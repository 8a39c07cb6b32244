"""Drafters propose the next tokens; the target model verifies them."""
