# Charts over time as SVG: who worked when, what waited, how fast it was acknowledged:  amp-ack log | jq -nrf charts.jq >log.svg
include "history" {search: "./"};
include "figures" {search: "./"};
history | document([work, waiting, latency])
