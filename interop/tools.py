"""Starts a command for each case as an MCP client does, and prints what did not go as it should, as JSON."""

import asyncio
import importlib.metadata
import json
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters


async def one(case):
    server = StdioServerParameters(command=case["command"], args=case["args"])
    async with Client(server, mode=case["mode"], read_timeout_seconds=60) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        if "show_request" not in tools:
            return "lists no tools"
        shown = await client.call_tool("show_request", {})
        if not shown.content[0].text.startswith("POST /"):
            return "calls no tool"
        progress = []

        async def on_progress(value, total, message):
            progress.append(value)

        await client.call_tool("stream_progress", {"steps": 4, "intervalMs": 20}, progress_callback=on_progress)
        if progress != [1, 2, 3, 4]:
            return f"gets progress {progress}"
        large = await client.call_tool("large_result", {"bytes": 1048576})
        if len(large.content[0].text) != 1048576:
            return "gets no large result"
    return None


async def main():
    wrong = []
    for case in json.load(sys.stdin):
        try:
            said = await asyncio.wait_for(one(case), 90)
        except Exception as error:  # what it is matters to whoever reads the line
            said = f"fails: {type(error).__name__}"
        if said is not None:
            wrong.append(f"{case['name']} {said}")
    print(json.dumps({"version": importlib.metadata.version("mcp"), "wrong": wrong}))


asyncio.run(main())
