#!/usr/bin/env bats
# amp-route without a state directory: which port gets which message.

load ../lib
load ../messages

setup() {
  need_tool amp-route
  cd "$BATS_TEST_TMPDIR"
}

# id N: edits a message's id to end in N.
id() { echo ".msg_id |= sub(\"[0-9]+\$\"; \"$1\")"; }

@test "the first route that holds gets the message, byte for byte" {
  message task_dispatch >d
  message review_request >r
  # Blanks are part of the bytes.
  message task_dispatch "$(id 7)" | sed 's/":/" : /g' >>d
  cat d r >in
  run -0 amp-route -r 'to=executor => file:one' -r 'to=reviewer => file:two' -r '* => file:rest' <in
  [ -z "$output" ]
  cmp d one
  cmp r two
  [ ! -s rest ]
}

@test "every key of a predicate" {
  message task_dispatch >d
  message review_verdict >v
  message escalation >e
  message decision >c
  while IFS='|' read -r file predicate want; do
    rm -f out
    amp-route -r "$predicate => file:out" -r '* => file:rest' <"$file"
    got=no
    [ -s out ] && got=yes
    [ "$got" = "$want" ] || {
      echo "$file: $predicate: $got"
      return 1
    }
  done <<'T'
d|to=executor|yes
d|to=reviewer|no
d|to!=reviewer|yes
d|to=exec*|yes
d|from=coordinator|yes
d|type=task_dispatch|yes
d|type=task_*|yes
d|type=task_?esult|no
d|kind=dispatch|yes
v|kind=verdict|yes
d|task=T-2026-*|yes
d|task=T-2025-*|no
d|protocol=amp|yes
d|protocol=sw4rm|no
d|id=*1772116327001|yes
d|priority=0|yes
d|severity=*|no
d|severity!=critical|yes
e|severity=critical|yes
v|decision=rejected|yes
v|decision=approved*|no
c|decision=resume|yes
d|decision!=resume|yes
d|to=executor,from=coordinator|yes
d|to=executor,from=admin|no
d| to = executor , type = task_dispatch |yes
T
  amp-route -r 'from=executor|reviewer => file:either' <v
  cmp v either
}

@test "--all gives it to every route that holds" {
  message task_dispatch >d
  amp-route --all -r 'to=executor => file:a' -r 'type=task_* => file:b' -r 'to=admin => file:c' <d
  cmp d a
  cmp d b
  [ ! -s c ]
}

