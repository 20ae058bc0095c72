/usr/bin/tcpkali -c10 --connect-rate=5k --channel-lifetime 0 [::1]:5555
