"""The wire protocol: JSON-RPC messages, one struct per method's params and result, error codes.

Sans-I/O: bytes in, messages out; messages in, bytes out. No socket, no event loop, no clock.
"""
