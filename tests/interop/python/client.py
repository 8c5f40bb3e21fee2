"""The Python SDK as a client: `client.py [--legacy] http URL | stdio CMD...`; `--legacy` keeps it to the eras with sessions.

Calls `plan`, answers what it knows, and exits with 0 only on the right text after exactly two questions.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import ElicitResult

asked: list[str] = []


async def answer(_context, params) -> ElicitResult:
    """The pace is told only to a server that has understood the first answer."""
    properties = params.requested_schema.get("properties", {})
    if "days" in properties:
        asked.append("days")
        return ElicitResult(action="accept", content={"days": 3})
    if "pace" in properties:
        asked.append("pace")
        if "3" in params.message:
            return ElicitResult(action="accept", content={"pace": "slow"})
    else:
        asked.append("unknown")
    return ElicitResult(action="decline")


async def main() -> int:
    arguments, mode = sys.argv[1:], "auto"
    if arguments[:1] == ["--legacy"]:
        arguments, mode = arguments[1:], "legacy"
    match arguments:
        case ["http", url]:
            target = url
        case ["stdio", command, *rest]:
            target = stdio_client(StdioServerParameters(command=command, args=rest))
        case _:
            sys.exit("usage: client.py [--legacy] http URL | stdio CMD...")
    async with Client(target, mode=mode, elicitation_callback=answer) as client:
        result = await client.call_tool("plan", {"city": "Lisbon"})
        text = result.content[0].text if result.content else None
        print(json.dumps({"text": text, "questions": asked, "version": client.protocol_version}))
    return 0 if text == "Lisbon, 3 days, slow" and asked == ["days", "pace"] else 1


sys.exit(asyncio.run(main()))
