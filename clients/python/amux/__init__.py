"""A client of amux: run coding agents, follow what they do, answer what they ask."""

from . import api, events
from .client import Client, Result, Run, RunInfo
from .errors import AmuxError
from .http import HTTPTransport
from .process import ProcessTransport, find_program
from .transport import Channel, RunSpec, Transport

__all__ = [
    "AmuxError",
    "Channel",
    "Client",
    "HTTPTransport",
    "ProcessTransport",
    "Result",
    "Run",
    "RunInfo",
    "RunSpec",
    "Transport",
    "api",
    "events",
    "find_program",
]
