# amp-validate with a JSON Schema of the user's own: lines, documents, references, wrong schemas,
# limits.

load ../lib

draft2020=https://json-schema.org/draft/2020-12/schema
draft7='http://json-schema.org/draft-07/schema#'

setup() {
  need jq
  cd "$BATS_TEST_TMPDIR" || return 1
}

# verdicts SCHEMA OPTION...: reads "+VALUE" and "-VALUE" lines, checks that those and only those with
# a plus pass.
verdicts() {
  local schema=$1
  shift
  cat >cases
  printf '%s\n' "$schema" >schema.json
  cut -c2- cases >in
  sed -n 's/^+//p' cases >want
  amp-validate -S schema.json -e records "$@" in >out || [ $? -eq 1 ]
  diff want out
}

@test "lines pass byte for byte or are refused, with place, rule and what was meant" {
  cat >schema.json <<EOF
{
  "\$schema": "$draft2020",
  "type": "object",
  "properties": {
    "id": {"description": "Names the job. Once.", "type": "integer", "minimum": 1},
    "state": {"enum": ["queued", "running", "done"]},
    "owner": {"\$ref": "#/\$defs/person"}
  },
  "required": ["id", "state"],
  "additionalProperties": false,
  "\$defs": {"person": {"type": "object", "required": ["name"], "properties": {"name": {"minLength": 1}}}}
}
EOF
  {
    printf '{"id": 1,\t"state":"done"}\r\n\n'
    echo '{"id":0,"state":"runing","ownr":1,"owner":{"name":""}}'
    echo '{"state":"done"}'
    echo '{"id":1,"st'
    printf '{"id":2,"state":"\\u0064one"}'
  } >in
  { head -n 1 in && tail -n 1 in; } >want
  run amp-validate -S schema.json -e records in
  [ "$status" -eq 1 ]
  { amp-validate -S schema.json in 2>/dev/null || true; } | cmp - <(cat want && echo)
  jq -r '[.line,.offset,.code,.field,.pointer,.rule,.schema_pointer//"-",.message,.found//"-",.expected//"-"]|map(tostring)|join("|")' \
    records >got
  diff - got <<'EOF'
3|34|schema_violation|id|/id|minimum|/properties/id/minimum|is too small|0|at least 1
3|44|schema_violation|state|/state|enum|/properties/state/enum|is not one of the allowed values; did you mean `running`?|"runing"|one of queued, running, done
3|60|schema_violation|ownr|/ownr|additionalProperties|/additionalProperties|is not an allowed field; did you mean `owner`?|1|-
3|78|schema_violation|owner.name|/owner/name|minLength|/$defs/person/properties/name/minLength|is empty|""|at least 1 character
4|83|schema_violation|id|/id|required|/required|is missing (names the job)|-|-
5|108|invalid_json|||json|-|string not closed|-|-
EOF
  amp-validate -S "$AMP_TOP/schemas/records/rejection.json" --formats records | cmp - records
}

@test "values are compared by what they mean" {
  verdicts '{"properties":{"n":{"enum":[3,9007199254740993,"\u00e9"]},"i":{"type":"integer"},"\u006b":{"const":{"a":[1,2]}},"m":{"maximum":9007199254740993}}}' <<'EOF'
+{"n":3.0}
+{"n":30E-1}
+{"n":9007199254740993}
-{"n":9007199254740992}
+{"n":"\u00E9"}
+{"n":"é"}
-{"n":"e"}
+{"i":6E0}
+{"i":1e400}
-{"i":6.5}
+{"k":{"\u0061":[1e0,2.0]}}
-{"\u006b":{"a":[2,1]}}
+{"m":9007199254740993.0}
-{"m":9007199254740993.5}
-{"m":9007199254740994}
-{"n":3,"\u006e":3}
EOF
}

