tcpkali --ws -H 'Authorization: Bearer x' -c 10k -T -1 -m '{"n": "${x}"}' --channel-bandwidth-upstream 100kbps 127.0.0.1:9000
