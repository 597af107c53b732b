#!/usr/bin/env bash
# Fetches Node.js 0.12.18 into $WEIR_INSTALL.
set -euo pipefail
. ../common/node.sh

node_version 0.12.18
