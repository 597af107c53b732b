#!/usr/bin/env bash
# CPU of `weir load` and of wrk per request, against `weir origin`, in cleartext and over TLS 1.3 with keep-alive.
#
# Both run in turn, the origin on one core and the client on another, with the same connections, answers, TLS version
# and suite. CPU is user + system time of the whole client process, start-up and handshakes included, over all the
# requests that it got answered. Rates are printed for orientation only.
#
# usage: load-vs-wrk.sh [ROUNDS [SECONDS]]      WEIR=path of the program, ORIGIN_CORE and LOAD_CORE to choose cores
set -euo pipefail
rounds=${1:-5}
seconds=${2:-3}
origin_core=${ORIGIN_CORE:-0}
load_core=${LOAD_CORE:-1}
weir=${WEIR:-$(dirname "$0")/../../../target/release/weir}
command -v wrk >/dev/null || { echo "wrk is not on the PATH: skipped"; exit 0; }
[ -x "$weir" ] || { echo "$weir is missing: cargo build --release, or set WEIR"; exit 1; }

work=$(mktemp -d)
taskset -c "$origin_core" "$weir" origin --listen http://127.0.0.1:0 --listen https://127.0.0.1:0 --workers 1 \
    >"$work/origin" &
origin=$!
trap 'kill $origin; wait $origin || true; rm -r "$work"' EXIT
until grep -q 'listening on https' "$work/origin"; do kill -0 $origin; sleep 0.05; done
http=$(sed -n 's/^listening on \(http:.*\)/\1/p' "$work/origin")
https=$(sed -n 's/^listening on \(https:.*\)/\1/p' "$work/origin")

TIMEFORMAT='%U %S'
# Prints microseconds of CPU per request, and requests per second.
weir_load() {
    { time taskset -c "$load_core" "$weir" load "$1/bytes/1000" -c 64 -d "${seconds}s" --warmup 0s -k --tls 1.3 \
        --suite aes256-gcm-sha384 --json - >"$work/json"; } 2>"$work/time"
    local requests
    requests=$(sed -n 's/^ *"answered_in_all": \([0-9]*\),$/\1/p' "$work/json")
    grep -q '"validity": "valid"' "$work/json" || { grep '"validity"' "$work/json" >&2; exit 1; }
    tail -n 1 "$work/time" | awk -v n="$requests" -v s="$seconds" '{ printf "%.2f %.0f\n", ($1 + $2) * 1e6 / n, n / s }'
}
wrk_load() {
    { time taskset -c "$load_core" wrk -t1 -c64 -d"${seconds}s" "$1/bytes/1000" >"$work/wrk"; } 2>"$work/time"
    local requests
    requests=$(sed -n 's/^ *\([0-9]*\) requests in .*/\1/p' "$work/wrk")
    tail -n 1 "$work/time" | awk -v n="$requests" -v s="$seconds" '{ printf "%.2f %.0f\n", ($1 + $2) * 1e6 / n, n / s }'
}

for url in "$http" "$https"; do
    scheme=${url%%:*}
    echo "$scheme    weir load us/request (requests/s)    wrk us/request (requests/s)    ratio"
    : >"$work/ratios"
    for round in $(seq "$rounds"); do
        # The order changes, so that a drift of the machine favours neither.
        if [ $((round % 2)) = 1 ]; then
            ours=$(weir_load "$url"); theirs=$(wrk_load "$url")
        else
            theirs=$(wrk_load "$url"); ours=$(weir_load "$url")
        fi
        echo "$ours $theirs" | awk '{ printf "  %8.2f (%6d) %30.2f (%6d) %22.3f\n", $1, $2, $3, $4, $1 / $3 }'
        echo "$ours $theirs" | awk '{ print $1 / $3 }' >>"$work/ratios"
    done
    sort -n "$work/ratios" | awk -v s="$scheme" '{ a[NR] = $1 }
        END { printf "%s median ratio of CPU per request, weir load / wrk: %.3f (%.3f to %.3f, %d rounds)\n\n", s,
            (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2, a[1], a[NR], NR }'
done
