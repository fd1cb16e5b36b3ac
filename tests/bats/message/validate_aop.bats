# AOP: what needs large lines, or options of its own. Rule by rule: protocol_rules.bats.

load ../lib

setup() {
  need jq
  cases=$AMP_TOP/tests/fixture/protocols/aop.jsonl
  cd "$BATS_TEST_TMPDIR" || return 1
}

# base NAME [JQ]: a message of the rules' file, edited.
base() {
  jq -c --arg name "$1" "select(.base == \$name) | .line | ${2:-.}" "$cases"
}

# padded NAME BYTES: a message of exactly so many bytes.
padded() {
  local line LC_ALL=C
  line=$(base "$1" '.extensions.x_pad = ""')
  base "$1" ".extensions.x_pad = \"x\" * $(($2 - ${#line}))"
}

@test "the hard limits are bytes of the line" {
  {
    padded minimal 204800
    padded minimal 204801
    padded response 512000
    padded response 512001
    base heartbeat '.extensions.x_pad = "x" * 600000'
  } >in
  [ "$(LC_ALL=C awk 'NR < 5 { print length }' in | xargs)" = "204800 204801 512000 512001" ]
  run -1 --separate-stderr amp-validate -e records in
  [ "$(jq -r '"\(.line) \(.code) \(.field)"' records)" = $'2 E_CONTEXT_OVERFLOW \n4 E_CONTEXT_OVERFLOW ' ]
  cmp <(echo "$output") <(sed '2d;4d' in)
}

@test "a long objective is counted in characters" {
  {
    base minimal '.task.objective = "x" * 39999'
    base minimal '.task.objective = "x" * 40000'
    base minimal '.task.objective = "é" * 39999'
    base minimal '.task.objective = "é" * 40000'
    base minimal '.task.objective = "x" * 50001'
    # Written as escapes, also as pairs of them.
    base minimal '.task.objective = "\n" * 39999'
    base minimal '.task.objective = "\n" * 40000'
    base minimal '.task.objective = "😀" * 9999 + "x" * 30000' | jq -ac .
    base minimal '.task.objective = "😀" * 10000 + "x" * 30000' | jq -ac .
  } >in
  amp-validate -e records in | cmp - in
  [ "$(jq -r 'select(.code == "E_PAYLOAD_SIZE_WARNING" and .severity == "warning") | .line' records | xargs)" = \
    "2 4 5 7 9" ]
  [ "$(jq -rs '.[3].message' records)" = "has 40000 characters" ]
}

@test "--effective says what counts, and where it comes from" {
  {
    base minimal
    base task
    base task '.guard_rails.timeout_seconds = 600 | .target.capabilities.network_access = "NONE" |
      .task.constraints.max_cost_usd = 0.10 | .task.budgets.max_tokens = 20000'
    base minimal '.target.capabilities = {file_system_access: false} |
      .task.access = {filesystem: {write_paths: ["/a"]}, network: "FULL"}'
    base minimal '.task.environment.workspace_root = "/srv/w" |
      .task.access.filesystem = {read_paths: [".", "a/../b", "/x//y/", "C:\\z"], write_paths: ["\u0062"]}'
    base response
    base heartbeat
    echo '# Task: of version 1'
  } >in
  run -0 amp-validate --effective in
  echo "$output" >out
  [ "$(jq -r .line out | xargs)" = "1 2 3 4 5" ]
  [ "$(jq -r '"\(.session_id) \(.task_id)"' out | sort -u)" = "AOP-SESSION-2026-02-26-001 TASK-001" ]
  amp-validate -S "$AMP_TOP/schemas/records/effective.json" out | cmp - out
  [ "$(jq -rs 'map(.timeout_seconds | "\(.value) \(.source)") | join(", ")' out)" = \
    "1800 default, 1800 guard_rails, 600 guard_rails, 1800 default, 1800 default" ]
  [ "$(jq -rs 'map(.network_access | "\(.value) \(.source)") | join(", ")' out)" = \
    "RESTRICTED default, RESTRICTED target.capabilities, NONE target.capabilities, RESTRICTED default, RESTRICTED default" ]
  [ "$(jq -rs 'map(.max_cost_usd | "\(.value) \(.source)") | join(", ")' out)" = \
    "null default, 0.5 task.constraints, 0.1 task.constraints, null default, null default" ]
  [ "$(jq -rs '.[2].max_tokens.value' out)" = 15000 ]
  [ "$(jq -cs '.[0].read_paths, .[3].write_paths' out)" = \
    $'{"value":null,"source":"default"}\n{"value":[],"source":"target.capabilities"}' ]
  [ "$(jq -cs '.[4] | .read_paths.value, .write_paths.value' out)" = \
    $'["/srv/w","/srv/w/b","/x/y","C:/z"]\n["/srv/w/b"]' ]
  [ "$(jq -rs '.[1] | .max_retries.value, .heartbeat.enabled.value, .delegation.allowed.value' out | xargs)" = \
    "1 true false" ]
}

