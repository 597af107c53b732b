#!/usr/bin/env bash
# Fetches Node.js 6.17.1 into $WEIR_INSTALL.
set -euo pipefail
. ../common/node.sh

node_version 6.17.1
