"""The heart of Signoff: which calls ask, who decides, and how each decision is taken once.

Plain Python, without a framework or I/O.
"""
