"""Find secrets in text and arguments, and mask them."""
