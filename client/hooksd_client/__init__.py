"""The client library of hooksd: standard library only, Python 3.9 and later."""

__version__ = "0.1.0"
