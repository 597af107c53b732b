#!/usr/bin/env bash
# Fetches Node.js 4.9.1 into $WEIR_INSTALL.
set -euo pipefail
. ../common/node.sh

node_version 4.9.1
