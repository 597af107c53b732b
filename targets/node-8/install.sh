#!/usr/bin/env bash
# Fetches Node.js 8.17.0 into $WEIR_INSTALL.
set -euo pipefail
. ../common/node.sh

node_version 8.17.0
