"""What a handler in Python needs, in a few lines: copy this file beside yours.

    import leftoff
    leftoff.run(lambda event: {"records": [event["value"]]})

`run` calls the function with each event, a dict, and answers with what it returns: None (handled), or a dict with "records",
with "filtered", or with "error" and perhaps "retry". An exception is an error, with its traceback on stderr. It works with
--pipeline and --protocol-fd as it is; what is printed goes to stderr either way.
"""

import json
import os
import sys
import traceback


def run(handle):
    fd = os.environ.get("LEFTOFF_FD")
    answers = os.fdopen(int(fd) if fd else os.dup(1), "wb")
    # A print must not get among the answers, not even one of a library.
    os.dup2(2, 1)
    rest = b""
    # All that is there is read at once and answered at once: with --pipeline that is many events for one system call.
    while chunk := os.read(0, 1 << 16):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "id" in message:  # the hello has none
                answer = {"id": message["id"], **_answer(handle, message)}
                answers.write(json.dumps(answer).encode() + b"\n")
            elif message.get("stop"):
                return answers.close()
        answers.flush()


def _answer(handle, event):
    try:
        return handle(event) or {}
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        return {"error": f"{type(error).__name__}: {error}"}
