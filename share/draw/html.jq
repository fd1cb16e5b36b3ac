# One page with the sequence, charts and a table, which loads nothing and has no scripts:
#   amp-ack log --messages --task TASK | jq -nrf html.jq >story.html
# Its policy (CSP) forbids both, for the case that a text got through.
include "history" {search: "./"};
include "figures" {search: "./"};

def page_style:
  "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}"
  + "main{max-width:1280px;margin:0 auto;padding:28px 20px 60px}h1{font-size:22px;margin:0 0 2px;overflow-wrap:anywhere}"
  + "h2{font-size:16px;margin:34px 0 10px}.sub{color:var(--dim);margin:0}.tiles{display:flex;flex-wrap:wrap;gap:12px;margin:20px 0 8px}"
  + ".tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:10px 16px;min-width:120px}"
  + ".tile b{display:block;font-size:22px}.tile span{color:var(--dim);font-size:13px}"
  + ".fig{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px}"
  + ".fig svg{display:block;width:100%;min-width:900px;height:auto}"
  + "table{border-collapse:collapse;table-layout:fixed;width:100%;min-width:900px;font-size:13px}"
  + "th{text-align:left;color:var(--dim)}th,td{padding:4px 10px 4px 0;border-bottom:1px solid var(--line);vertical-align:top;"
  + "overflow-wrap:anywhere}td:first-child{font-variant-numeric:tabular-nums}.bad{color:var(--bad)}.good{color:var(--good)}.warn{color:var(--warn)}";

def tile($name): "<div class=\"tile\"><b>\(. | tostring | xml)</b><span>\($name)</span></div>";
def tiles:
  deliveries as $all | ([$all[] | .acked // empty - .sent] | sort) as $ms
  | ($all | length | tile("messages")),
    ([$all[] | select(.state | is_in("FULFILLED", "READ"))] | length | tile("read or done")),
    ([$all[] | select(failed)] | length | tile("failed or late")),
    ([.rows[] | select(.kind == "dead" and .from == null)] | length | tile("dead letters")),
    (spent | select(. > 0) | dollars | tile("spent"));

def figure($title): "<h2>\($title)</h2><div class=\"fig\">\(svg)</div>";

def cell($class; $text): "<td\(if $class == "" then "" else " class=\"\($class)\"" end)>\($text // "" | cut(160) | xml)</td>";
def table:
  [.rows[] | select(bookkeeping | not)] as $all
  | "<h2>Entries</h2>\(if $all | length > STEPS then "<p class=\"sub\">The first \(STEPS) of \($all | length).</p>" else "" end)<div class=\"fig\"><table>"
    + "<colgroup><col width=\"13%\"><col width=\"14%\"><col width=\"9%\"><col width=\"10%\"><col width=\"16%\"><col width=\"11%\"><col width=\"9%\"><col></colgroup>"
    + "<thead><tr><th>UTC</th><th>actor</th><th>kind</th><th>event</th><th>state</th><th>type</th><th>task</th><th>id</th></tr></thead><tbody>",
    ($all[:STEPS][] | "<tr>\(cell(""; .ms | moment))\(cell(""; .actor))\(cell(""; .kind))\(cell(""; .event))\(
      cell(if .kind | is_in("dead", "refused") then "bad" else .to // "" | look end; [.from, .to | strings] | join(" → ")))\(
      cell(""; .details.type // .details.code))\(cell(""; .details.task))\(cell(""; .id))</tr>"),
    "</tbody></table></div>";

history
| "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
  + "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
  + "<title>\(title | cut(100) | xml)</title><style>\(style)\(page_style)</style></head><body><main>"
  + "<h1>\(title | cut(200) | xml)</h1><p class=\"sub\">\([period, hint | strings] | join(" · "))</p>"
  + "<div class=\"tiles\">\([tiles] | join(""))</div>",
  (sequence | figure("What was said")), (work | figure("Work")), (waiting | figure("Waiting")), (latency | figure("Latency")),
  table, "</main></body></html>"
