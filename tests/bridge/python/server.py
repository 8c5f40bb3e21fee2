"""The Python SDK 1.x as a server that asks in the middle of a call: `server.py stdio | http`.

`http` listens on a free loopback port and prints the URL.
"""

import socket
import sys

import uvicorn
from mcp.server.fastmcp import Context, FastMCP
from mcp.types import SamplingMessage, TextContent
from pydantic import BaseModel

server = FastMCP("python-1-peer")


class Days(BaseModel):
    days: int


class Pace(BaseModel):
    pace: str


@server.tool()
async def plan(city: str, ctx: Context) -> str:
    """Plans a trip, asking twice."""
    days = await ctx.elicit(message=f"How many days in {city}?", schema=Days)
    if days.action != "accept":
        return f"no trip: {days.action}"
    await ctx.report_progress(1, 2)
    await ctx.info("days are known")
    pace = await ctx.elicit(message=f"At which pace do you want to spend {days.data.days} days?", schema=Pace)
    if pace.action != "accept":
        return f"no pace: {pace.action}"
    return f"{city}, {days.data.days} days, {pace.data.pace}"


@server.tool()
async def summarize(text: str, ctx: Context) -> str:
    """Asks the client's model."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    result = await ctx.session.create_message(messages=[message], max_tokens=10)
    return result.content.text


@server.tool()
async def folders(ctx: Context) -> list[str]:
    """Asks for the client's roots."""
    return [str(root.uri) for root in (await ctx.session.list_roots()).roots]


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("on purpose")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def main() -> None:
    match sys.argv[1:]:
        case ["stdio"]:
            server.run("stdio")
        case ["http"]:
            listener = socket.create_server(("127.0.0.1", 0))
            print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
            uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run(sockets=[listener])
        case _:
            sys.exit("usage: server.py stdio | http")


if __name__ == "__main__":
    main()
