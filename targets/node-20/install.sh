#!/usr/bin/env bash
# Fetches Node.js 20.20.2 into $WEIR_INSTALL.
set -euo pipefail
. ../common/node.sh

node_version 20.20.2
