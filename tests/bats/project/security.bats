# docs/security.md: each statement names a test that exists.
# static
load ../lib

# cells: the last cell of each row of a table, behind the file that the table's heading names ("test in `X.bats`", "test in
# `tests/unit/X_test.c`").
cells() {
  awk -F ' *[|] *' '
    !/^[|]/ { file = ""; table = 0; next }
    !table { table = 1; tests = $(NF - 1) ~ /^test/; if (match($(NF - 1), /[a-z_-]+\.(bats|c)/)) file = substr($(NF - 1), RSTART, RLENGTH); next }
    /^[|]-/ || !tests { next }
    { print FNR "\t" (file ? file : "-") "\t" $(NF - 1) }' "$AMP_TOP/docs/security.md"
}

# titles FILE: where the titles of its tests are.
titles() {
  case $1 in
  *.bats) grep '^@test' "$AMP_TOP"/tests/bats/*/"$1" ;;
  *.c) sed -E 's/%(z?u|s|d)//g' "$AMP_TOP"/tests/unit/*/"$1" ;;
  esac
}

@test "each test that docs/security.md names exists, and each row names one" {
  local line file cell name part n=0 found
  while IFS=$'\t' read -r line file cell; do
    found=0
    while read -r name; do
      name=${name//\`/}
      case $name in
      *.bats)
        file=$name
        compgen -G "$AMP_TOP/tests/bats/*/$name" >/dev/null || found=-1000
        ;;
      *_test)
        file=$name.c
        compgen -G "$AMP_TOP/tests/unit/*/$file" >/dev/null || found=-1000
        ;;
      *) # a title, or parts of it with … between them
        while IFS= read -r part; do
          [ -z "$part" ] || titles "$file" | grep -F -- "$part" >/dev/null || found=-1000
        done < <(sed 's/ *… */\n/g' <<<"$name")
        ;;
      esac
      found=$((found + 1))
      [ "$found" -gt 0 ] || {
        echo "docs/security.md:$line: no test $name ($file)" >&2
        return 1
      }
    done < <(grep -oE '`[^`]+`' <<<"$cell")
    [ "$found" -gt 0 ] || {
      echo "docs/security.md:$line: names no test: $cell" >&2
      return 1
    }
    n=$((n + 1))
  done < <(cells)
  [ "$n" -ge 40 ]
}
