"""The shop of shop_tools as an MCP server over HTTP, made with the protocol's own library.

Usage: `python shop_server.py LEDGER PORT`
"""

from __future__ import annotations

import sys

import shop_tools
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("shop")
server.tool(annotations=ToolAnnotations(read_only_hint=True))(shop_tools.list_orders)
server.tool()(shop_tools.refund)

if __name__ == "__main__":
    server.run("streamable-http", port=int(sys.argv[2]))