@test "--effective reports the lines that are refused, and writes nothing for them" {
  run --separate-stderr -1 amp-validate --effective -e - <<<"$(base task '.task.category = "x"')"
  [ -z "$output" ]
  [ "$(jq -r .code <<<"$stderr")" = E_SCHEMA_VALIDATION ]
}

@test "--nack answers in AOP, and nobody answers the answer" {
  {
    base task '.target.role = "BOSS"'
    base task '.task.inputs[0].path = "C:/secret"'
    base minimal
    base response '.execution_summary.actions = []'
    base fallback 'del(.session_id)'
    echo null
  } >in
  run --separate-stderr -1 amp-validate --nack -p aop in
  echo "$output" >out
  [ "$(jq -r '"\(.message_type) \(.error_details.error_code // "")"' out)" = "EVENT E_SCHEMA_VALIDATION
RESPONSE E_PERMISSION_DENIED
TASK 
EVENT E_MALFORMED_RESPONSE
EVENT E_PARSE_FAILURE" ]
  amp-validate out | cmp - out
  # The task goes on as version 1.
  jq -r 'select(.v1_prompt) | .v1_prompt | tojson' out >prompt
  run -0 amp-validate --check prompt
  [ "$(jq -r .type <<<"$output")" = V1_MARKDOWN ]
}

@test "--nack: a task that does not say that it is one goes on as version 1 all the same" {
  {
    base minimal 'del(.message_type)'
    base minimal '.message_type = "QUERY"'
    base minimal '.aop_version = "3.0"'
    base heartbeat '.event = "NONE" | .task = {}'
  } >in
  run --separate-stderr -1 amp-validate --nack in
  [ "$(jq -r '[.session_id, .classification, .to_version, (.v1_prompt // "")[:16]] | @csv' <<<"$output")" = \
    '"AOP-SESSION-2026-02-26-001","V2","1.x","# Task: TASK-001"
"AOP-SESSION-2026-02-26-001","V2","1.x","# Task: TASK-001"
"UNKNOWN","UNSTRUCTURED",,""
"AOP-SESSION-2026-02-26-001","V2",,""' ]
}

@test "a task in Markdown of several lines, or JSON of several lines, is one document" {
  printf '\n# Task: TASK-001\n\n## Objective\nRead it.\n' >v1
  base task | jq . >v2
  run -0 amp-validate --document --check v1 v2
  [ "$(jq -r '"\(.valid) \(.type)"' <<<"$output")" = $'true V1_MARKDOWN\ntrue TASK' ]
  amp-validate --document v2 | cmp - v2
}

@test "what passes a hard limit is refused for that, and goes on as no prompt" {
  base task '.target.role = "BOSS" | .task.objective = "x" * 300000' >in
  base minimal '.task.category = "x" | .task.inputs = [range(101) | {type: "T"}]' >>in
  run -1 --separate-stderr amp-validate --nack -e - in
  [ "$(jq -r '"\(.message_type) \(.error_details.error_code)"' <<<"$output")" = \
    $'RESPONSE E_CONTEXT_OVERFLOW\nRESPONSE E_CONTEXT_OVERFLOW' ]
  amp-validate <<<"$output" >/dev/null
  # The rest is told too.
  [ "$(jq -r '"\(.line) \(.code)"' <<<"$stderr" | xargs)" = \
    "1 E_CONTEXT_OVERFLOW 1 E_SCHEMA_VALIDATION 2 E_CONTEXT_OVERFLOW 2 E_SCHEMA_VALIDATION" ]
}
