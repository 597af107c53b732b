#!/usr/bin/env bash
# Fetches Node.js 26.10.0 into $WEIR_INSTALL.
set -euo pipefail
. ../common/node.sh

node_version 26.10.0
