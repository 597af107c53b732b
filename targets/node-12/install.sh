#!/usr/bin/env bash
# Fetches Node.js 12.22.12 into $WEIR_INSTALL.
set -euo pipefail
. ../common/node.sh

node_version 12.22.12
