#!/usr/bin/env bats
# Dead letters: what is kept, choosing, sending again, removing; secrets are not shown.

load ../lib
load ../messages
load ../letters

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  export AMP_STATE=$PWD/state
}

ids() {
  jq -r .id | paste -sd' '
}

@test "a letter has what an operator needs" {
  dead 1 '.payload.description = "call me \u001b[2J with password=hunter2"'
  amp-ack dead list --json >letter
  jq -e '.id == .msg_id and .state == "DEAD" and .code == "no_route" and .class == "temporary" and
    .failure_class == "undeliverable" and .content_type == "application/json" and
    .routing.by == "amp-route.answers" and .routing.recipients == ["executor"] and
    .routing.hops == ["coordinator", "amp-route.answers"] and
    .first_failed_ms == .failed_ms and .created_ms > 0 and .attempts == 1 and
    (.history | length) == 1' letter || {
    cat letter
    return 1
  }
  # The size is the original's; the message that is shown is not.
  [ "$(jq .size letter)" -eq "$(($(wc -c <messages) - 1))" ]
}

@test "secrets are not shown, but --raw shows them and requeue sends them" {
  dead 1 '.payload.description = "call me \u001b[2J with password=hunter2" |
    .payload.tech_constraints = {"api_key": "k1", "note": "https://ann:hunter2@host/", "max_tokens": "7"}'
  amp-ack dead list --json >letter
  run -1 grep -q 'hunter2\|"k1"' letter
  jq -e '.msg.payload.tech_constraints | .api_key == "[redacted:api_key]" and .max_tokens == "7"' letter
  jq -e '.excerpt | test("password=\\[redacted:password\\]") and (test("\u001b") | not)' letter
  amp-ack dead show --every >shown
  cmp letter shown
  amp-ack dead show --raw --every >raw
  jq -e '.msg.payload.tech_constraints.api_key == "k1"' raw
  # Not even raw: the excerpt is kept so.
  jq -e '.excerpt | test("hunter2") | not' raw
  amp-ack dead requeue --every >again
  cmp again messages
}

@test "letters of the same millisecond are chosen in the order of the log" {
  local i line n=60
  line=$(message task_dispatch)
  for ((i = n; i > 0; i--)); do # the later one has the smaller id
    echo "${line/044-1772116327001/044-$((1000 + i))}"
  done >messages
  run -1 --separate-stderr amp-route -r 'to=nobody => file:x' <messages
  # Several share a millisecond.
  amp-ack dead list --json >letters
  [ "$(jq .failed_ms letters | sort -u | wc -l)" -lt $n ]
  jq -r .id letters | cmp - <(jq -r .msg_id messages)
  amp-ack dead requeue --every >again
  cmp again messages
  # What goes for its number is the oldest, too.
  rm -r state
  run -1 --separate-stderr amp-route -r 'to=nobody => file:x' <messages
  amp-ack sweep --dead-max-count 1 >/dev/null
  [ "$(amp-ack dead list --json | jq -r .id)" = "$(tail -n 1 messages | jq -r .msg_id)" ]
}

