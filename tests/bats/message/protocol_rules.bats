# Each rule of each protocol accepts what it should and refuses what it should: the cases of
# tests/fixture/protocols.

load ../lib

setup() {
  need jq
  cases=$AMP_TOP/tests/fixture/protocols
  work=$BATS_FILE_TMPDIR/work
  if [ ! -d "$work" ]; then
    mkdir -p "$work/empty"
    repo "$work/repo"
    git init -q --bare "$work/bare.git"
  fi
}

# rules PROTOCOL: runs the protocol's file.
rules() {
  local file=$cases/$1.jsonl dir=$BATS_TEST_TMPDIR n=0 status group
  jq -n -R -c --arg file "$1" -f "$cases/expand.jq" "$file" | sed "s|@WORK@|$work|g" >"$dir/groups"
  while IFS= read -r group; do
    n=$((n + 1))
    mapfile -t options < <(jq -r '.options[]' <<<"$group")
    jq -r '.cases[].text' <<<"$group" >"$dir/in.$n"
    : >"$dir/records.$n"
    : >"$dir/checked.$n"
    status=0
    amp-validate -e "$dir/records.$n" "${options[@]}" "$dir/in.$n" >"$dir/out.$n" 2>"$dir/err.$n" ||
      status=$?
    [ "$status" -le 1 ] || {
      echo "amp-validate ${options[*]}: status $status: $(cat "$dir/err.$n")" >&2
      return 1
    }
    # Whoever wants more than the verdict gets the same one.
    amp-validate --check -j 2 -e "$dir/checked.$n" "${options[@]}" "$dir/in.$n" >/dev/null \
      2>"$dir/err.$n" || [ $? -eq 1 ]
    diff <(jq -c 'del(.time)' "$dir/records.$n") <(jq -c 'del(.time)' "$dir/checked.$n") >&2
    jq -r --arg file "$1.jsonl" --slurpfile records "$dir/records.$n" --rawfile out "$dir/out.$n" \
      -f "$cases/compare.jq" <<<"$group" >>"$dir/faults"
  done <"$dir/groups"
  [ "$n" -gt 0 ]
  [ ! -s "$dir/faults" ] || {
    echo "$(grep -c '^[a-z]' "$dir/faults") cases went otherwise:" >&2
    cat "$dir/faults" >&2
    return 1
  }
}

@test "the rules of any protocol" { rules any; }
@test "the rules of AMP" { rules amp; }
@test "the rules of SW4RM" { rules sw4rm; }
@test "the rules of AOP" { rules aop; }
@test "the rules of AOF" { rules aof; }
@test "the rules of the Runtime Protocol" { rules rtp; }

@test "every code of a protocol with cases has one" {
  local p file here=$BATS_TEST_TMPDIR
  for file in "$cases"/{any,amp,sw4rm,aop,aof,rtp}.jsonl; do
    p=$(basename "$file" .jsonl)
    amp-validate --explain all | awk -F'\t' -v p="$p" '$3 == p { print $1 }' | sort >"$here/all"
    [ -s "$here/all" ]
    jq -r '.code // empty, ([.warn // empty] | flatten[])' "$file" | sort -u >"$here/had"
    awk -F'\t' -v p="$p" '$1 == p { print $2 }' "$cases/untested.tsv" | sort >"$here/untested"
    comm -23 "$here/all" <(sort -u "$here/had" "$here/untested") | sed "s/^/$p: no case has /"
    comm -23 "$here/untested" "$here/all" | sed "s/^/$p: untested.tsv: no such code: /"
    comm -12 "$here/untested" "$here/had" | sed "s/^/$p: untested.tsv: a case has /"
  done >"$here/lacking"
  [ ! -s "$here/lacking" ] || {
    cat "$here/lacking" >&2
    return 1
  }
}
