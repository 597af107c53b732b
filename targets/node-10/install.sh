#!/usr/bin/env bash
# Fetches Node.js 10.24.1 into $WEIR_INSTALL.
set -euo pipefail
. ../common/node.sh

node_version 10.24.1
