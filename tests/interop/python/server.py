"""The Python SDK as a server: `server.py http | stdio`.

Tool `plan` asks for the days, then, naming them, for the pace. `http` listens on a free loopback port and prints the URL.
"""

import json
import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

server = MCPServer("python-peer")


def ask(key: str, message: str, schema: dict, trip: dict) -> InputRequiredResult:
    """One question, and what must come back with its answer; the SDK seals the state."""
    form = ElicitRequestFormParams(
        message=message,
        requested_schema={"type": "object", "properties": {key: schema}, "required": [key]},
    )
    return InputRequiredResult(input_requests={key: ElicitRequest(params=form)}, request_state=json.dumps(trip))


@server.tool()
async def plan(city: str, ctx: Context) -> str | InputRequiredResult:
    """Plans a trip, asking twice."""
    trip = json.loads(ctx.request_state) if ctx.request_state else {"city": city}
    answers = ctx.input_responses or {}
    answered = {}
    for key in ("days", "pace"):
        result = answers.get(key)
        if result is not None and result.action == "accept":
            answered[key] = (result.content or {}).get(key)
    trip.setdefault("days", answered.get("days"))
    if trip["days"] is None:
        return ask("days", f"How many days in {trip['city']}?", {"type": "integer"}, {"city": trip["city"]})
    if answered.get("pace") is None:
        message = f"At which pace do you want to spend {trip['days']} days?"
        return ask("pace", message, {"type": "string", "enum": ["slow", "fast"]}, trip)
    return f"{trip['city']}, {trip['days']} days, {answered['pace']}"


def main() -> None:
    match sys.argv[1:]:
        case ["stdio"]:
            server.run("stdio")
        case ["http"]:
            listener = socket.create_server(("127.0.0.1", 0))
            print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
            app = server.streamable_http_app()
            uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
        case _:
            sys.exit("usage: server.py http | stdio")


if __name__ == "__main__":
    main()
