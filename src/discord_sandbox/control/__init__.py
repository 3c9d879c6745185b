"""The control API under `/sandbox`: what people do and see, and the levers that tests pull.

The web page uses the same API.
"""
