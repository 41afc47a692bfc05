#!/bin/sh
# Keeps an agent registered at a router: registers it, sends heartbeats, and
# deregisters it on SIGINT or SIGTERM. It needs curl only. The agent is served by
# another program at AGENT_URL. README.md has the commands.
#
#   AGENT_URL   address of the agent, to which the router sends tasks (required)
#   AGENT_ID    id of the agent, the key of its grant
#   ROUTER_URL  address of the router
#   TOKEN_FILE  file with the agent's token; empty = the router needs none
set -u
: "${AGENT_URL:?set AGENT_URL to the address of the agent}"
: "${AGENT_ID:=word_counter}" "${ROUTER_URL:=http://127.0.0.1:8080}" "${TOKEN_FILE:=}"

instance="curl-$$"
agent="$ROUTER_URL/api/v1/agents/$AGENT_ID"
registration='{
  "instance": "'$instance'",
  "match": { "intent": ["count_words"], "domains": ["text"] },
  "examples": { "count_words": ["how many words are in this text"] },
  "endpoint": { "protocol": "http", "url": "'$AGENT_URL'" }
}'
reply=$(mktemp) || exit 1
pause_pid=

# call METHOD URL [BODY] sets $status (000 = no reply) and writes the reply to a file.
# The token is read for each request, because it may be rotated, and is passed on
# standard input, because arguments are visible to other users of the host.
call() {
  : > "$reply"
  status=$(
    if [ -n "$TOKEN_FILE" ]; then printf 'Authorization: Bearer %s\n' "$(cat "$TOKEN_FILE")"; fi |
      curl -sS --max-time 10 -o "$reply" -w '%{http_code}' -X "$1" -H @- \
        -H 'Content-Type: application/json' ${3:+--data "$3"} "$2"
  )
}

# pause SECONDS is a sleep that a signal ends.
pause() {
  sleep "$1" &
  pause_pid=$!
  wait "$pause_pid"
  pause_pid=
}

log() { echo "register.sh: $*" >&2; }

stop() {
  trap '' INT TERM
  if [ -n "$pause_pid" ]; then kill "$pause_pid" 2>/dev/null; fi
  call POST "$agent/drain" "{\"instance\":\"$instance\"}" # no new tasks; wait for the tasks in progress here
  call DELETE "$agent?instance=$instance"
  log "deregistered ($status)"
  rm -f "$reply"
  exit 0
}
trap stop INT TERM

# register tries until the router accepts the registration. It exits if the token, the
# grant or the registration must be corrected.
register() {
  delay=1
  while :; do
    call PUT "$agent" "$registration"
    case $status in
      200 | 201)
        log "registered: $(cat "$reply")"
        # The heartbeats' interval in whole seconds.
        interval=$(sed -n 's/.*"heartbeat_s": *\([0-9]*\).*/\1/p' "$reply")
        if [ "${interval:-0}" -lt 1 ]; then interval=1; fi
        return ;;
      000 | 408 | 409 | 425 | 429 | 5??)
        log "not registered ($status), trying again in $delay s: $(cat "$reply")" ;;
      *)
        log "the router rejects the registration ($status): $(cat "$reply")"
        rm -f "$reply"
        exit 1 ;;
    esac
    pause "$delay"
    delay=$((delay * 2 > 30 ? 30 : delay * 2))
  done
}

register
while :; do
  pause "$interval"
  call POST "$agent/heartbeat" "{\"instance\":\"$instance\"}"
  case $status in
    200) ;;
    404) register ;; # the router does not know the agent any more
    *) log "heartbeat not accepted ($status): $(cat "$reply")" ;;
  esac
done