@test "what matches nothing is answered with no_route, status 1" {
  run -1 --separate-stderr amp-route -r 'to=admin => file:a' < <(message task_dispatch)
  [ ${#lines[@]} -eq 1 ]
  amp-validate <<<"$output"
  [ "$(jq -r '.type, .code, .ref_msg_id, .retryable' <<<"$output" | paste -sd' ')" = \
    "nack no_route task_dispatch-T-2026-044-1772116327001 true" ]
  jq -e '.message | test("not kept")' <<<"$output"
}

@test "acknowledgements that match nothing are dropped, and counted" {
  run -0 --separate-stderr amp-route -v -r 'to=admin => file:a' < <(
    message ack
    message nack
  )
  [ -z "$output" ]
  [[ "$stderr" == *"2 acknowledgements without a route"* ]]
}

@test "a line that is no message is rejected and the stream goes on" {
  run -1 --separate-stderr amp-route -r '* => stdout' < <(
    echo '{"nonsense": 1}'
    message task_dispatch
  )
  [ "$output" = "$(message task_dispatch)" ]
  [[ "$stderr" == *"line 1:"* ]]
}

@test "reject answers, dead without a state is wrong usage" {
  run -1 --separate-stderr amp-route -r '* => reject' < <(message task_dispatch)
  [ "$(jq -r .code <<<"$output")" = rejected ]
  run -64 amp-route -r '* => dead' </dev/null
}

@test "wrong routes are wrong usage and open nothing" {
  for r in 'to=x' 'to=x =>' 'colour=x => stdout' 'to => stdout' 'to= => stdout' ' => stdout' \
    'to=x => nowhere:a' 'to=x => fifo:' 'jq: => stdout' 'jq:.a> => stdout' \
    'to=x => command:"a'; do
    run -64 amp-route -r "$r" </dev/null
  done
  run -64 amp-route </dev/null
}

@test "a port that cannot be opened is said at the start" {
  run -73 amp-route -r '* => fifo:missing' </dev/null
  : >plain
  run -73 amp-route -r '* => fifo:plain' </dev/null
  run -73 amp-route -r '* => file:no/such/dir' </dev/null
}

@test "jq predicates: decided in order, together with native ones" {
  message task_dispatch '.payload.risk_level = "high"' >high
  message task_dispatch "$(id 8)" >plain
  message review_request >review
  cat plain high review plain >in
  amp-route -r 'jq:.payload.risk_level == "high" => file:a' -r 'to=executor => file:b' \
    -r 'jq:.type | startswith("review") => file:c' <in
  cmp high a
  cat plain plain | cmp - b
  cmp review c
}

@test "a jq predicate that fails makes a predicate_error, never the next route" {
  run -1 --separate-stderr amp-route -r 'jq:.payload.description | tonumber => file:a' -r '* => file:b' \
    < <(message task_dispatch)
  [ "$(jq -r .code <<<"$output")" = predicate_error ]
  [ ! -s a ]
  [ ! -s b ]
}

@test "a predicate_error has 150 bytes of a longer error of its predicate" {
  run -1 --separate-stderr amp-route -r 'jq:error("x" * 400) => file:a' < <(message task_dispatch)
  jq -e '.message | test("^x{150}; ")' <<<"$output"
}

@test "a jq predicate that never ends is ended; the others are answered" {
  message task_dispatch >good
  {
    message task_dispatch "$(id 1) | .payload.description = \"loop\""
    cat good
    message task_dispatch "$(id 2) | .payload.description = \"loop\""
  } >in
  run -1 --separate-stderr amp-route --predicate-timeout 2s \
    -r 'jq:if .payload.description == "loop" then last(range(1e12)) else true end => file:a' <in
  [ "$(jq -r .code <<<"$output" | paste -sd' ')" = "predicate_error predicate_error" ]
  cmp good a
}

@test "messages at which libjq aborts are undeliverable, however many; the router lives" {
  message task_dispatch >good
  for i in 1 2 3 4 5; do
    message task_dispatch "$(id $i) | .payload.description = \"bomb\""
  done >in
  cat good >>in
  run -1 --separate-stderr amp-route --state state \
    -r 'jq:if .payload.description == "bomb" then ([] | .[500000000] = 1 | length) > 0 else true end => file:a' <in
  [ "$(jq -r .code <<<"$output" | paste -sd' ')" = \
    "predicate_error predicate_error predicate_error predicate_error predicate_error" ]
  cmp good a
  run -0 amp-ack dead list --state state --json
  [ "$(jq -r .code <<<"$output" | sort | uniq -c | xargs)" = "5 predicate_error" ]
}

@test "jq sees the document inside a wrapped line" {
  inner='{"protocol":"aof","version":1,"type":"status.update","taskId":"TASK-2026-01-01-001","fromAgent":"a","toAgent":"b","sentAt":"2026-01-01T00:00:00Z","payload":{"taskId":"TASK-2026-01-01-001","agentId":"a","progress":"half"}}'
  { jq -c -n --arg t "$inner" '$t'; echo "AOF/1 $inner"; } >in
  amp-route -r 'jq:.payload.progress == "half" => file:a' -r '* => file:b' <in
  cmp in a
}

@test "jq sees no environment" {
  export SECRET=x
  message task_dispatch >d
  amp-route -r 'jq:env | has("SECRET") => file:leak' -r 'jq:$ENV | has("SECRET") => file:leak' \
    -r '* => file:rest' <d
  [ ! -s leak ]
  cmp d rest
}

@test "a command port: words without a shell, one process, NDJSON on its stdin" {
  cat >sink <<'S'
#!/bin/sh
echo "$$" >>pids
printf '%s\n' "$@" >args
exec cat >>got
S
  chmod +x sink
  { message task_dispatch; message task_dispatch "$(id 3)"; } >in
  amp-route -r "* => command:./sink 'two words' \$HOME \"a'b\" c\\ d" <in
  cmp in got
  [ "$(wc -l <pids)" -eq 1 ]
  [ "$(paste -sd'|' args)" = "two words|\$HOME|a'b|c d" ]
}

@test "a command that keeps dying makes messages undeliverable" {
  message task_dispatch >in
  mkfifo more
  amp-route --eager --in more -r '* => command:false' >answers 2>said &
  route=$!
  exec 8>more
  for i in $(seq 40); do
    message task_dispatch "$(id "$i")" >&8
    [ ! -s answers ] || break
    wait_until 1 has_lines answers 1 2>/dev/null || :
  done
  exec 8>&-
  status=0
  wait $route || status=$?
  [ $status -eq 69 ]
  [ "$(head -n 1 answers | jq -r .code)" = agent_unavailable ]
}

@test "a command that ends with a failure is reported" {
  message task_dispatch >in
  run --separate-stderr amp-route -r '* => command:sh -c "cat >got; exit 3"' <in
  [ "$status" -eq 69 ]
  cmp in got
  [[ "$stderr" == *"ended with status 3"* ]]
}

@test "a full disk is a failure of delivery, answered" {
  run --separate-stderr amp-route -r '* => file:/dev/full' < <(message task_dispatch)
  [ "$status" -eq 74 ]
  [ "$(jq -r .code <<<"$output")" = enospc ]
}

@test "the answers' own output may be full" {
  run --separate-stderr bash -c "amp-route -r 'to=x => stdout' >/dev/full" < <(message task_dispatch)
  [ "$status" -eq 74 ]
}

@test "a reader of stdout that had enough ends it quietly" {
  message task_dispatch | awk '{ for (i = 0; i < 3000; i++) print }' >in
  { amp-route -r '* => stdout' <in 2>said || :; } | head -n 1 >got
  [ ! -s said ]
  cmp got <(head -n 1 in)
}

@test "a half line that a killed writer left in a file is ended first" {
  printf '{"half' >out
  message task_dispatch >in
  amp-route -r '* => file:out' <in
  [ "$(head -n 1 out)" = '{"half' ]
  tail -n 1 out | cmp in -
}

@test "routes may stand in amp.json" {
  message task_dispatch >in
  echo '{"route": {"routes": ["to=executor => file:a", "* => file:b"]}}' >amp.json
  amp-route --config amp.json <in
  cmp in a
}

@test "a misspelt or impossible setting in amp.json is said, not passed over" {
  message task_dispatch >in
  while IFS='|' read -r config said; do
    echo "$config" >amp.json
    run -78 amp-route --config amp.json <in
    [[ "$output" == *"amp.json: $said"* ]] || { echo "$config: $output"; false; }
  done <<'E'
{"routes": ["* => stdout"]}|routes: additionalProperties
{"route": {"routs": ["* => stdout"]}}|route.routs: additionalProperties
{"route": {"routes": {}}}|route.routes
{"route": {"routes": ["* => stdout"]}, "qa": {"lock_after": 0}}|qa.lock_after: minimum
E
}

@test "it says its machine" {
  run -0 amp-route --machine=ndjson
  jq -se '(map(.machine) | unique) == ["delivery", "inbox", "transfer"] and any(.[]; .extra == true)' <<<"$output"
}

@test "what a full disk does not take is answered, message by message" {
  message task_dispatch | jq -c '. as $m | range(50) | . as $i | $m | .msg_id += "\($i)"' >lines
  status=0
  AMP_STATE= amp-route -r 'type=task_dispatch => file:/dev/full' -r '* => file:x' <lines >answers 2>/dev/null || status=$?
  [ $status -eq 74 ]
  jq -r .ref_msg_id answers | cmp - <(jq -r .msg_id lines)
}
