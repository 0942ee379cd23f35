"""The official Python client before the proxy: one login a line of input, from the bare URL to tool results.

Prints `{"ask": URL}` where a person would be sent to a browser and reads where the browser came back to, then `{"result": ...}`.
"""

import asyncio
import json
import sys
import time
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

REDIRECT = "http://localhost:33333/callback"


def say(message):
    print(json.dumps(message), flush=True)


class Storage:
    def __init__(self):
        self.tokens = None
        self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


async def log_in(url, mode, document):
    storage = Storage()

    async def redirect(address):
        say({"ask": address})

    async def back():
        line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        answer = parse_qs(urlsplit(line.strip()).query)
        return AuthorizationCodeResult(**{name: values[0] for name, values in answer.items()})

    metadata = OAuthClientMetadata(
        client_name="Python client",
        redirect_uris=[REDIRECT],
        grant_types=["authorization_code", "refresh_token"],
        token_endpoint_auth_method="none",
    )
    provider = OAuthClientProvider(url, metadata, storage, redirect, back, client_metadata_url=document)
    async with httpx2.AsyncClient(auth=provider, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            tools = (await client.list_tools()).tools
            first = await client.call_tool("show_request", {})
            before = storage.tokens
            # As if its time had passed.
            provider.context.token_expiry_time = time.time() - 1
            second = await client.call_tool("show_request", {})
    return {
        "tools": len(tools),
        "errors": [first.is_error, second.is_error],
        "isRenewed": before.access_token != storage.tokens.access_token,
        "scope": storage.tokens.scope,
        "client": str(storage.client.client_id),
    }


def main():
    for line in iter(sys.stdin.readline, ""):
        case = json.loads(line)
        try:
            say({"result": asyncio.run(log_in(case["url"], case["mode"], case.get("document")))})
        except BaseException as error:  # noqa: BLE001 - what went wrong is the answer
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            say({"error": f"{type(error).__name__}: {error}"})


main()
