# SPDX-License-Identifier: Apache-2.0
"""The MCP server of OpenSandbox against a server: its tools, and a sandbox made, used and killed by them.

usage: mcp_client.py HOST:PORT IMAGE, with opensandbox-mcp beside this interpreter
"""
import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def value(result):
    assert not getattr(result, 'is_error', None) and not getattr(result, 'isError', None), result
    return json.loads(result.content[0].text)


async def main(domain, image):
    program = os.path.join(os.path.dirname(sys.executable), 'opensandbox-mcp')
    server = StdioServerParameters(command=program, args=['--domain', domain, '--transport', 'stdio'])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = {t.name for t in (await session.list_tools()).tools}
        assert {'sandbox_create', 'sandbox_kill', 'command_run', 'file_read'} <= tools, tools
        made = value(await session.call_tool('sandbox_create', {'image': image, 'entrypoint': ['sleep', '1000']}))
        sandbox_id = made.get('sandbox_id') or made.get('id') or made['info']['id']
        ran = value(await session.call_tool('command_run', {'sandbox_id': sandbox_id, 'command': 'echo from-mcp'}))
        assert 'from-mcp' in json.dumps(ran), ran
        await session.call_tool('sandbox_kill', {'sandbox_id': sandbox_id})


asyncio.run(main(sys.argv[1], sys.argv[2]))
