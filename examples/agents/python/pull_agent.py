#!/usr/bin/env python3
"""A caprouter agent in Python that pulls its tasks. README.md has the commands.

It needs the standard library only: the router need not reach it, so there is no server,
and there are no tokens to verify.
"""

import json
import os
import signal
import threading
import urllib.error
import urllib.request

AGENT_ID = "word_counter"  # the key of the grant
ROUTER = os.environ.get("ROUTER_URL", "http://127.0.0.1:8080").rstrip("/")
TOKEN_FILE = os.environ.get("TOKEN_FILE")  # None = the router needs no token
AGENT = ROUTER + "/api/v1/agents/" + AGENT_ID
INSTANCE = "python-%d" % os.getpid()
WAIT_S = 5  # for the next task; a shutdown takes as long at most


def execute(task):
    """The work of the agent: returns the data of the result."""
    return {"answer": "%d words" % len(task["inputs"]["prompt"].split())}


def call(method, url, body=None, token=None):
    """Returns the status and the decoded reply of the router; the status is 0 if it does not respond."""
    request = urllib.request.Request(url, method=method)
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    try:
        if token is None and TOKEN_FILE:  # read for each request, because it may be rotated
            with open(TOKEN_FILE, encoding="ascii") as f:
                token = f.read().strip()
        if token:
            request.add_header("Authorization", "Bearer " + token)
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S + 10) as response:
                return response.status, json.loads(response.read() or "{}")
        except urllib.error.HTTPError as e:
            return e.code, {"problem": e.read(4096).decode(errors="replace")}
    except (OSError, ValueError) as e:
        return 0, {"problem": str(e)}


def keep_registered(stop):
    """Registers the agent, and again if the router does not know it any more. Sends heartbeats."""
    status, pause = 404, 1
    while not stop.is_set():
        if status == 404:
            status, reply = call("PUT", AGENT, {
                "instance": INSTANCE,
                "match": {"intent": ["count_words"], "domains": ["text"]},
                "examples": {"count_words": ["how many words are in this text"]},
                "endpoint": {"protocol": "pull"},
            })
            print("registration", status, reply, flush=True)
            # 409: the registry file declares the agent, which then pulls its tasks without a registration.
            pause = 30 if status == 409 else 1
            if status not in (200, 201):
                status = 404  # try again
        else:
            status, reply = call("POST", AGENT + "/heartbeat", {"instance": INSTANCE})
        stop.wait(reply.get("heartbeat_s", pause))


def renew_lease(callback, done):
    """Renews the lease of a task until the work is done."""
    while not done.wait(10):
        call("POST", callback["url"].removesuffix("/result") + "/heartbeat", token=callback["token"])


def work(task):
    """Executes a task, and posts the result until the router accepts or rejects it."""
    callback, done = task["callback"], threading.Event()
    threading.Thread(target=renew_lease, args=(callback, done), daemon=True).start()
    try:
        result = {"task_id": task["task_id"], "status": "success", "data": execute(task)}
    except Exception as e:  # the details are for the log only
        print("task failed:", repr(e), flush=True)
        result = {"task_id": task["task_id"], "status": "failure", "explanations": ["the agent failed"]}
    done.set()
    for pause in (0.5, 1, 2, 4, 8):
        status, reply = call("POST", callback["url"], result, callback["token"])
        if status not in (0, 429) and status < 500:
            break
        threading.Event().wait(pause)
    print("result", status, reply, flush=True)


def main():
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    threading.Thread(target=keep_registered, args=(stop,), daemon=True).start()
    while not stop.is_set():
        status, leased = call("POST", AGENT + "/lease", {"instance": INSTANCE, "wait_s": WAIT_S})
        if status == 200:
            work(leased["task"])
        elif status != 204:  # 404 = not registered yet
            stop.wait(0.5)
    call("DELETE", AGENT + "?instance=" + INSTANCE)


if __name__ == "__main__":
    main()
