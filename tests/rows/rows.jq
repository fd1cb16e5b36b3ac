# $map against what was $seen: {"taken"} or {"missed"} for each row of the map whose test ran; with $update the new map.
def key: "\(.machine) \(.from) \(.event) \(.guard | join(","))";

# The tests that ran, by file and number.
(reduce $tests[] as $t ({}; .[$t.file] += [$t.test])) as $named
| (reduce $printed[] as $r ({}; .["\($r.machine) \($r.row)"] = ($r | key))) as $key_of
# [{key, file, test}] of each row taken, and how many rows each test took.
| [$seen | split("\n")[] | select(. != "") | capture("^(?<machine>[^ ]*) (?<row>[0-9]*) .*/(?<file>[^/]*) (?<n>[0-9]*)$")
   | {key: $key_of["\(.machine) \(.row)"], file, test: $named[.file][(.n | tonumber) - 1]}] as $taken
| (reduce $taken[] as $t ({}; .["\($t.file) \($t.test)"] += 1)) as $count
| (reduce $taken[] as $t ({}; .[$t.key] += [$t | {file, test}])) as $by_row
| if $update == "" then
    $map[] | select(.from and .test and $named[.file]) | {file, test} as $test
    | if any($by_row[key][]?; . == $test) then {taken: key}
      else {missed: "\(.machine): \(.from) on \(.event)\(.guard | map(" " + .) | join("")): not taken in \(.file): \(.test)"} end
  else
    (reduce ($map[] | select(.from)) as $m ({}; .[$m | key] = $m)) as $old
    | ($printed | map(.machine) | unique[]) as $machine
    | (($printed | map(select(.machine == $machine).effects[]) | unique[]) as $effect
       | {$machine, $effect, handler: (first($map[] | select(.machine == $machine and .effect == $effect).handler) // null)}),
    ($printed[] | select(.machine == $machine) | key as $key | $old[$key] as $was
     | {machine, from, event, guard}
       + if $was.test and ($named[$was.file] | not) then $was | {file, test}
         elif $by_row[$key] then
           if any($by_row[$key][]; . == ($was | {file, test})) then $was | {file, test}
           else $by_row[$key] | min_by([$count["\(.file) \(.test)"], .file, .test]) end
         else $was | {reason} | with_entries(select(.value)) end)
  end