@test "the draft is what \$schema says, else what is asked for" {
  verdicts '{"items":[{"type":"string"}],"additionalItems":false}' --draft 7 <<'EOF'
+["a"]
-[1]
-["a",1]
EOF
  verdicts "{\"\$schema\":\"$draft7\",\"definitions\":{\"n\":{\"type\":\"null\"}},\"properties\":{\"a\":{\"\$ref\":\"#/definitions/n\",\"minimum\":9}},\"prefixItems\":[false]}" \
    --draft 2020-12 <<'EOF'
+{"a":null}
-{"a":1}
+[1]
EOF
  verdicts "{\"\$schema\":\"$draft2020\",\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}" --draft 7 <<'EOF'
+["a"]
-["a",1]
EOF
  verdicts '{"$id":"x:y","prefixItems":[{"type":"string"}],"dependentRequired":{"a":["b"]}}' <<'EOF'
-[1]
-{"a":1}
EOF
}

@test "format is a remark unless it is asserted" {
  for schema in "$draft2020" "$draft7"; do
    verdicts "{\"\$schema\":\"$schema\",\"format\":\"date\"}" <<<'+"someday"'
    verdicts "{\"\$schema\":\"$schema\",\"format\":\"date\"}" --formats <<'EOF'
-"someday"
+"2026-02-28"
-"2026-02-29"
+7
EOF
  done
  verdicts '{"format":"made-up"}' --formats <<<'+"x"'
}

@test "documents: pretty-printed, arrays, several files; the line at fault is reported" {
  echo '{"items":{"type":"object","required":["a"],"additionalProperties":{"type":"integer"}},"type":"array"}' >schema.json
  printf '[\n  {"a": 1},\n  {"a": 2}\n]\n' >good.json
  printf '[{"a":1}]' >compact.json
  printf '[\r\n  {"a": 1},\r\n  {"b": "x\\ny"}\r\n]' >bad.json
  printf '[\n{"a":1},\n{"a":}]\n' >broken.json
  : >empty.json
  amp-validate -S schema.json --document good.json compact.json >out
  { cat good.json compact.json; } | cmp - out
  amp-validate -S schema.json --document <good.json | cmp - good.json
  run --separate-stderr amp-validate -S schema.json --document good.json bad.json broken.json empty.json compact.json
  [ "$status" -eq 1 ]
  [ "$output" = "$(cat good.json compact.json)" ]
  diff - <(echo "$stderr") <<'EOF'
amp-validate: error: bad.json:3: [1].a: schema_violation: is missing
amp-validate: error: bad.json:3: [1].b: schema_violation: is a string; found "x\ny"; expected integer
amp-validate: error: broken.json:3: invalid_json: found '}' where a value is wanted
amp-validate: error: empty.json:1: invalid_json: no JSON value
EOF
  run --separate-stderr amp-validate -S schema.json --document --max-line 64 bad.json - < <(printf '[%100s]' '')
  [ "$status" -eq 1 ]
  [[ $stderr == *"stdin:1: line_too_long"* ]]
  run amp-validate -S schema.json --document none.json good.json
  [ "$status" -eq 65 ]
}

