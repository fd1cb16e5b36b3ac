# SVG figures of a history, each at most 1280 wide. A figure is {height, svg}; its top is at 0.
include "history" {search: "./"};

# ---- parts ----

def WIDTH: 1280;
def r1: . * 10 | round / 10;
def text($x; $y; $class; $anchor; $text):
  "<text x=\"\($x | r1)\" y=\"\($y | r1)\" class=\"\($class)\"" +
  (if $anchor == "start" then "" else " text-anchor=\"\($anchor)\"" end) + ">\($text | xml)</text>";
def line($x1; $y1; $x2; $y2; $class):
  "<line x1=\"\($x1 | r1)\" y1=\"\($y1 | r1)\" x2=\"\($x2 | r1)\" y2=\"\($y2 | r1)\" class=\"\($class)\"/>";
def rect($x; $y; $w; $h; $class; $hint):
  "<rect x=\"\($x | r1)\" y=\"\($y | r1)\" width=\"\($w | r1)\" height=\"\($h | r1)\" rx=\"3\" class=\"\($class)\"" +
  if $hint == "" then "/>" else "><title>\($hint | cut(200) | xml)</title></rect>" end;
# Its point is at $x, $y; $way: 1 from the left, -1 from the right.
def point($x; $y; $way; $class): "<path d=\"M\($x | r1) \($y | r1)l\($way * -8) -4v8z\" class=\"p\($class)\"/>";

# Light, and dark where the reader asks for it.
def style:
  ":root{color-scheme:light dark;--bg:#fff;--fg:#1d2733;--dim:#5d6b7a;--line:#d5dce4;--card:#f6f8fa;--c0:#2f6fde;--c1:#1a8754;"
  + "--c2:#b3580a;--c3:#8a3fc7;--c4:#0b7d90;--c5:#a8325e;--bad:#c9302c;--good:#1a8754;--warn:#a86500}"
  + "@media(prefers-color-scheme:dark){:root{--bg:#12171d;--fg:#dde4ec;--dim:#93a1b0;--line:#2c3743;--card:#1a2129;--c0:#6ba1ff;"
  + "--c1:#4cc38a;--c2:#f0a35c;--c3:#c291f5;--c4:#4cc0d2;--c5:#ef7fa8;--bad:#ff7b72;--good:#4cc38a;--warn:#e3b341}}"
  + "svg{font:13px system-ui,-apple-system,'Segoe UI',sans-serif}text{fill:var(--fg)}.d{fill:var(--dim);font-size:12px}"
  + ".h{font-weight:600;font-size:14px}.m{font:12px 'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}"
  + ".w,.m tspan{font-weight:700}.b{fill:var(--bg)}.k{fill:var(--card);stroke:var(--line)}.g{stroke:var(--line)}"
  + ".l{stroke:var(--line);stroke-dasharray:3 4}.q{stroke:var(--line);stroke-dasharray:1 4}"
  + ".a{stroke:var(--c0);stroke-width:1.6;fill:none}.abad{stroke:var(--bad)}.agood{stroke:var(--good)}.awarn{stroke:var(--warn)}"
  + ".p{fill:var(--c0)}.x{fill:var(--dim)}.pbad,.xbad{fill:var(--bad)}.pgood,.xgood{fill:var(--good)}.pwarn,.xwarn{fill:var(--warn)}"
  + ([range(6) | ".s\(.){fill:var(--c\(.))}.t\(.){stroke:var(--c\(.))}"] | add)
  + ".sx{fill:var(--bad)}.t{fill:none;stroke-width:1.8}";

# ---- the sequence: time, an arrow in the lanes of the actors, what was said ----

# Of acknowledgements only the outcomes of protocols that have no message for them.

def LANES: {at: 124, width: 540};
def SAID: {at: 690, room: 78, lines: 3};
def BLOCK: 40; # steps under one head

# How the delivery of a message went on.
def delivered: if . == null then null else
  [if .read and .read != .end then "read after \(.read - .sent | duration)" else null end,
   if .end then "\(.state | ascii_downcase) after \(.end - .sent | duration)" else null end | strings] | join(", ") end;

