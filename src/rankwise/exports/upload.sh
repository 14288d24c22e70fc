#!/bin/sh
# Uploads these files: sh upload.sh http://localhost:9200
# Further arguments go to curl, for example: -u user -k
set -eu
: "${1:?give the address of the cluster, such as http://localhost:9200}"
address=$1
shift
cd "$(dirname "$0")"
