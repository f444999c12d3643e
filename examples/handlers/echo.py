#!/usr/bin/env python3
"""The smallest handler: writes each event's value to the sink as it is.

    leftoff run -t flights -g copy --data ./d --out file:copy.ndjson -- python3 examples/handlers/echo.py

A value that is a JSON object becomes the record; any other text, bytes (as base64) or null becomes {"value": …}.
"""

import json
import sys


def record(event):
    """The event's value as a record."""
    value = event.get("value", event.get("value_base64"))
    try:
        parsed = json.loads(value)
    except (TypeError, ValueError):
        parsed = None
    return parsed if isinstance(parsed, dict) else {"value": value}


for line in iter(sys.stdin.readline, ""):
    message = json.loads(line)
    if message.get("stop"):
        break
    if "id" in message:  # the hello has none
        print(json.dumps({"id": message["id"], "records": [record(message)]}), flush=True)