@test "every filter, alone and together, on every verb" {
  dead 2
  message review_request '.msg_id = "review_request-T-2026-045-3" | .task_id = "T-2026-045"' >other
  run -0 amp-route -r 'to=reviewer => dead' <other
  all="task_dispatch-T-2026-044-1 task_dispatch-T-2026-044-2 review_request-T-2026-045-3"
  first=${all% *}
  last=${all##* }
  check() { # WANT OPTION...
    local want=$1 got
    shift
    got=$(amp-ack dead list --json "$@" | ids)
    [ "$got" = "$want" ] || {
      echo "$*: $got" >&2
      return 1
    }
    [ "$(amp-ack dead purge --dry-run "$@" | ids)" = "$want" ]
    [ "$(amp-ack dead requeue --dry-run "$@" | ids)" = "$want" ]
    [ "$(amp-ack dead show "$@" | ids)" = "$want" ]
  }
  check "$first" --code no_route
  check "$last" --code kept_back
  check "$first" --class undeliverable
  check "$last" --class policy_violation
  check "$first" --class temporary
  check "$last" --class permanent
  check "$first" --producer 'coord*' --type 'task_*'
  check "$last" --task '*-045'
  check "$all" --protocol amp
  check "" --protocol rtp
  check "$last" --route 'to=rev*'
  check "$all" --since 2020-01-01T00:00:00Z
  check "" --until 2020-01-01T00:00:00Z
  check "" --older-than 1h
  check "$all" --newer-than 1h
  check "$last" --where '.msg.payload.review_scope == "full"'
  check "$first" --where '.attempts == 1 and .code == "no_route"'
  check "${all%% *}" --limit 1
  check "$last" --class permanent --where '.task | endswith("45")' --newer-than 1h
  [ "$(tail -n +1 <<<"${all// /$'\n'}" | amp-ack dead show - | ids)" = "$all" ]
}

@test "a jq expression that fails, or never ends, selects nothing and is reported" {
  dead 1
  run -1 --separate-stderr amp-ack dead purge --where '.msg_id | tonumber'
  [ -z "$output" ]
  [[ $stderr == *"--where does not judge it"* ]]
  run -1 --separate-stderr timeout 60 amp-ack dead purge --where 'def f: f; f'
  [ -z "$output" ]
  run -64 amp-ack dead purge --where '.['
  [ "$(amp-ack dead list --json | wc -l)" -eq 1 ]
}

@test "retention: nothing goes unless it is configured; then the oldest do, and the log says so" {
  dead 3
  amp-ack sweep --now 2100-01-01T00:00:00Z
  [ "$(amp-ack dead list --json | wc -l)" -eq 3 ]
  echo '{"dead": {"max_count": 2}}' >amp.json
  amp-ack sweep -c amp.json
  [ "$(amp-ack dead list --json | ids)" = "task_dispatch-T-2026-044-2 task_dispatch-T-2026-044-3" ]
  echo '{"dead": {"max_age": "30d"}}' >amp.json
  amp-ack sweep -c amp.json
  [ "$(amp-ack dead list --json | wc -l)" -eq 2 ]
  amp-ack sweep -c amp.json --now 2100-01-01T00:00:00Z
  [ -z "$(amp-ack dead list --json --all)" ]
  jq -se 'map(select(.event == "retire")) | length == 3 and all(.actor == "amp-ack.sweep")' state/log/*.ndjson
  # A watcher does so too, at once.
  dead 2
  echo '{"dead": {"max_count": 1}}' >amp.json
  amp-ack watch -c amp.json &
  watcher=$!
  one_left() { [ "$(amp-ack dead list --json | wc -l)" -eq 1 ]; }
  wait_until 30 one_left
  kill $watcher
  ends 130 wait $watcher
}

@test "patterns of one's own" {
  dead 1 '.payload.description = "pay INV-1234"'
  echo '{"redact": {"patterns": ["(?#invoice)INV-[0-9]+"]}}' >amp.json
  amp-ack dead show --every -c amp.json | jq -e '.msg.payload.description == "pay [redacted:invoice]"'
  amp-ack dead show --every --redact 'pay(?= )' | jq -e '.msg.payload.description == "[redacted:pattern] INV-1234"'
  run -64 amp-ack dead list --redact '('
  run -1 --separate-stderr amp-validate -e - --redact 'hi[0-9]' < <(message task_dispatch '.payload.risk_level = "hi5"')
  [ "$(jq -r .found <<<"$stderr")" = '"[redacted:pattern]"' ]
  run -1 --separate-stderr amp-route -c amp.json -r '* => file:x' < <(message task_dispatch '.payload.risk_level = "INV-7"')
  jq -e 'select(.code == "bad_enum").found == "\"[redacted:invoice]\""' state/error.ndjson
}

@test "patterns of the configuration hold for what every tool writes of a line" {
  mkdir config repo
  echo '{"redact": {"patterns": ["(?#invoice)INV-[0-9]+"]}}' >config/amp.json
  message task_dispatch '.payload.risk_level = "INV-7"' >bad.ndjson
  # The finding in the error log, and the line itself nowhere in it.
  found() { jq -e 'select(.code == "bad_enum").found == "\"[redacted:invoice]\""' "$1" && ! grep -q INV-7 "$1"; }
  git -C repo init -q
  git -C repo commit -q --allow-empty -m begin
  for t in "amp-ack track" amp-route "task-dispatch coordinate --until-done" "hitl-prompt" \
    "agent-registry" "worktree-bind -C repo"; do
    rm -rf state
    mkdir -m 700 state
    read -ra argv <<<"$t"
    [ "${argv[0]}" != amp-route ] || argv=(amp-route -r '* => stdout')
    AMP_CONFIG=config/amp.json AMP_STATE=state run "${argv[@]}" <bad.ndjson
    found state/error.ndjson || { echo "$t: $output"; return 1; }
    # The state directory's own amp.json counts as well.
    cp config/amp.json state/
    rm -f state/error.ndjson
    AMP_STATE=state run "${argv[@]}" <bad.ndjson
    found state/error.ndjson || { echo "$t by its state: $output"; return 1; }
  done
  run -1 amp-validate -e errors -c config/amp.json <bad.ndjson
  found errors
  rm -f errors
  mkdir -p xdg/amp
  cp config/amp.json xdg/amp/
  XDG_CONFIG_HOME=$PWD/xdg run -1 amp-validate -e errors <bad.ndjson
  found errors
  # worktree-bind finds its state itself.
  mkdir -m 700 -p repo/.git/amp
  cp config/amp.json repo/.git/amp/
  XDG_CONFIG_HOME=$PWD/none run env -u AMP_STATE worktree-bind -C repo <bad.ndjson
  found repo/.git/amp/error.ndjson
  # A wrong one is the configuration's fault, before a line is read.
  echo '{"redact": {"patterns": ["("]}}' >amp.json
  for t in amp-validate "amp-ack track --state state" "hitl-prompt --state state" "task-dispatch --state state" \
    "agent-registry --state state" "worktree-bind -C repo"; do
    read -ra argv <<<"$t"
    AMP_CONFIG=amp.json run -78 "${argv[@]}" <bad.ndjson
    [[ "$output" == *"redact.patterns in amp.json: the pattern to redact '('"* ]]
  done
}

@test "nothing is taken by accident" {
  dead 2
  run -64 amp-ack dead purge
  run -64 amp-ack dead requeue
  run -64 amp-ack dead show
  run -64 amp-ack dead purge --every x
  run -64 amp-ack dead purge --since yesterday
  cp -r state before
  amp-ack dead purge --dry-run --every >would
  amp-ack dead requeue --dry-run --every >>would
  [ "$(jq -r '[.action, .dry_run] | join(" ")' would | paste -sd' ')" = \
    "purge true purge true requeue true requeue true" ]
  cmp <(cat before/log/*.ndjson) <(cat state/log/*.ndjson)
}

@test "what is purged is gone, logged and exported; the rest stays" {
  dead 3 '.payload.tech_constraints = {"token": "t1"}'
  amp-ack dead purge --keep 2 --export gone >out
  [ "$(ids <out)" = task_dispatch-T-2026-044-1 ]
  [ "$(ids <gone)" = task_dispatch-T-2026-044-1 ]
  [ "$(stat -c %a gone)" = 600 ]
  run -1 grep -q '"t1"' gone
  [ "$(amp-ack dead list --json | ids)" = "task_dispatch-T-2026-044-2 task_dispatch-T-2026-044-3" ]
  jq -se 'map(select(.event == "purge")) | length == 1 and .[0].actor == "amp-ack.purge"' state/log/*.ndjson
  # It does not write over a file, and then removes nothing.
  run -73 amp-ack dead purge --every --export gone
  amp-ack dead purge --every --export gone2 --raw
  jq -se 'length == 2 and .[0].msg.payload.tech_constraints.token == "t1"' gone2
  [ -z "$(amp-ack dead list --json --all)" ]
  run -1 amp-ack dead purge task_dispatch-T-2026-044-1
  [[ $output == *unknown_ref* ]]
}

@test "a closed letter is refused with its code; its history goes on when it fails again" {
  dead 1
  id=task_dispatch-T-2026-044-1
  amp-ack dead requeue $id >again
  run -1 --separate-stderr amp-ack dead requeue $id
  [ -z "$output" ]
  [[ $stderr == *already_requeued* ]]
  run -1 amp-ack dead requeue --dry-run $id
  [ "$(jq -r .refused <<<"$output")" = already_requeued ]
  [ "$(amp-ack dead list --json --all | jq -r .state)" = REQUEUED ]
  [[ $(amp-ack dead list --all | tail -n 1) == "$id"*" REQUEUED" && $(amp-ack dead list) != *state* ]]
  run -1 --separate-stderr amp-route -r 'to=nobody => file:x' <again
  amp-ack dead show $id | jq -e '.state == "DEAD" and .attempts == 2 and (.history | length) == 2'
}

@test "export: letters, or a bundle that explains them, whole and without secrets" {
  echo '{"redact": {"patterns": ["INV-[0-9]+"]}, "route": {"routes": ["* => https://ann:hunter2@h/"]}}' >amp.json
  dead 2 '.payload.tech_constraints = {"password": "hunter2", "note": "INV-12"}'
  run -1 --separate-stderr amp-route -r '* => file:x' < <(message task_dispatch '.payload.risk_level = "hunter" | .payload.password = "hunter2"')
  amp-ack dead export --every -c amp.json | cmp - <(amp-ack dead list --json -c amp.json)
  run -64 amp-ack dead export --bundle bundle
  amp-ack dead export --dry-run --every --bundle bundle >would
  [ "$(ids <would)" = "task_dispatch-T-2026-044-1 task_dispatch-T-2026-044-2" ]
  [ ! -e bundle ]
  amp-ack dead export --limit 1 --bundle bundle -c amp.json
  [ "$(stat -c %a bundle)" = 700 ]
  jq -e '.letters == 1 and .frames > 1 and .redacted and (.cut | not)' bundle/manifest.json
  jq -r '.files[] | "\(.sha256)  \(.name)"' bundle/manifest.json | (cd bundle && sha256sum -c --quiet)
  [ "$(jq -r '.files[].name' bundle/manifest.json | sort | paste -sd' ')" = \
    "amp.json errors.ndjson frames.ndjson letters.ndjson machine.json state.json" ]
  [ "$(ids <bundle/letters.ndjson)" = task_dispatch-T-2026-044-1 ]
  jq -se 'all(.[]; tojson | test("044-1"))' bundle/frames.ndjson
  jq -e '.dead.DEAD == 2' bundle/state.json
  [ -s bundle/errors.ndjson ]
  run -1 grep -r 'hunter2\|INV-12' bundle
  # Not over something else, and nothing half is left.
  run -73 amp-ack dead export --every --bundle bundle
  echo '{"store": {"keep_days": 3}}' >state/amp.json
  amp-ack dead export --limit 1 --bundle out.tar -c amp.json
  mkdir got
  tar -C got -xf out.tar
  cmp got/out/letters.ndjson bundle/letters.ndjson
  cmp got/out/amp.json bundle/amp.json
  jq -e '.store.keep_days == 3' got/out/state-amp.json
  run -73 amp-ack dead export --every --bundle nowhere/out.tar
  amp-ack dead export --every --raw --bundle raw
  grep -q hunter2 raw/letters.ndjson
  run -2 ls ./*.partial
}

@test "a message with the longest id gets one letter, and then nothing is due of it" {
  for n in 900 901 999 1000; do
    jq -nc --argjson n "$n" '{to: "bob", msg: {message_id: ("m" * $n), producer_id: "p", sequence_number: $n, retry_count: 0,
      correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001", message_type: "CONTROL", content_type: "application/json",
      content_length: 7, payload: {x: 1}}}'
  done | amp-ack -s long track --now 2026-03-01T12:00:00Z >/dev/null
  for n in 1 2 3; do amp-ack -s long sweep --now "2026-03-01T13:0$n:00Z" >/dev/null; done
  amp-ack -s long dead list --json | jq -r '.msg_id | length' | sort -n | diff - <(printf '%s\n' 900 901 999 1000)
  [ "$(cat long/log/*.ndjson | jq -r 'select(.key // "" | startswith("dead.")).rev' | sort -u)" = 1 ]
  [ "$(cat long/log/*.ndjson | jq -r 'select(.key // "" | startswith("message.")) | [.key, .due // 0] | @tsv' |
    awk '{ due[$1] = $2 } END { for (k in due) n += due[k] > 0; print n + 0 }')" = 0 ]
}

@test "what a run had not written starts no deadline anew where the message arrived meanwhile" {
  jq -nc '{message_id: "11111111-1111-4111-8111-111111111111", producer_id: "cli", correlation_id: "c",
    sequence_number: 1, retry_count: 0, message_type: "DATA", content_type: "application/json",
    content_length: 2, timestamp: "2026-03-01T12:00:00Z", payload: {}}' >m
  amp-ack track --now 2026-03-01T12:00:00Z <m >/dev/null
  amp-ack sweep --now 2026-03-01T12:00:10Z >/dev/null
  # Its reader is gone before the line is written; the message is under way for the ledger.
  run -74 amp-ack dead requeue --every -o /dev/full
  [ "$(amp-ack status --open --json | jq -r .state)" = SENT ]
  amp-ack sweep --now "$(date -u -d '+1 minute' +%FT%TZ)" >/dev/null
  [ "$(amp-ack dead list --json | jq .attempts)" = 2 ]
  jq -c '.payload = {ack_for_message_id: .message_id, ack_stage: "RECEIVED"} | .producer_id = "bob" |
    .message_id = "22222222-2222-4222-8222-222222222222" | .message_type = "ACKNOWLEDGEMENT" |
    .content_length = (.payload | tojson | length)' m | amp-ack track >/dev/null
  [ "$(amp-ack dead list --all --json | jq -r .state)" = WITHDRAWN ]
  run amp-ack dead requeue --every
  [ "$(amp-ack status --all --json | jq -r .state)" = TIMED_OUT ]
  amp-ack sweep --now "$(date -u -d '+2 minutes' +%FT%TZ)" >/dev/null
  [ "$(amp-ack dead list --all --json | jq -r .state)" = WITHDRAWN ]
}

@test "the letter of a message without a timestamp has the time of its arrival" {
  line='{"message_id":"5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab0007","producer_id":"ann","correlation_id":"7f3f41a2-2017-4b8f-9b8b-2ad3caaee001","sequence_number":9,"retry_count":0,"message_type":"DATA","content_type":"application/json","content_length":2,"payload":{}}'
  before=$(date +%s%3N)
  run -1 --separate-stderr amp-route -s new -r 'to=x => file:o' <<<"$line"
  amp-ack dead list -s new --json | jq -e --argjson b "$before" '.created_ms >= $b and .created_ms <= .failed_ms'
  # That of the ledger, if the message failed later, and again.
  amp-ack track -s old --now 2026-03-01T12:00:00Z <<<"$line" >/dev/null
  amp-ack sweep -s old --now 2026-03-01T12:01:00Z >/dev/null
  [ "$(amp-ack dead list -s old --json | jq -r '(.created_ms / 1000 | todate) + " " + (.failed_ms / 1000 | todate)')" = \
    "2026-03-01T12:00:00Z 2026-03-01T12:01:00Z" ]
}
