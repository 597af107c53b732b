#!/usr/bin/env bash
# Fetches Node.js 18.20.8 into $WEIR_INSTALL.
set -euo pipefail
. ../common/node.sh

node_version 18.20.8
