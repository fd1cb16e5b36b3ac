# What the fuzz targets found once is run again, and so are all cases of the protocols' rules.

load ../lib

@test "every input of the fuzz corpus" {
  local target dir
  for dir in "$AMP_TOP"/tests/fuzz/corpus/*; do
    target=$(basename "$dir")
    "$AMP_BUILD/tests/fuzz/${target}_replay" "$dir" 2>"$BATS_TEST_TMPDIR/last" || {
      echo "$target fails: $(tail -n 20 "$BATS_TEST_TMPDIR/last")" >&2
      return 1
    }
  done
}

@test "the corpus is small and each target has one" {
  local t
  for t in "$AMP_TOP"/tests/fuzz/*_fuzz.c; do
    [ -n "$(ls "$AMP_TOP/tests/fuzz/corpus/$(basename "$t" _fuzz.c)")" ]
  done
  [ "$(find "$AMP_TOP/tests/fuzz/corpus" -type f | wc -l)" -le $((50 * $(find "$AMP_TOP/tests/fuzz" -name '*_fuzz.c' | wc -l))) ]
  [ "$(du -sb "$AMP_TOP/tests/fuzz/corpus" | cut -f1)" -lt 500000 ]
}

@test "every case of the protocols' rules through the targets for lines, text and conversion" {
  need jq
  local t o
  cd "$BATS_TEST_TMPDIR"
  mkdir in
  for t in "$AMP_TOP"/tests/fixture/protocols/{any,amp,sw4rm,aop,aof,rtp}.jsonl; do
    jq -n -R -r --arg file x -f "$AMP_TOP/tests/fixture/protocols/expand.jq" "$t" |
      jq -r '.cases[].text' >lines
    # The first byte chooses the options: detected, and strict with logical clocks.
    for o in '\060' '\300'; do
      { printf "$o"; cat lines; } >"in/$(basename "$t" .jsonl)$o"
    done
  done
  # Hashes and addresses differ from run to run, and what is remembered by them.
  for t in detect extract convert detect detect detect; do
    "$AMP_BUILD/tests/fuzz/${t}_replay" in 2>last || {
      echo "$t fails: $(tail -n 20 last)" >&2
      return 1
    }
  done
}
