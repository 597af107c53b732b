#!/usr/bin/env bash
# Fetches Node.js 24.21.0 into $WEIR_INSTALL.
set -euo pipefail
. ../common/node.sh

node_version 24.21.0
