"""An MCP server of the official SDK whose tools return what was parsed of their call; prints its URL as JSON."""

import json
import socket

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server


async def list_tools(ctx, params):
    names = ["get_a", "get_b", "delete_a"]
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in names])


async def call_tool(ctx, params):
    parsed = json.dumps({"name": params.name, "arguments": params.arguments})
    return types.CallToolResult(content=[types.TextContent(type="text", text=parsed)])


listening = socket.create_server(("127.0.0.1", 0))
app = Server("echo", on_list_tools=list_tools, on_call_tool=call_tool).streamable_http_app(stateless_http=True)
print(json.dumps({"url": f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"}), flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])
