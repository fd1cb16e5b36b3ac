# The manual: drawings, settings and types are those of the programs; HTML pages whose links and search work;
# the tarball and the list of symbols for packages.
# static
load ../lib

setup() {
  cd "$AMP_TOP" || return 1
}

@test "the drawings of the state machines are what --machine prints, each machine is on a page" {
  need jq
  sh scripts/machines.sh --check "$AMP_BUILD/bin"
  # A drawing with another event is found.
  mkdir -p "$BATS_TEST_TMPDIR/man"
  sed 's/|- ack_fulfilled -/|- ack_read      -/' man/amp-protocol-sw4rm.7 >"$BATS_TEST_TMPDIR/man/amp-protocol-sw4rm.7"
  cd "$BATS_TEST_TMPDIR"
  run -1 sh "$AMP_TOP/scripts/machines.sh" --check "$AMP_BUILD/bin"
  [[ $output == *"+    |- ack_fulfilled"* ]]
}

@test "amp.json(5) and its pages have each setting of the schema, and no other" {
  need jq
  sh scripts/settings.sh --check
  # The names in both directions, without the script that writes them.
  jq -r '.properties | paths(type == "object" and has("properties") == false and (has("type") or has("enum") or has("$ref")))
    | map(strings) | map(select(. != "properties")) | join(".")' schemas/config/amp.json |
    grep -E '^[a-z]+\.[a-z_]+$' | grep -vE '^risk\.|\.items$' | sort -u >"$BATS_TEST_TMPDIR/schema"
  sed -n 's/^\.It Li \([a-z]*\.[a-z_]*\)$/\1/p' man/amp.json*.5 | sort -u >"$BATS_TEST_TMPDIR/pages"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/schema")" -gt 70 ]
  diff "$BATS_TEST_TMPDIR/schema" "$BATS_TEST_TMPDIR/pages"
  # Only the sections that a state directory may set say so.
  [ "$(grep -c 'STATE/amp.json$' man/amp.json.5)" -ge 2 ]
  run -1 grep -l 'Pa STATE/amp.json' man/amp.json-*.5
}

@test "the table of who may run which verb is that of the option tables" {
  sh scripts/who.sh --check "$AMP_BUILD/bin"
  mkdir -p "$BATS_TEST_TMPDIR/docs"
  sed 's/`unbind`, //' docs/security.md >"$BATS_TEST_TMPDIR/docs/security.md"
  ln -s "$AMP_TOP/cmd" "$BATS_TEST_TMPDIR/cmd"
  cd "$BATS_TEST_TMPDIR"
  run -1 sh "$AMP_TOP/scripts/who.sh" --check "$AMP_BUILD/bin"
}

@test "the defaults of the schema are those of the options" {
  need jq
  local setting form option value
  while read -r setting option form; do
    # shellcheck disable=SC2086 # tool and verb
    value=$($form --options | awk -F '\t' -v o="$option" '$1 == "option" && $3 == o { print $9 }')
    run -0 jq -r --arg at "$setting" '[.properties | getpath($at | split(".") | [.[0], "properties", .[1], "default"])] | .[0] |
      if type == "string" then
        capture("^(?<n>[0-9]+)(?<u>ms|s|m|h|d)$") // {} |
        if .u then "\((.n | tonumber) * ({ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000}[.u]))ms" else empty end
      else tostring end' schemas/config/amp.json
    # A word is compared as it is.
    [ -n "$output" ] || output=$(jq -r --arg at "$setting" '.properties | getpath($at | split(".") | [.[0], "properties", .[1], "default"])' schemas/config/amp.json)
    [ "$output" = "$value" ] || {
      echo "$setting: the schema has $output, $form --$option has $value"
      return 1
    }
  done <<'EOS'
ack.severity severity amp-ack watch
ack.silence silence amp-ack watch
ack.window window amp-ack watch
inbox.busy_lease lease amp-route inbox
registry.interval interval agent-registry
registry.timeout timeout agent-registry
registry.misses misses agent-registry
route.patience patience amp-route
worktree.switch_ttl switch-ttl worktree-bind switch
worktree.post_create_timeout post-create-timeout worktree-bind bind
hitl.unavailable_after unavailable-after hitl-prompt
identity.require identity amp-route
EOS
}

