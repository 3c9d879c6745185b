"""Run with python3 -m unittest. The test of the health check fails until somebody adds one."""

from __future__ import annotations

import unittest

from server import respond


class ServerTest(unittest.TestCase):
    def test_the_first_page_says_hello(self) -> None:
        self.assertEqual(respond("/"), (200, "hello"))  # noqa: PT009 - the example has no pytest

    def test_the_health_check_says_ok(self) -> None:
        self.assertEqual(respond("/health"), (200, "ok"))  # noqa: PT009 - the example has no pytest


if __name__ == "__main__":
    unittest.main()
