"""Two clients that show results as they came: one of a legacy server on a pipe, one of a modern server over HTTP."""

import itertools
import json
import subprocess
import urllib.error
import urllib.request

INFO = {"name": "raw", "version": "0"}
CAN = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
MODERN = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"


def value(schema: dict):
    """Something that fits."""
    if "default" in schema:
        return schema["default"]
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "oneOf" in schema:
        return schema["oneOf"][0]["const"]
    if schema.get("type") == "array":
        items = schema["items"]
        first = items["enum"][0] if "enum" in items else items["anyOf"][0]["const"]
        return [first] * schema.get("minItems", 1)
    texts = {"email": "a@example.com", "uri": "https://example.com", "date": "2026-11-30", "date-time": "2026-11-30T00:00:00Z"}
    number = schema.get("minimum", 1)
    return {"string": texts.get(schema.get("format"), "text"), "integer": number, "number": number, "boolean": True}[schema["type"]]


def answer(method: str, params: dict) -> dict:
    """Says yes to everything, the same every time."""
    if method == "sampling/createMessage":
        return {"role": "assistant", "content": {"type": "text", "text": "a model's words"}, "model": "m", "stopReason": "endTurn"}
    if method == "roots/list":
        return {"roots": [{"uri": "file:///srv", "name": "srv"}]}
    if params.get("mode") == "url":
        return {"action": "accept"}
    return {"action": "accept", "content": {name: value(schema) for name, schema in params["requestedSchema"]["properties"].items()}}


class Legacy:
    """A legacy server that this starts."""

    def __init__(self, command: list, log):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
        self.ids = itertools.count()
        self.asked = []
        self.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": CAN, "clientInfo": INFO})
        self._send({"method": "notifications/initialized"})

    def _send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict) -> dict:
        """The outcome: a response without its id."""
        number = next(self.ids)
        self._send({"id": number, "method": method, "params": params})
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" not in message and message.get("id") == number:
                return {name: message[name] for name in ("result", "error") if name in message}
            if "method" in message and "id" in message:
                self.asked.append(message["method"])
                self._send({"id": message["id"], "result": answer(message["method"], message.get("params", {}))})
        raise EOFError(method)


class Modern:
    """A modern server at a url."""

    def __init__(self, url: str, can: dict = CAN):
        self.url, self.can, self.ids, self.asked, self.rounds = url, can, itertools.count(1), [], 0

    def request(self, method: str, params: dict) -> dict:
        more = {}
        while True:
            outcome = self.once(method, {**params, **more})
            result = outcome.get("result", {})
            if result.get("resultType") != "input_required":
                return outcome
            self.rounds += 1
            asks = result.get("inputRequests", {})
            self.asked += [ask["method"] for ask in asks.values()]
            more = {"inputResponses": {key: answer(ask["method"], ask.get("params", {})) for key, ask in asks.items()}}
            if "requestState" in result:
                more["requestState"] = result["requestState"]

    def once(self, method: str, params: dict) -> dict:
        """One round."""
        number = next(self.ids)
        meta = {PREFIX + "protocolVersion": MODERN, PREFIX + "clientCapabilities": self.can, PREFIX + "clientInfo": INFO}
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        name = params.get("name") or params.get("uri")
        if name:
            headers["Mcp-Name"] = name
        request = urllib.request.Request(self.url, json.dumps(body).encode(), headers)
        try:
            response = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            if response.headers.get_content_type() == "text/event-stream":
                for line in response:
                    if line.startswith(b"data: "):
                        message = json.loads(line[6:])
                        if message.get("id") == number and "method" not in message:
                            break
            else:
                message = json.load(response)
        return {name: message[name] for name in ("result", "error") if name in message}


def plain(outcome: dict) -> dict:
    """An outcome without what one era says and the other has no words for."""
    outcome = json.loads(json.dumps(outcome))
    result = outcome.get("result", {})
    for name in ("resultType", "ttlMs", "cacheScope"):
        result.pop(name, None)
    meta = result.get("_meta", {})
    meta.pop(PREFIX + "serverInfo", None)
    if "_meta" in result and not meta:
        del result["_meta"]
    return outcome
