#!/usr/bin/env bash
# Fetches Node.js 22.23.3 into $WEIR_INSTALL.
set -euo pipefail
. ../common/node.sh

node_version 22.23.3
