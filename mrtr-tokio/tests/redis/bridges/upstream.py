"""A legacy server on a pipe whose one tool asks, and which writes down what it does: a line for each run, each answer and
each cancellation, to the file that its argument names.

The tool's arguments: `k` names the call, `rounds` is how often it asks, and it ends once the file `hold` is there, if
it is given one."""

import json
import os
import select
import sys

note_file = sys.argv[1]
calls = {}


def note(text):
    with open(note_file, "a", encoding="utf-8") as notes:
        notes.write(text + "\n")


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def ask(call):
    schema = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
    params = {"message": f"{call['k']}/{len(call['values'])}", "requestedSchema": schema}
    say({"id": f"{call['id']}:{len(call['values'])}", "method": "elicitation/create", "params": params})


def begin(message):
    arguments = message["params"]["arguments"]
    token = message["params"].get("_meta", {}).get("progressToken")
    call = {"id": message["id"], "k": arguments["k"], "rounds": arguments["rounds"], "hold": arguments.get("hold"),
            "token": token, "values": []}
    calls[message["id"]] = call
    note(f"run {call['k']}")
    ask(call)


def answered(message):
    call = calls.get(int(str(message["id"]).split(":")[0]))
    if call is None:
        return
    result = message.get("result", {})
    note(f"answer {call['k']}/{len(call['values'])} {result.get('action')}")
    call["values"].append(result.get("content", {}).get("value", "-"))
    if call["token"] is not None:
        progress = {"progressToken": call["token"], "progress": len(call["values"]), "message": "so far"}
        say({"method": "notifications/progress", "params": progress})
    say({"method": "notifications/message", "params": {"level": "warning", "data": f"heard {call['k']}"}})
    if len(call["values"]) < call["rounds"]:
        ask(call)


def finish():
    for number, call in list(calls.items()):
        if len(call["values"]) == call["rounds"] and (call["hold"] is None or os.path.exists(call["hold"])):
            del calls[number]
            text = f"{call['k']}: {', '.join(call['values'])}"
            say({"id": number, "result": {"content": [{"type": "text", "text": text}]}})


def handle(message):
    method = message.get("method")
    if method == "initialize":
        say({"id": message["id"], "result": {"protocolVersion": "2025-11-25",
             "capabilities": {"tools": {}, "logging": {}}, "serverInfo": {"name": "counts", "version": "1"}}})
    elif method == "tools/call":
        begin(message)
    elif method == "notifications/cancelled":
        call = calls.pop(message["params"]["requestId"], None)
        if call is not None:
            note(f"cancelled {call['k']}")
    elif method is None:
        answered(message)
    elif "id" in message:
        say({"id": message["id"], "result": {}})


rest = b""
while True:
    # Whether a file has come nobody tells: it is looked for, as long as there is a call that waits for it.
    ready, _, _ = select.select([0], [], [], 0.01 if calls else None)
    if ready:
        read = os.read(0, 1 << 16)
        if not read:
            break
        *lines, rest = (rest + read).split(b"\n")
        for line in lines:
            handle(json.loads(line))
    finish()
