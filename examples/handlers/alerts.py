#!/usr/bin/env python3
"""A handler: one alert for each earthquake of magnitude 1 or more.

    leftoff run -t quakes -g alerts --data ./d --out file:alerts.ndjson -- python3 examples/handlers/alerts.py

Leftoff starts this program and keeps it alive. It writes one JSON object a line to our standard input; we answer each event
with one line on standard output. The offset is saved only after the answer, so wherever this program is stopped, the next one
gets the first event that was not answered.
"""

import json
import sys


def handle(event):
    """What we answer for one event."""
    quake = json.loads(event["value"])
    magnitude = quake.get("mag")
    if magnitude is None or magnitude < 1:
        return {"filtered": True}  # handled on purpose without effect
    return {"records": [{"id": quake["id"], "place": quake["place"], "mag": magnitude}]}


def main():
    # readline, not a loop that reads ahead: each event is answered before the next one is asked for.
    for line in iter(sys.stdin.readline, ""):
        message = json.loads(line)
        if "leftoff" in message:
            continue  # the hello, with the topic and the group; it needs no answer
        if message.get("stop"):
            break  # no more events
        try:
            answer = handle(message)
        except (KeyError, TypeError, ValueError) as error:
            # The same event would fail again: do not try it a second time.
            answer = {"error": f"{type(error).__name__}: {error}", "retry": False}
        # The id says which event is answered. Without the flush the answer would stay in our buffer.
        print(json.dumps({"id": message["id"], **answer}), flush=True)


if __name__ == "__main__":
    main()