def said($h): [.said[], (if .is == "message" then $h.sent[.id // ""] | delivered else null end) | strings | select(. != "")] | join(" · ");

def sequence:
  . as $h | ([steps | select(.is != "reply" or (.what == "FULFILLED" and .protocol != "amp"))] | {all: length, steps: .[:STEPS]}) as $s
  | ($s.steps | actors(ACTORS)) as $who
  | ([$h.last - $h.first, 86400000] | min) as $span
  | (LANES.width / ([$who | length, 3] | max)) as $gap
  | any($who[]; columns * 7.4 > $gap - 8) as $slant
  | (if $slant then 104 else 34 end) as $head
  | def lane($a): ($who | index([$a]) // (length - 1)) * $gap + $gap / 2 + LANES.at;
    def heads($y): text(16; $y + $head - 12; "d"; "start"; "UTC"),
      ($who[] | "<text transform=\"translate(\(lane(.) | r1) \($y + $head - 12))\(if $slant then " rotate(-35)" else "" end)\" class=\"m w\" text-anchor=\"\(
        if $slant then "start" else "middle" end)\"><title>\(cut(200) | xml)</title>\(fit(20) | xml)</text>");
    def arrow($y): (.look | if . == "" then "" else " a" + . end) as $line | .look as $look |
      lane(.from) as $a | lane(.to) as $b | (if $b < $a then -1 else 1 end) as $way |
      if $a == $b then "<path d=\"M\($a | r1) \($y - 5)h18v8h-11\" class=\"a\($line)\"/>", point($a + 1; $y + 3; -1; $look)
      else line($a; $y; $b - $way * 6; $y; "a\($line)"), point($b; $y; $way; $look) end;
    def figure($y):
      if .is == "state" or .from == null then line(LANES.at; $y; LANES.at + LANES.width; $y; "g"),
        "<circle cx=\"\(LANES.at)\" cy=\"\($y)\" r=\"4\" class=\"x\(.look)\"/>"
      elif .is == "note" and (.to == null or .to == .from) then "<circle cx=\"\(lane(.from) | r1)\" cy=\"\($y)\" r=\"4\" class=\"x\(.look)\"/>"
      else arrow($y) end,
      (([.from, .to | strings | lane(.)] | max // (LANES.at + LANES.width)) as $x |
        if .is == "state" then empty else line($x + 24; $y; SAID.at - 10; $y; "q") end);
    def words($lines; $y): (.what | visible | cut(SAID.room)) as $what
      | "<g><title>\([.what, .said[], .id // empty] | join(" ") | cut(1000) | xml)</title>",
        (range($lines | length) as $i | $lines[$i] as $text | "<text x=\"\(SAID.at)\" y=\"\($y + $i * 15)\" class=\"m\">" +
          if $i == 0 and ($text | startswith($what)) then "<tspan>\($what | xml)</tspan>\($text[($what | length):] | xml)" else $text | xml end + "</text>"),
        "</g>";
    [foreach $s.steps[] as $step ({y: 0, n: 0, day: ($h.first | day | if . == ($h.last | day) then . else "" end), clock: ""};
      ($step.ms | clock($span)) as $clock | ($step.ms | day) as $day | .clock as $was
      | ("\($step.what) \($step | said($h))" | wrap(SAID.room; SAID.lines)) as $lines
      | .lanes = [] | .out = [if .n % BLOCK == 0 then heads(.y) else empty end]
      | if .n % BLOCK == 0 then .top = .y + $head | .y = .y + $head + 8 else . end
      | if $day != .day then .out = .out + [text(16; .y + 14; "d"; "start"; $day)] | .y = .y + 20 | .day = $day else . end
      | (.y + 14) as $y
      | .y = .y + 24 + 15 * (($lines | length) - 1) | .n = .n + 1 | .clock = $clock
      | .out = .out + [if $clock == $was then empty else text(16; $y; "d"; "start"; $clock) end,
          ($step | figure($y - 4), words($lines; $y))]
      | if .n % BLOCK == 0 or .n == ($s.steps | length) then . as $block
          | .lanes = [$who[] | lane(.) as $x | line($x; $block.top; $x; $block.y; "l")] | .y = .y + 16 else . end;
      {y, lanes, out})]
  | if . == [] then {height: 30, svg: text(16; 20; "d"; "start"; "nothing to draw")}
    else .[-1].y as $y | {height: ($y + if $s.all > STEPS then 20 else -10 end), svg: (([.[].lanes[], .[].out[]] | join("")) +
      if $s.all > STEPS then text(16; $y + 10; "d"; "start"; "\($s.all - STEPS) more are left out") else "" end)} end;

# ---- charts over time ----

def PLOT: {at: 190, width: 1060, height: 170};
def time_x($h): PLOT.at + PLOT.width * if $h.last > $h.first then (. - $h.first) / ($h.last - $h.first) else 0.5 end;
def frame($h; $title; $height):
  text(16; 16; "h"; "start"; $title),
  (range(6) | . as $i | (PLOT.at + $i * PLOT.width / 5) as $x | line($x; 28; $x; 28 + $height; "g"),
    text($x; 46 + $height; "d"; (if $i == 5 then "end" else "middle" end); $h.first + ($h.last - $h.first) * $i / 5 | floor | clock($h.last - $h.first) + if $i == 0 then " UTC" else "" end));
def scale($most; form):
  range(3) | (28 + PLOT.height - . * PLOT.height / 2) as $y | line(PLOT.at; $y; PLOT.at + PLOT.width; $y; "g"),
    text(PLOT.at - 10; $y + 4; "d"; "end"; $most * . / 2 | form);
def legend($names): range($names | length) | (PLOT.at + . * 180) as $x |
  rect($x; PLOT.height + 59; 10; 10; "s\(.)"; ""), text($x + 16; PLOT.height + 68; "m"; "start"; $names[.] | fit(20));
# The names that lines have: five, and one for the others.
def lines_of(f): reduce .[] as $d ([]; ($d | f) as $name | if index([$name]) then . else . + [$name] end) |
  if length > 6 then .[:5] + ["others"] else . end;
def line_of($names; f): f as $name | $names | index([$name]) // 5;

# Who worked when on what: as the agents' records say, for other recipients as their messages do.
def work:
  . as $h | def running: (.to // "") | test("RUNNING");
  ([.rows[] | select(.what == "step" and .kind == "agent")] | group_by(.id) | map(
    [foreach (.[], null) as $r ({}; .bar = null
      | if .open and ($r == null or ($r | running | not)) then
          .bar = .open + {to: ($r.ms // $h.last), failed: (($r.to // "") | test("FAILED"))} | .open = null else . end
      | if .open == null and $r != null and ($r | running) then
          .open = {who: $r.id, from: $r.ms, task: ($r.details.task // ""), what: "works on"} else . end; .bar | objects)])
   | add // []) as $agents
  | ([$agents[].who] | unique) as $known
  | ($agents + [deliveries[] | .to as $to | select(($to | strings) and ($known | index([$to]) | not)) | (.read // .sent) as $from
      | {who: $to, from: $from, to: (.end // $from), task: (.task // .correlation // ""), what: (.type // ""), failed: failed}]) as $bars
  | ($bars | [.[] | {from: .who, to: null}] | actors(40)) as $who | ([$bars[].task] | unique) as $tasks
  | (([$who | length, 1] | max) * 26 + 4) as $height
  | {height: ($height + 56), svg: ([frame($h; "Work of the actors, by task"; $height),
      (range($who | length) as $i | text(PLOT.at - 10; 45 + $i * 26; "m"; "end"; $who[$i] | fit(22))),
      ($bars[] | (.from | time_x($h)) as $x | .task as $task | .who as $name | ($who | index([$name]) // 39) as $row |
        rect($x; 32 + $row * 26; [(.to | time_x($h)) - $x, 2] | max; 18;
          "s\(if .failed then "x" else $tasks | index([$task]) % 6 end)"; "\(.what) \(.task), \(.to - .from | duration)")),
      if $who == [] then text(PLOT.at + 10; 46; "d"; "start"; "nothing to draw") else empty end] | join(""))};

def waiting:
  . as $h | deliveries as $all | ($all | lines_of(.to // "unknown")) as $names
  | [$all[] | line_of($names; .to // "unknown") as $line | {ms: .sent, $line, by: 1}, ((.read // .end // .acked) | numbers | {ms: ., $line, by: -1})]
  | sort_by(.ms) as $changes
  | ([range($names | length) as $i | [foreach ($changes[] | select(.line == $i)) as $c ({n: 0}; .n += $c.by | .ms = $c.ms)]]) as $lines
  | ([$lines[][].n, 1] | max / 2 | ceil * 2) as $most
  | {height: (PLOT.height + 80), svg: ([frame($h; "Messages that wait for each actor"; PLOT.height), scale($most; tostring),
      (range($names | length) as $i | "<path class=\"t t\($i)\" d=\"M\(PLOT.at) \(28 + PLOT.height)" +
        ([$lines[$i][] | "H\(.ms | time_x($h) | r1)V\(28 + PLOT.height * (1 - .n / $most) | r1)"] | join("")) + "H\(PLOT.at + PLOT.width)\"/>"),
      legend($names)] | join(""))};

def latency:
  . as $h | [deliveries[] | select(.acked)] as $all | ([$all[] | .acked - .sent | if . < 0 then 0 else . end] | sort) as $ms
  | ($all | lines_of(.to // "unknown")) as $names | ([$ms[], 1] | max) as $most
  | {height: (PLOT.height + 80), svg: ([frame($h; "Time until the first acknowledgement: " + if $ms == [] then "none yet" else
        "median \($ms[$ms | length / 2 | floor] | duration), 99th percentile \($ms[($ms | length - 1) * 0.99 | floor] | duration)" end; PLOT.height),
      scale($most; duration),
      ($all[] | "<circle cx=\"\(.sent | time_x($h) | r1)\" cy=\"\(28 + PLOT.height * (1 - ([.acked - .sent, 0] | max) / $most) | r1)\" r=\"2.6\" class=\"s\(
        if failed then "x" else line_of($names; .to // "unknown") end)\"/>"),
      legend($names)] | join(""))};

# ---- documents ----

def svg: "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(WIDTH) \(.height + 8 | ceil)\" width=\"\(WIDTH)\" height=\"\(
  .height + 8 | ceil)\" role=\"img\">\(.svg)</svg>";
# A document of its own with these figures, one below the other.
def document($figures):
  (reduce $figures[] as $f ({height: 56, svg: ""};
    .height as $y | {height: ($y + $f.height + 24), svg: (.svg + "<g transform=\"translate(0 \($y | r1))\">\($f.svg)</g>")})) as $all
  | {height: $all.height, svg: ("<style>\(style)</style>" + rect(0; 0; WIDTH; $all.height + 8; "b"; "") +
      text(16; 26; "h"; "start"; title | fit(80)) + text(16; 44; "d"; "start"; [period, hint | strings] | join(" · ")) + $all.svg)} | svg;
