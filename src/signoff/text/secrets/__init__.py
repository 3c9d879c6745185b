"""Finds secrets in text and arguments, and masks them."""
