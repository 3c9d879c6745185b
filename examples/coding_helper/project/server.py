"""A small web server that needs nothing but Python."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, HTTPServer


def respond(path: str) -> tuple[int, str]:
    """Return the status and the text for a path."""
    if path == "/":
        return 200, "hello"
    return 404, "not found"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, text = respond(self.path)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
