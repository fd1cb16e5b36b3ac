# What people decided, as one page, which loads nothing and has no scripts:
#   hitl-prompt audit --verify --json | jq -nrf decisions.jq >report.html
# Its policy (CSP) forbids both, for the case that a text got through.
include "history" {search: "./"};

def columns_of: ["at", "Time"], ["what", "What"], ["question", "Question"], ["task", "Task"], ["reason", "Reason"], ["risk", "Risk"],
  ["operator", "Who"], ["by", "Known by"], ["key", "Key"], ["channel", "Through"], ["shown", "Shown"], ["decision", "Decision"],
  ["why", "Why"], ["changed", "Effect"], ["code", "Code"], ["signature", "Signature"];

def page_style:
  "body{font:15px/1.4 sans-serif;margin:2em;color:#1b1b1b;background:#fff}h1{font-size:1.5em;margin:0 0 .3em}"
  + "table{border-collapse:collapse;width:100%;margin-top:1.5em}caption{text-align:left;font-weight:bold;padding-bottom:.5em}"
  + "th,td{border:1px solid #bbb;padding:.3em .5em;text-align:left;vertical-align:top;overflow-wrap:break-word}"
  + "th{background:#eee;white-space:nowrap}td.at,td.key,td.shown{font-family:monospace;font-size:.85em}td.at{white-space:nowrap}"
  + "td.changed{min-width:14em}td.key,td.shown{word-break:break-all;min-width:12em}div{overflow-x:auto}"
  + ".bad{color:#a00;font-weight:bold}.good{color:#060}@media print{body{margin:0}}";

def look: if .key == "signature" then (if .value == "valid" then " good" else " bad" end) else "" end;

[inputs] | (map(select(.what == "verified")) | first) as $log | map(select(.what != "verified"))
| map(.signature // empty) as $signatures | ($signatures | map(select(. == "valid")) | length) as $valid
| ($signatures | map(select(. == "unsigned")) | length) as $missing
| "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
  + "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
  + "<title>Decisions of people</title><style>\(page_style)</style></head><body><h1>Decisions of people</h1>",
  (if $log then
    "<p class=\"\(if $log.code then "bad" else "good" end)\">\($log.changed | xml)</p>"
    + "<p>Signatures: \($valid) valid, \(($signatures | length) - $valid - $missing) not valid, \($missing) missing</p>"
  else "<p>Not verified (hitl-prompt audit --verify)</p>" end),
  "<div><table><caption>\(length) questions, answers, suspensions, landings and cancelled tasks</caption><thead><tr>\(
    [columns_of | "<th scope=\"col\">\(.[1])</th>"] | join(""))</tr></thead><tbody>",
  (.[] | . as $e | "<tr>\([columns_of | {key: .[0], value: ($e[.[0]] // "")} | "<td class=\"\(.key)\(look)\">\(.value | xml)</td>"] | join(""))</tr>"),
  "</tbody></table></div></body></html>"
