#!/usr/bin/env bash
# Fetches Node.js 16.20.2 into $WEIR_INSTALL.
set -euo pipefail
. ../common/node.sh

node_version 16.20.2
