#!/usr/bin/env bash
# The long checks of crates/ifma, on a processor with AVX-512 IFMA: about an hour. Run it from anywhere.
#   tests/long/ifma.sh [RUNS]
# RUNS (1 000 000 by default) is the number of runs of each function in the timing test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
runs=${1:-1000000}

grep -qw avx512ifma /proc/cpuinfo || { echo "this processor lacks AVX-512 IFMA" >&2 && exit 1; }
python3 crates/ifma/proofs/inverse.py
cargo test --release --locked -p weir-ifma -- --include-ignored
cargo run --release --locked -p weir-ifma --example timing -- "$runs"
python3 crates/ifma/proofs/machine_code.py "${CARGO_TARGET_DIR:-target}/release/examples/timing"
# Last, since its limits depend on the processor.
cargo bench --locked -p weir-ifma --bench x25519 --bench p256
