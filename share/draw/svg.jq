# The sequence of what was said as SVG:  amp-ack log --messages --task TASK | jq -nrf svg.jq >story.svg
include "history" {search: "./"};
include "figures" {search: "./"};
history | document([sequence])
