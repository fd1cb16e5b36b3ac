# docs/aop.md and docs/aof.md: each sentence of these protocols' texts has a test that exists, or a reason.
# static
load ../lib

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  mkdir -p top/docs top/tests/bats/people top/tests/unit/work top/scripts top/tests/sentences
  cp "$AMP_TOP/scripts/sentences.sh" top/scripts
  printf '@test "it holds" {\n}\n' >top/tests/bats/people/one.bats
  printf '    TAP_OK(x, "one | two");\n' >top/tests/unit/work/two.c
  printf '%s\n' text '<!-- sentences -->' old '<!-- end of sentences -->' end >top/docs/p.md
  printf '%s\t%s\t%s\t%s\n' 1 'A must B.' one.bats 'it holds' 1 'A must B.' two 'one | two' \
    '2 C' 'D | E' - 'nothing here can be tested' >top/tests/sentences/p.tsv
}
sentences() { bash top/scripts/sentences.sh "$@"; }

@test "the tables of docs/ are those of tests/sentences, and each test in them exists" {
  bash "$AMP_TOP/scripts/sentences.sh" --check
  for p in aop aof; do
    [ "$(grep -c '^| ' "$AMP_TOP/docs/$p.md")" -gt 60 ]
  done
}

@test "docs/aop.md has each field of a TASK" {
  need jq
  jq -rn --slurpfile task "$AMP_TOP/schemas/aop/task.json" --slurpfile common "$AMP_TOP/schemas/aop/common.json" '
    def leaves($doc; $path):
      if has("$ref") then (."$ref" | split("#/$defs/")) as [$file, $name]
        | (if $file == "" then $doc else $common[0] end) as $d | $d["$defs"][$name] | leaves($d; $path)
      elif has("items") then .items | leaves($doc; $path + "[]")
      elif has("properties") then .properties | to_entries[] | .key as $k | .value | leaves($doc; "\($path).\($k)")
      else $path[1:] end;
    $task[0] | leaves($task[0]; "")' | grep -v 'extensions$' >fields
  [ "$(wc -l <fields)" -gt 70 ]
  # What the sentences name; an object names all of its members.
  awk -F '\t' '$1 ~ /^(TASK |1\.[12] )/ { print $2 }' "$AMP_TOP/tests/sentences/aop.tsv" | grep -o '`[^`]*`' | tr -d '`' | sort -u >named
  awk 'NR == FNR { named[$0] = 1; next }
    { for (path = $0; path != "" && !(path in named);) if (!sub(/(\[\]|\.[a-z_]+)$/, "", path)) path = ""
      if (path == "") print }' named fields >missing
  diff missing /dev/null
}

@test "a table is written; a stale one is found, and nothing is changed" {
  run -1 sentences --check
  [ "$output" = "docs/p.md: the table is not that of tests/sentences/p.tsv (scripts/sentences.sh)" ]
  grep -qx old top/docs/p.md
  sentences
  sentences --check
  diff top/docs/p.md - <<'END'
text
<!-- sentences -->

| section | sentence | test |
|---|---|---|
| 1 | A must B. | `one.bats`: `it holds`; `two`: `one \| two` |
| 2 C | D \| E | not held: nothing here can be tested |

<!-- end of sentences -->
end
END
}

@test "a line without a test, without a reason, or with a test that does not exist is an error" {
  sentences
  while IFS='|' read -r line says; do
    printf '%b\n' "$line" >top/tests/sentences/p.tsv
    run -1 --separate-stderr sentences
    [ "${stderr_lines[0]}" = "tests/sentences/p.tsv:1: $says" ]
  done <<'END'
1\tS.|no test holds: S.
1\tS.\tone.bats|no test holds: S.
1\tS.\t\t|no test holds: S.
1\tS.\t-\tno|not held, without a reason: S.
1\tS.\tone.bats\tit does|one.bats has no test 'it does'
1\tS.\tone.bats\tit holds not|one.bats has no test 'it holds not'
1\tS.\ttwo\tone|two has no test 'one'
1\tS.\tthree\tone|three has no test 'one'
\tS.\tone.bats\tit holds|not a section, a sentence, a suite and a test
1\tS.\tone.bats\tit holds\tmore|not a section, a sentence, a suite and a test
END
  rm top/docs/p.md
  run -1 --separate-stderr sentences
  [[ $stderr == *"docs/p.md: no place for the table of tests/sentences/p.tsv"* ]]
  run -64 sentences --all
}
