#!/usr/bin/env bash
# Fetches Node.js 14.21.3 into $WEIR_INSTALL.
set -euo pipefail
. ../common/node.sh

node_version 14.21.3
