"""The control API under `/sandbox`: what people do and see, and what a test may change.

The web page uses the same API.
"""