@test "our own schemas are right by the draft's metaschema" {
  local meta=$AMP_TOP/schemas/json-schema/draft2020-12-schema.json
  amp-validate -S "$meta" --formats --document "$AMP_TOP"/schemas/*/*.json >/dev/null
  amp-validate -S "$AMP_TOP/schemas/json-schema/draft7.json" --document "$AMP_TOP/schemas/json-schema/draft7.json" >/dev/null
  run amp-validate -S "$meta" - <<<'{"type":"strin","minLength":-1,"properties":{"a":{"items":[]}}}'
  [ "$status" -eq 1 ]
  [[ $output == *"properties.a.items"* ]]
}

@test "a wrong schema is refused with its place before a line is read" {
  local schema want
  while IFS='|' read -r schema want; do
    printf "$schema" >schema.json
    run --separate-stderr amp-validate -S schema.json <<<'{}'
    [ "$status" -eq 65 ]
    [ -z "$output" ]
    [[ $stderr == "amp-validate: error: $want"* ]] || {
      printf '%s\n%s\n' "$stderr" "$want"
      return 1
    }
  done <<'EOF'
{"type":"objct"}|schema.json:1:9: #/type: not one of the seven types null, boolean, object, array, number, integer, string; found "objct"; did you mean `object`?
{\n  "properties": {\n    "a": {"minLength": -1}\n  }\n}|schema.json:3:24: #/properties/a/minLength: an integer of 0 or more is expected; found -1
{"required":"a"}|schema.json:1:13: #/required: an array of names is expected; found "a"
{"items":[{}]}|schema.json:1:10: #/items: one schema for all items is expected; since draft 2020-12 an array
{"pattern":"(a"}|schema.json:1:12: #/pattern: not a regular expression
{"pattern":"a{2,1}"}|schema.json:1:12: #/pattern: not a regular expression
{"$ref":"#/$defs/none"}|schema.json:1:9: #/$ref: this reference leads nowhere
{"$ref":"none.json"}|schema.json:1:9: #/$ref: no schema is known by this reference: file:///
{"$ref":"https://example.org/a"}|schema.json:1:9: #/$ref: no schema is known by this reference: no --resolve URI-PREFIX=DIR matches https://example.org/a; schemas are not downloaded
{"$schema":"http://json-schema.org/draft-04/schema#"}|schema.json:1:12: #/$schema: this $schema is neither draft 2020-12 nor draft-07
{"$schema":"https://json-schema.org/draft/2019-09/schema"}|schema.json:1:12: #/$schema: this $schema is neither
{"allOf":[{"$ref":"#"}]}|schema.json:1:
{"a":1,"a":2}|schema.json:1:8: 
{"a":|schema.json:1:6: not JSON: 
[]|schema.json:1:1: #: a schema is an object, true or false; found an array
|schema.json:1:1: not JSON: 
EOF
  printf '{"items":%.0s' {1..200} >schema.json
  run amp-validate -S schema.json <<<'{}'
  [ "$status" -eq 65 ] && [[ $output != *"not JSON"* ]]
  run amp-validate -S none.json <<<'{}'
  [ "$status" -eq 65 ]
  run amp-validate -S . <<<'{}'
  [ "$status" -eq 65 ]
}

@test "a keyword that is none is remarked where it looks like a slip" {
  cat >schema.json <<'EOF'
{"properties":{"requird":{"maxlength":2}},
 "requird":["a"],"x-title":1,"note":1,"name":2,"unit":"m","additionalItems":false,"$Ref":"#"}
EOF
  run --separate-stderr amp-validate -S schema.json <<<'{}'
  [ "$status" -eq 0 ] && [ "$output" = '{}' ]
  diff - <(echo "$stderr") <<'EOF'
amp-validate: warning: schema.json:2:2: requird is no keyword; did you mean `required`?
amp-validate: warning: schema.json:2:59: additionalItems is no keyword of draft 2020-12
amp-validate: warning: schema.json:2:83: $Ref is no keyword; did you mean `$ref`?
amp-validate: warning: schema.json:1:27: maxlength is no keyword; did you mean `maxLength`?
EOF
  run amp-validate --strict -S schema.json <<<'{}'
  [ "$status" -eq 65 ]
}

@test "references lead to files beside the schema and where --resolve says, nowhere else" {
  mkdir -p schemas/sub other out/deep
  echo '{"type":"null"}' | tee schemas/n.json out/secret.json other/n.json "schemas/sub/with space.json" >/dev/null
  echo '{"type":"string"}' >schemas/sub/n.json
  ln -s ../out/secret.json schemas/link.json
  ln -s ../out schemas/linked
  # ref | options | refused or accepted value
  local ref options word value
  while IFS='|' read -r ref options word; do
    printf '{"properties":{"a":{"$ref":"%s"}}}' "$ref" >schemas/main.json
    value=1
    [ "$word" = string ] && value=null
    # shellcheck disable=SC2086
    run --separate-stderr amp-validate -S schemas/main.json $options <<<"{\"a\":$value}"
    if [ "$word" = refused ]; then
      [ "$status" -eq 65 ] && [[ $stderr == *"#/properties/a/\$ref: no schema is known"* ]]
    else
      [ "$status" -eq 1 ] && [[ $stderr == *"expected $word"* ]]
    fi || {
      echo "$ref $options $word: $status $stderr"
      return 1
    }
  done <<EOF
n.json||null
./sub/../n.json||null
n||null
sub/n.json||string
sub/with%20space.json||null
../out/secret.json||refused
%2e%2e/out/secret.json||refused
link.json||refused
linked/secret.json||refused
sub||refused
file://$PWD/out/secret.json||refused
file://$PWD/out/secret.json|--resolve file://$PWD/out=out|null
https://x.org/n.json||refused
https://x.org/n.json|--resolve https://x.org/=schemas|null
https://x.org/n.json|--resolve https://x.org=schemas|null
https://x.org/v1/n.json|--resolve https://x.org/=schemas|refused
https://x.org/v1/n.json|--resolve https://x.org/=other --resolve https://x.org/v1/=schemas/sub|string
https://x.org/v1/n.json|--resolve https://x.org/v1/=schemas/sub --resolve https://x.org/=other|string
https://x.org/n.json|--resolve https://x.or=schemas|refused
https://x.org/n.json|--resolve https://x.org/n.json=schemas/sub/n.json|string
https://x.org/..%2fout/secret.json|--resolve https://x.org/=schemas|refused
https://x.org/link.json|--resolve https://x.org/=schemas|refused
https://x.org/deep|--resolve https://x.org/=out|refused
https://x.org/%00|--resolve https://x.org/=out|refused
urn:x:n.json|--resolve urn:x:=schemas|null
EOF
  printf '{"$id":"https://x.org/s/main","$ref":"n","$defs":{"e":{"$id":"e","$anchor":"here"}},"properties":{"b":{"$ref":"e#here"}}}' >schemas/main.json
  run amp-validate -S schemas/main.json <<<1
  [ "$status" -eq 65 ]
  run amp-validate -S schemas/main.json --resolve https://x.org/s=other <<<1
  [ "$status" -eq 1 ]
}

@test "a metaschema of one's own says which vocabularies count" {
  local vocab=https://json-schema.org/draft/2020-12/vocab
  mkdir meta
  cat >meta/loose.json <<EOF
{"\$schema":"$draft2020","\$id":"https://x.org/loose","\$vocabulary":{"$vocab/core":true,"$vocab/applicator":true,"https://x.org/colours":false}}
EOF
  cat >meta/strange.json <<EOF
{"\$schema":"$draft2020","\$id":"https://x.org/strange","\$vocabulary":{"$vocab/core":true,"https://x.org/colours":true}}
EOF
  cat >meta/formats.json <<EOF
{"\$schema":"$draft2020","\$id":"https://x.org/formats","\$vocabulary":{"$vocab/core":true,"$vocab/format-assertion":true}}
EOF
  verdicts '{"$schema":"https://x.org/loose","properties":{"a":false,"b":{"type":"null","minimum":5}}}' \
    --resolve https://x.org/=meta <<'EOF'
-{"a":1}
+{"b":1}
EOF
  verdicts '{"$schema":"https://x.org/formats","format":"date","minLength":99}' --resolve https://x.org/=meta <<'EOF'
-"x"
+"2026-02-28"
EOF
  cat >meta/house.json <<EOF
{"\$schema":"$draft2020","\$id":"https://x.org/house","\$vocabulary":{"$vocab/core":true,"$vocab/applicator":true,"$vocab/validation":true},
 "\$dynamicAnchor":"meta","allOf":[{"\$ref":"$draft2020"}],"required":["title"],"properties":{"title":{"maxLength":5}}}
EOF
  echo '{"$schema":"https://x.org/house","title":"short","maximum":3}' >schema.json
  amp-validate -S schema.json --resolve https://x.org/=meta <<<3
  printf '{"$schema":"https://x.org/house",\n"title":"longer"}' >schema.json
  run amp-validate -S schema.json --resolve https://x.org/=meta <<<3
  [ "$status" -eq 65 ]
  [[ $output == *"schema.json:2: #/title: does not match its metaschema: expected at most 5 characters" ]]
  echo '{"$schema":"https://x.org/house","title":"short","properties":{"a":{"type":"null"}}}' >schema.json
  run amp-validate -S schema.json --resolve https://x.org/=meta <<<3
  [ "$status" -eq 65 ] && [[ $output == *"#/properties/a: does not match its metaschema: expected the field title" ]]
  echo '{"$schema":"https://x.org/strange"}' >schema.json
  run amp-validate -S schema.json --resolve https://x.org/=meta <<<1
  [ "$status" -eq 65 ]
  [[ $output == *"https://x.org/strange:1:"*"vocabulary that it requires is not known"* ]]
  echo '{"$schema":"https://x.org/none"}' >schema.json
  run amp-validate -S schema.json --resolve https://x.org/=meta <<<1
  [ "$status" -eq 65 ]
  [[ $output == *"no metaschema is known by it"*"none.json"* || $output == *"no metaschema is known by it"*"cannot open none"* ]]
}

@test "a schema comes from any path, a pipe, or is a built-in one" {
  echo '{"type":"object","required":["a"]}' >schema.json
  want='amp-validate: error: stdin:1: a: schema_violation: is missing'
  run -1 --separate-stderr amp-validate -S <(cat schema.json) <<<'{}'
  [ "$stderr" = "$want" ]
  echo '{}' >in
  run -1 --separate-stderr amp-validate -S /dev/stdin in < <(cat schema.json)
  [ "$stderr" = "${want/stdin/in}" ]
  run -1 --separate-stderr amp-validate -S /dev/stdin in <schema.json
  run -1 --separate-stderr amp-validate -S /proc/self/fd/0 in < <(cat schema.json)
  mkfifo fifo
  cat schema.json >fifo &
  run -1 amp-validate -S fifo in
  local options
  for options in "-S /dev/stdin" "-S /dev/fd/0" "-S -" "-S - in -" "-S - /dev/stdin"; do
    # shellcheck disable=SC2086
    run -64 amp-validate $options < <(cat schema.json)
    [[ $output == *"cannot both come from standard input"* ]]
  done
  # Nothing is beside a pipe.
  run -65 amp-validate -S <(echo '{"$ref":"schema.json"}') <<<'{}'
  [[ $output == *"no schema is known by this reference"* ]]
  # A built-in one, by the name that --list prints; what it refers to is built in as well.
  echo '{"decision":"approved","confidence":1}' >good
  echo '{"decision":"approved","confidence":2}' >bad
  amp-validate -S agent/verdict good | cmp - good
  run -1 --separate-stderr amp-validate -S agent/verdict bad
  [[ $stderr == "amp-validate: error: bad:1: confidence: schema_violation: is too large; found 2; expected at most 1" ]]
  run -1 --separate-stderr amp-validate -S rtp/envelope bad
  [[ $stderr == *"schema_violation: "* ]]
  # A schema of one's own may refer to it, and a file of that name comes first.
  echo '{"items":{"$ref":"https://amp.invalid/schemas/agent/verdict.json"}}' >list.json
  amp-validate -S list.json <<<"[$(cat good)]"
  run -1 amp-validate -S list.json <<<"[$(cat bad)]"
  mkdir agent
  echo false >agent/verdict
  run -1 amp-validate -S agent/verdict good
  run -65 amp-validate -S agent/verdic good
  [[ $output == *"cannot open the schema agent/verdic: No such file or directory; did you mean the built-in \`agent/verdict\`?"* ]]
}

@test "a printed schema needs no other file" {
  local s n=0 meta=$AMP_TOP/schemas/json-schema/draft2020-12-schema.json
  mkdir alone
  cd alone
  while read -r s; do
    amp-validate --print-schema "$s" >bundle.json
    # Every reference leads somewhere, also where no file lies beside it.
    amp-validate -S - /dev/null <bundle.json
    n=$((n + 1))
  done < <(amp-validate --list | grep -v '^json-schema/draft7\|^sw4rm/[^rt]')
  [ "$n" -gt 40 ]
  amp-validate --print-schema aop/task >task.json
  jq -e '."$id" == "https://amp.invalid/schemas/aop/task.json" and (."$defs"."aop/common" | ."$id" == "https://amp.invalid/schemas/aop/common.json")' task.json
  amp-validate -S "$meta" --formats --document task.json >/dev/null
  # It judges as the built-in one does.
  load ../messages
  head -n 40 "$AMP_TOP/tests/fixture/protocols/aop.jsonl" | jq -c '.line? // .message? // .' >lines
  amp-validate -S task.json -e bundled lines >one || [ $? -eq 1 ]
  amp-validate -S aop/task -e builtin lines >two || [ $? -eq 1 ]
  cmp one two
  diff <(jq -c 'del(.time,.schema_pointer)' bundled) <(jq -c 'del(.time,.schema_pointer)' builtin)
  [ -s bundled ]
}

@test "every report of a document names the line and the file alike" {
  echo '{"additionalProperties":{"type":"integer"}}' >schema.json
  printf '{\n"a":1,\n"b":"x",\n"c":"y"}\n' >doc.json
  run -1 --separate-stderr amp-validate -S schema.json --document doc.json
  [ "$(cut -d' ' -f3 <<<"$stderr")" = $'doc.json:3:\ndoc.json:4:' ]
  run -1 amp-validate -S schema.json --document -e records doc.json
  [ "$(jq -r '"\(.file):\(.line):"' records)" = $'doc.json:3:\ndoc.json:4:' ]
  run -1 amp-validate -S schema.json --document --check doc.json
  jq -e '.file == "doc.json" and .line == 3 and .offset == 9' <<<"$output"
  amp-validate -S "$AMP_TOP/schemas/records/verdict.json" <<<"$output"
  run -1 amp-validate -S schema.json --document --annotate doc.json
  jq -e '.line == 1 and [.findings[].line] == [3, 4]' <<<"$output"
  amp-validate -S "$AMP_TOP/schemas/records/annotated.json" <<<"$output"
  amp-validate -S "$AMP_TOP/schemas/records/rejection.json" --formats <records
  # Lines say nothing else than before, but the file.
  run -1 amp-validate -e - - doc.json <<<'[]'
  [ "$(jq -r '"\(.file):\(.line)"' <<<"$output" | paste -sd' ')" = "stdin:1 doc.json:1 doc.json:2 doc.json:3 doc.json:4" ]
  run -1 amp-validate -e - <<<'[]'
  jq -e '.line == 1 and (has("file") | not)' <<<"$output"
}

@test "dynamic references and what nobody looked at" {
  verdicts '{"$id":"https://x.org/strict","$dynamicAnchor":"node","$ref":"tree","unevaluatedProperties":false,"$defs":{"t":{"$id":"tree","$dynamicAnchor":"node","type":"object","properties":{"v":true,"kids":{"items":{"$dynamicRef":"#node"}}}}}}' <<'EOF'
+{"v":1,"kids":[{"v":2,"kids":[]}]}
-{"v":1,"kids":[{"v":2,"kid":[]}]}
-{"w":1}
EOF
  verdicts '{"if":{"properties":{"k":{"const":1}},"required":["k"]},"then":{"properties":{"a":true}},"else":{"properties":{"b":true}},"unevaluatedProperties":{"type":"null"}}' <<'EOF'
+{"k":1,"a":1}
-{"k":1,"b":1}
+{"b":1,"k":null}
-{"b":1,"k":3}
EOF
  verdicts '{"prefixItems":[true],"contains":{"type":"string"},"unevaluatedItems":false}' <<'EOF'
+[1,"a","b"]
-[1,"a",2]
-[1]
EOF
}

@test "of several alternatives the one that was meant is explained" {
  cat >schema.json <<'EOF'
{"oneOf":[
  {"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number"}},"required":["kind","r"]},
  {"type":"object","properties":{"kind":{"const":"box"},"w":{"type":"number"},"h":{"type":"number"}},"required":["kind","w","h"]},
  {"type":"null"}]}
EOF
  printf '%s\n' '{"kind":"box","w":1}' '{"kind":"circle","r":"x"}' '{"kind":"crcle","r":1}' '7' >in
  run amp-validate -S schema.json -e records in
  [ "$status" -eq 1 ]
  diff - <(jq -r '[.line,.field,.rule,.expected//"-"]|map(tostring)|join("|")' records) <<'EOF'
1|h|required|-
2|r|type|number
3|kind|const|circle
4||oneOf|what one of 3 alternatives describes
EOF
}

@test "the standard output goes into the first record of a line" {
  echo '{"$id":"https://x.org/s","items":{"$ref":"#/$defs/p"},"$defs":{"p":{"required":["x"],"properties":{"x":{"minimum":1}}}}}' >schema.json
  printf '%s\n' '[{"x":1}]' '[{},{"x":0}]' '{' >in
  run -1 amp-validate -S schema.json --output basic -e records in
  [ "$(jq -c 'has("output")' records | tr '\n' ' ')" = "true false false " ]
  amp-validate -S "$AMP_TOP/schemas/records/rejection.json" records | cmp - records
  head -n 1 records | jq -c .output >basic
  diff - basic <<'EOF'
{"valid":false,"keywordLocation":"","absoluteKeywordLocation":"https://x.org/s#","instanceLocation":"","errors":[{"valid":false,"keywordLocation":"/items/$ref/required","absoluteKeywordLocation":"https://x.org/s#/$defs/p/required","instanceLocation":"/0","error":"missing: the field x"},{"valid":false,"keywordLocation":"/items/$ref/properties/x/minimum","absoluteKeywordLocation":"https://x.org/s#/$defs/p/properties/x/minimum","instanceLocation":"/1/x","error":"expected at least 1; found 0"}]}
EOF
  echo '{"title":"numbers","items":{"type":"number","title":"one of them","x-unit":"m"}}' >titled.json
  amp-validate -S titled.json --annotate --output basic <<<'[1]' |
    jq -c '.output.annotations[] | [.keywordLocation, .instanceLocation, .annotation]' >got
  diff - got <<'EOF'
["/title","","numbers"]
["/items/title","/0","one of them"]
["/items/x-unit","/0","m"]
["/items","",true]
EOF
  rm -f records
  run amp-validate -S schema.json --output flag -e records in
  [ "$(jq -c 'has("output")' records | sort -u)" = false ]
}

@test "messages of the protocols have a standard output too" {
  load ../messages
  message task_dispatch '.from = "robot" | del(.payload.branch) | .payload.subtasks[0].more = 1' >bad
  message task_dispatch >good
  run amp-validate --output basic -e records bad
  [ "$status" -eq 1 ]
  head -n 1 records | jq -r '.output | .valid, (.errors[] | [.keywordLocation, .instanceLocation, .error] | join("|"))' >got
  grep -qx false got
  grep -q '^/.*enum|/from|expected one of .*; found "robot"$' got
  grep -q '^/.*required|/payload|missing: the field branch$' got
  grep -q '^/.*additionalProperties|/payload/subtasks/0/more|' got
  amp-validate --check --output basic good | jq -e '.output.valid and (.output.annotations | length > 0)'
  [ "$(amp-validate --output basic -e - <<<nonsense 2>&1 | jq -c 'has("output")')" = false ]
}

@test "limits have codes, and the stream goes on" {
  local i
  {
    printf '{"$defs":{"d0":{"minimum":0}'
    for i in $(seq 60); do printf ',"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}' "$i" $((i - 1)) $((i - 1)); done
    printf '},"properties":{"p":{"pattern":"^(a+)+$"},"d":{"$ref":"#/$defs/d60"}}}'
  } >schema.json
  {
    echo '{"p":"aa"}'
    printf '{"p":"%s!"}\n' "$(printf 'a%.0s' $(seq 60))"
    echo '{"p":"a"}'
    echo '{"d":1}'
    printf '{"deep":%s%s}\n' "$(printf '[%.0s' $(seq 200))" "$(printf ']%.0s' $(seq 200))"
    echo '{"d":"x","p":"a"}'
  } >in
  run timeout 60 amp-validate -S schema.json -e records in
  [ "$status" -eq 1 ]
  [ "$(jq -c '[.line,.code]' records | tr '\n' ' ')" = '[2,"pattern_limit"] [4,"schema_limit"] [5,"too_deep"] [6,"schema_limit"] ' ]
  [ "$(amp-validate -S schema.json in 2>/dev/null || true)" = "$(sed -n '1p;3p' in)" ]
}

@test "a hundred thousand names, words and references take their time and no more" {
  local n=100000
  {
    printf '{"properties":{'
    awk 'BEGIN{for(i=0;i<20000;i++)printf "%s\"k%d\":{\"$ref\":\"#/$defs/d%d\"}",(i?",":""),i,i}'
    printf '},"$defs":{'
    awk 'BEGIN{for(i=0;i<20000;i++)printf "%s\"d%d\":{\"$anchor\":\"a%d\",\"type\":\"integer\"}",(i?",":""),i,i}'
    printf '},"required":['
    awk 'BEGIN{for(i=0;i<20000;i++)printf "%s\"k%d\"",(i?",":""),i}'
    printf '],"additionalProperties":{"enum":['
    awk 'BEGIN{for(i=0;i<20000;i++)printf "%s\"word %d\"",(i?",":""),i}'
    printf ']}}'
  } >schema.json
  awk -v n=$n 'BEGIN{printf "{"; for(i=0;i<n;i++) if(i<20000) printf "%s\"k%d\":%d",(i?",":""),i,i; else printf ",\"k%d\":\"word %d\"",i,i%20000; print "}"}' >in
  timeout 60 amp-validate -S schema.json in | cmp - in
  sed 's/"word 5"/"wordy"/;s/"k7":7,//' in >bad
  run timeout 60 amp-validate -S schema.json -e records bad
  [ "$status" -eq 1 ]
  jq -e -s 'any(.[]; .rule == "required" and .field == "k7")' records
}

@test "threads give the same output and records in the same order" {
  echo '{"properties":{"i":{"multipleOf":3}}}' >schema.json
  seq -f '{"i":%.0f,"text":"some text to make the line a little longer"}' 20000 >in
  amp-validate -S schema.json -e r1 in >o1 || [ $? -eq 1 ]
  amp-validate -S schema.json -j 3 -e r3 in >o3 || [ $? -eq 1 ]
  cmp o1 o3
  cmp <(jq -c 'del(.time)' r1) <(jq -c 'del(.time)' r3)
}

@test "the schema may come from standard input; options that do not go together are refused" {
  echo '{"a":1}' >in
  amp-validate -S - in <<<'{"required":["a"]}' | cmp - in
  echo '{}' >schema.json
  local options
  while read -r options; do
    # shellcheck disable=SC2086
    run amp-validate $options in </dev/null
    [ "$status" -eq 64 ] || {
      echo "$options: $status"
      return 1
    }
  done <<'EOF'
--formats
--draft 7
--resolve https://x.org/=.
-S schema.json -p amp
-S schema.json --check-repo
-S schema.json --protect x
-S schema.json --state state
-S schema.json --draft 4
-S schema.json --output verbose
-S schema.json -S schema.json
-S schema.json --resolve here
-S schema.json --resolve =.
-S schema.json --resolve relative/=.
-S schema.json --resolve x:=. --resolve x:=.
EOF
  run amp-validate -S - </dev/null
  [ "$status" -eq 64 ]
  run amp-validate -S schema.json --resolve x:=none in
  [ "$status" -eq 65 ]
}

@test "a pattern of which each step looks at a long text is given up in time" {
  echo '{"properties": {"a": {"pattern": "^[0-9]+[.0-9]*s$"},
    "b": {"items": {"pattern": "^[0-9]+[.0-9]*s$"}}}}' >schema
  {
    printf '{"a":"%s"}\n' "$(head -c 8000000 /dev/zero | tr '\0' 9)"
    head -c 300000 /dev/zero | tr '\0' 9 |
      jq -cR '{b: [. as $text | range(20) | $text]}'
    echo '{"a":"9s"}'
  } >in
  run timeout 60 amp-validate --check -S schema in
  [ "$status" -eq 1 ]
  [ "$(jq -r '.code // "valid"' <<<"$output" | paste -sd' ')" = "pattern_limit pattern_limit valid" ]
}

@test "a location of any length is printed in part, and the stream goes on" {
  echo '{"additionalProperties":{"additionalProperties":{"type":"string"}}}' >nested.json
  jq -cn '{a: {("k" * 17000000): 1}}, {}' >long
  amp-validate -S nested.json --output basic -e records <long >out || [ $? = 1 ]
  [ "$(cat out)" = '{}' ]
  [ "$(jq -c '.output | [.valid, .truncated]' records)" = '[false,true]' ]
}
