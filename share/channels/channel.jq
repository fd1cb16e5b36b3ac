# What the scripts of this directory have in common.

# The question for services that take about 4,000 bytes: it is cut at 3,400 bytes, but the answers are not.
def short:
  "\(.text)\(.evidence // "")"
  | (if utf8bytelength <= 3400 then .
     else .[:3400] | until(utf8bytelength <= 3400; .[:length * 4 / 5 | floor]) | split("\n")[:-1] | join("\n") + "\n[cut]\n" end)
    + "\n";

# How the question was settled.
def outcome: "\(.decision) by \(.operator // ""), through \(.channel // "")";

# A setting is missing.
def need($name): if (.settings[$name] // "") == "" then .invalid = "the setting \($name) is missing" else . end;
