"""A handler that lies. What it does with an event is drawn from the seed and the event's id; each lie is told once."""
import hashlib, json, os, signal, sys, time

folder, seed, start = sys.argv[1], sys.argv[2], sys.argv[3]
runner = os.getppid()


def is_runner():
    """Whether the parent is the runner that this handler belongs to: one that has died leaves it to a process of somebody else's."""
    try:
        words = open(f"/proc/{runner}/cmdline", "rb").read().split(b"\0")
    except OSError:
        return False
    return os.getppid() == runner and folder.encode() in words and b"run" in words


def kill_runner():
    if is_runner():
        os.kill(runner, signal.SIGKILL)


if not is_runner():
    sys.exit(0)


def drawn(event_id, what, of):
    digest = hashlib.sha256(f"{seed} {event_id} {what}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % of


def first(name):
    """Whether nobody was here before, on disk before anything is done about it."""
    try:
        os.close(os.open(os.path.join(folder, name), os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


def say(answer):
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def lie(event):
    """Says or does something wrong. Whether a right answer still follows."""
    # Of what cannot be handled there is no right answer.
    kinds = 7 if json.loads(event["value"]).get("bad") else 9
    kind = drawn(event["id"].split("#")[0], "kind", kinds)
    if kind == 0:
        say({"id": event["id"], "error": "not today"})
    elif kind == 1:
        sys.exit(3)
    elif kind == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == 3:
        kill_runner()
        while os.getppid() == runner:
            time.sleep(0.001)
        sys.exit(0)
    elif kind == 4:
        sys.stdout.write("garbage\n")
        sys.stdout.flush()
    elif kind == 5:
        # The next event's id, counted on from this one's.
        place, rest = event["id"].split("#")
        place, offset = place.rsplit("/", 1)
        say({"id": f"{place}/{int(offset) + 1}#{rest}", "records": [{"id": "nobody's"}]})
    elif kind == 6:
        # Until it is killed, or its runner is gone.
        while os.getppid() == runner:
            time.sleep(0.005)
        sys.exit(0)
    elif kind == 7:
        right(event)
    elif kind == 8:
        # A right answer, and then nobody knows whether it was heard.
        right(event)
        kill_runner()
        sys.exit(0)
    return kind in (4, 5, 7)


def right(event):
    value = json.loads(event["value"])
    with open(os.path.join(folder, "handled"), "a") as handled:
        handled.write(f"{start} {event['partition']} {event['offset']} {event['key']}\n")
    say({"id": event["id"], "records": [{"id": value["id"], "n": value["n"]}]})


for line in iter(sys.stdin.readline, ""):
    event = json.loads(line)
    if event.get("stop"):
        break
    if "id" not in event:
        continue
    name = f"{event['partition']}-{event['offset']}"
    if drawn(name, "lie", 100) < 8 and not os.path.exists(os.path.join(folder, "honest")) and first(f"lie-{name}"):
        if not lie(event):
            continue
    if json.loads(event["value"]).get("bad"):
        say({"id": event["id"], "error": "it cannot be handled", "retry": False})
    else:
        right(event)
