#!/usr/bin/env python3
"""A caprouter agent in Python that registers itself. README.md has the commands.

It needs PyJWT and cryptography; everything else is in the standard library.
"""

import json
import os
import random
import signal
import socket
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt

AGENT_ID = "word_counter"  # the key of the grant
ROUTER = os.environ.get("ROUTER_URL", "http://127.0.0.1:8080").rstrip("/")
ISSUER = "caprouter"  # auth.issuer of the router
TOKEN_FILE = os.environ.get("TOKEN_FILE")  # None = the router needs no token
PORT = int(os.environ.get("PORT", "9101"))  # 0 = any free port
INSTANCE = "python-%s-%d" % ("".join(c if c.isalnum() else "-" for c in socket.gethostname().lower())[:40], os.getpid())
MAX_BODY = 2 << 20


def execute(task):
    """The work of the agent: returns the data of the result."""
    return {"answer": "%d words" % len(task["inputs"]["prompt"].split())}


# Verification: the router signs a token for each task (docs/agents.md, "Verifying a token").

keys = jwt.PyJWKClient(ROUTER + "/.well-known/jwks.json")  # cached for 5 minutes
ALGORITHMS = {"OKP": "EdDSA", "EC": "ES256"}  # by the type of the router's key, never chosen by the token
FORBIDDEN = {"crit", "jku", "jwk", "x5u", "x5c", "b64", "zip"}


def verify(token):
    """Returns the claims, or raises jwt.PyJWTError."""
    header = jwt.get_unverified_header(token)
    if header.get("typ") != "at+jwt" or not header.get("kid") or FORBIDDEN & header.keys():
        raise jwt.InvalidTokenError("the header is not that of a task's token")
    key = keys.get_signing_key(header["kid"])
    if key.key_type not in ALGORITHMS:
        raise jwt.InvalidTokenError("the key has an unknown type")
    claims = jwt.decode(
        token, key.key, algorithms=[ALGORITHMS[key.key_type]], audience=AGENT_ID, issuer=ISSUER,
        options={"require": ["iss", "aud", "sub", "exp", "iat", "jti"]},
    )
    if "task:execute" not in claims.get("scope", "").split(" "):
        raise jwt.InvalidTokenError("the scope is not task:execute")
    return claims


class Handler(BaseHTTPRequestHandler):
    timeout = 10  # for a client that sends nothing

    def do_GET(self):
        if self.path == "/healthz":
            self.reply(200, {"status": "ok"})
        else:
            self.problem(404, "Not Found")

    def do_POST(self):
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        try:
            if scheme.lower() != "bearer":
                raise jwt.InvalidTokenError("no bearer token")
            claims = verify(token)
        except (jwt.PyJWTError, ValueError) as e:
            self.log_message("token rejected: %s", e)
            return self.problem(401, "Unauthorized")
        if self.path.endswith("/cancel"):  # the work is too short to be canceled
            self.send_response(204)
            return self.end_headers()
        try:
            length = int(self.headers.get("Content-Length", ""))
            if not 0 < length <= MAX_BODY:
                return self.problem(413, "Content Too Large")
            task = json.loads(self.rfile.read(length))
            task_id, _ = task["task_id"], task["inputs"]["prompt"].split
        except (ValueError, TypeError, KeyError, AttributeError):
            return self.problem(400, "Bad Request")
        if claims.get("task_id", task_id) != task_id:
            return self.problem(403, "Forbidden")
        self.reply(200, {"task_id": task_id, "status": "success", "data": execute(task)})

    def problem(self, status, title):
        self.reply(status, {"title": title, "status": status}, "application/problem+json")

    def reply(self, status, value, content_type="application/json"):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    daemon_threads = False  # so that server_close waits for the tasks in progress


# Registration


def call(method, path="", body=None):
    """Returns the status and the decoded reply of the router; the status is 0 if it does not respond."""
    request = urllib.request.Request(ROUTER + "/api/v1/agents/" + AGENT_ID + path, method=method)
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    try:
        if TOKEN_FILE:  # read for each request, because it may be rotated
            with open(TOKEN_FILE, encoding="ascii") as f:
                request.add_header("Authorization", "Bearer " + f.read().strip())
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return response.status, json.loads(response.read() or "{}")
        except urllib.error.HTTPError as e:
            return e.code, {"problem": e.read(4096).decode(errors="replace")}
    except (OSError, ValueError) as e:
        return 0, {"problem": str(e)}


def register(url, stop):
    """Tries until the router accepts the registration, and returns the lease; None if the agent stops first."""
    pause = 1
    while not stop.is_set():
        status, reply = call("PUT", body={
            "instance": INSTANCE,
            "match": {"intent": ["count_words"], "domains": ["text"]},
            "examples": {"count_words": ["how many words are in this text"]},
            "endpoint": {"protocol": "http", "url": url},
        })
        if status in (200, 201):
            print("registered", reply, flush=True)
            return reply
        if 300 <= status < 500 and status not in (408, 409, 425, 429):
            raise SystemExit("the router rejects the registration (%d): %s" % (status, reply["problem"]))
        print("not registered (%d), trying again: %s" % (status, reply["problem"]), flush=True)
        stop.wait(random.uniform(pause / 2, pause))
        pause = min(2 * pause, 30)
    return None


def keep_registered(url, stop):
    """Sends heartbeats until the agent stops."""
    lease = register(url, stop)
    while lease and not stop.wait(lease.get("heartbeat_s", 10) * random.uniform(0.9, 1)):
        status, reply = call("POST", "/heartbeat", {"instance": INSTANCE})
        if status == 200:
            lease = reply
        elif status == 404:  # the router does not know the agent any more
            lease = register(url, stop)
        else:
            print("heartbeat not accepted (%d): %s" % (status, reply["problem"]), flush=True)


def main():
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    server = Server(("127.0.0.1", PORT), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        keep_registered("http://127.0.0.1:%d/" % server.server_port, stop)
        call("POST", "/drain", {"instance": INSTANCE})  # no new tasks
    finally:
        server.shutdown()
        server.server_close()  # waits for the tasks in progress
    call("DELETE", "?instance=" + INSTANCE)


if __name__ == "__main__":
    main()
