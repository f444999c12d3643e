#!/usr/bin/env python3
"""Writes each event's value, a JSON object, to the sink, with leftoff.py beside it.

    leftoff run -t flights -g copy --data ./d --out file:copy.ndjson --pipeline 100 -- python3 examples/handlers/copy.py
"""

import json

import leftoff


def handle(event):
    print("copying", event["offset"])  # goes to stderr
    return {"records": [json.loads(event["value"])]}


leftoff.run(handle)
