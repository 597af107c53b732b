#!/usr/bin/env bash
# Fetches Node.js 0.12.18 into $WEIR_INSTALL.
set -euo pipefail
. ../common/node.sh

# The last agentkeepalive without dependencies; the one for 0.10 fails in this version.
node_version 0.12.18 1.2.1
