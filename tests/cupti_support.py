"""CUPTI, made up: who subscribes gets the calls that a test makes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from consan.backends import callbacks


class Cupti:
    """The library. `context`: that in which calls are made."""

    context = 0x55

    def __init__(self, status: int = 0, names: tuple[str, ...] = ()) -> None:
        self.status, self.names, self.enabled = status, names, set[str]()
        self.callback: Callable[..., None] | None = None
        self.unsubscribed = False

    def cuptiSubscribe(self, subscriber: Any, callback: Any, user: Any) -> int:
        self.callback, self.user = callback, user
        return self.status

    def cuptiGetCallbackName(self, domain: int, number: int, found: Any) -> int:
        if number > len(self.names):
            return 1
        found._obj.value = self.names[number - 1].encode()
        return 0

    def cuptiEnableCallback(self, on: int, subscriber: Any, domain: int, number: int) -> int:
        self.enabled.add(self.names[number - 1])
        return 0

    def cuptiUnsubscribe(self, subscriber: Any) -> int:
        self.unsubscribed = True
        return 0

    def called(self, name: str, *words: int, site: int = 1, status: int = 0) -> None:
        """The driver has been called."""
        params, result = (ctypes.c_uint64 * len(words))(*words), ctypes.c_int(status)
        data = callbacks.CallbackData(site, b"", ctypes.addressof(params), ctypes.pointer(result), b"", self.context)
        assert self.callback is not None
        self.callback(self.user, 1, self.names.index(name) + 1, ctypes.byref(data))