@test "the page of each protocol has its types, and no other" {
  local p
  for p in amp sw4rm aop aof rtp; do
    for s in "schemas/$p"/*.json; do basename "$s" .json; done | sort >"$BATS_TEST_TMPDIR/schemas"
    sed -n '/^\.Ss Types/,/^\.Ss Checks/s/^\.It Li //p' "man/amp-protocol-$p.7" | sed 's/ , /\n/g' | sort >"$BATS_TEST_TMPDIR/page"
    [ -s "$BATS_TEST_TMPDIR/page" ]
    diff "$BATS_TEST_TMPDIR/schemas" "$BATS_TEST_TMPDIR/page" || {
      echo "man/amp-protocol-$p.7"
      return 1
    }
  done
}

@test "make html: every link leads somewhere, every page is in the index and in the search" {
  need mandoc
  local out=$BATS_TEST_TMPDIR/html f page
  sh scripts/html.sh "$out" 1.2.3
  cd "$out"
  # "FILE#ID" of each target, then of each link.
  for f in *.html; do
    echo "$f"
    grep -oE ' id="[^"]*"' "$f" | sed "s|.* id=\"|$f#|; s|\"\$||"
  done | sort -u >../targets
  for f in *.html; do
    grep -oE '(href|src)="[^"]*"' "$f" | sed -E 's/^(href|src)="//; s/"$//' | sed "s|^#|$f#|"
  done | grep -vE '^(https?|mailto):|^(style\.css|search(-index)?\.js)$' | sed 's/&#x00A7;/§/g' | sort -u >../links
  [ "$(wc -l <../links)" -gt 500 ]
  run -0 comm -23 ../links ../targets
  [ -z "$output" ]
  # Each heading is in the table of its page.
  for f in ./*.7.html; do
    [ "$(grep -c '<li class="l[12]">' "$f")" -eq "$(grep -oE '<h[12][^>]* id="' "$f" | wc -l)" ] || ! grep -q 'class="toc"' "$f" || {
      echo "$f"
      return 1
    }
  done
  # No address but those in the documents: nothing is loaded from elsewhere.
  run -1 grep -nE '(src|@import|url)[=(]"?(https?:)?//' ./*.html ./*.css ./*.js
  for page in "$AMP_TOP"/man/*.[157]; do
    page=${page##*/}
    grep -qF "href=\"$page.html\"" index.html
    grep -qF "{f:\"$page.html\"" search-index.js
    while read -r _ name section; do
      grep -qE "<a class=\"Xr\" href=\"[^\"]*\">$name\\($section\\)</a>" "$page.html" || {
        echo "$page.html: no link to $name($section)"
        return 1
      }
    done < <(grep -oE '(Xr|^\.Xr) (amp|(amp|agent|hitl|task|worktree)-[a-z0-9-]+|amp\.json[a-z-]*) [0-9]' "$AMP_TOP/man/$page" | sed 's/^\.//')
  done
  cd "$AMP_TOP"
  sh scripts/html.sh "$BATS_TEST_TMPDIR/again" 1.2.3
  diff -r "$out" "$BATS_TEST_TMPDIR/again"
}

@test "the search finds pages, options, codes and settings from file://" {
  need mandoc chromium
  sh scripts/html.sh "$BATS_TEST_TMPDIR/html" 1.2.3
  # find QUERY: the links that the search shows, best first.
  find_in_browser() {
    timeout 60 chromium --headless=new --no-sandbox --disable-gpu --user-data-dir="$BATS_TEST_TMPDIR/profile" --dump-dom \
      "file://$BATS_TEST_TMPDIR/html/index.html?q=$1" 2>/dev/null | sed -n '/id="results"/,/<\/ol>/p' |
      grep -oE '<li><a href="[^"]*"' | sed 's/.*href="//; s/"//'
  }
  [ "$(find_in_browser amp-ack-dead | head -n 1)" = amp-ack-dead.1.html ]
  find_in_browser no_route >"$BATS_TEST_TMPDIR/found"
  head -n 3 "$BATS_TEST_TMPDIR/found" | grep -qx 'amp-codes.7.html#no_route'
  find_in_browser ack.silence | head -n 1 | grep -qx 'amp.json.5.html#ack.silence'
  [ -z "$(find_in_browser xyzzyplugh)" ]
}

@test "make dist: the same from git and from the tarball" {
  need git
  [ -e .git ] || skip "not a git checkout"
  local d=$BATS_TEST_TMPDIR
  sh scripts/dist.sh amp-tools-0 "$d/one.tar.gz"
  tar -xzf "$d/one.tar.gz" -C "$d"
  (cd "$d/amp-tools-0" && mkdir -p build && touch build/x && sh scripts/dist.sh amp-tools-0 ../three.tar.gz)
  cmp "$d/one.tar.gz" "$d/three.tar.gz"
  # What belongs in it, and nothing else.
  diff <(git ls-files | while IFS= read -r f; do [ ! -e "$f" ] || echo "$f"; done | LC_ALL=C sort) \
    <(tar -tzf "$d/one.tar.gz" | sed 's|^amp-tools-0/||' | LC_ALL=C sort)
  [ "$(tar -tvzf "$d/one.tar.gz" --numeric-owner | awk '{ print $2, $4, $5 }' | sort -u | wc -l)" -eq 1 ]
  repo "$d/small"
  echo one >"$d/small/file"
  git -C "$d/small" add file
  (cd "$d/small" && SOURCE_DATE_EPOCH=86400 sh "$AMP_TOP/scripts/dist.sh" amp-tools-0 "$d/four.tar.gz")
  [ "$(TZ=UTC tar -tvzf "$d/four.tar.gz" | awk '{ print $4 }' | sort -u)" = 1970-01-02 ]
}

@test "debian/libamp0.symbols has the exports of libamp.so" {
  # A new function is added there with the version that brings it.
  local headers=(include/amp/*.h include/amp/*/*.h)
  diff <(sed -n 's/^ \(amp_[a-z0-9_]*\)@AMP_0 .*/\1/p' debian/libamp0.symbols | sort) <(sh scripts/exports.sh "${headers[@]}" | sort)
}

@test "debian/control builds with what the makefile asks for, amp(7) names each program" {
  local p
  for p in $(sed -n '/^DEPS_BUILD :=/,/[^\\]$/p' scripts/targets.mk | grep -oE '[a-z0-9.-]+-dev'); do
    grep -qE "^ $p( |,)" debian/control || {
      echo "Build-Depends lacks $p"
      return 1
    }
  done
  for p in cmd/*/main.c; do
    p=${p#cmd/}
    grep -qxF ".It Xr ${p%/main.c} 1" man/amp.7 || {
      echo "amp(7) lacks ${p%/main.c}"
      return 1
    }
  done
}
