// Go's crypto/tls as the peer: `tests/tls/peers.rs` says what it does.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
)

func check(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func talk(conn *tls.Conn) {
	check(conn.Handshake())
	buffer := make([]byte, 4096)
	var err error
	for err == nil {
		var length int
		length, err = conn.Read(buffer)
		if length > 0 {
			_, failed := conn.Write(buffer[:length])
			check(failed)
		}
	}
	state := conn.ConnectionState()
	conn.Close()
	// An end without close_notify is io.ErrUnexpectedEOF.
	fmt.Println(tls.VersionName(state.Version), state.DidResume, err == io.EOF)
}

func main() {
	role, folder := os.Args[1], os.Args[2]
	if role == "client" {
		authority, err := os.ReadFile(filepath.Join(folder, "ca.pem"))
		check(err)
		config := tls.Config{
			ServerName:         "localhost",
			RootCAs:            x509.NewCertPool(),
			ClientSessionCache: tls.NewLRUClientSessionCache(8),
		}
		config.RootCAs.AppendCertsFromPEM(authority)
		for range 2 {
			socket, err := net.Dial("tcp", "127.0.0.1:"+os.Args[3])
			check(err)
			talk(tls.Client(socket, &config))
		}
		return
	}
	pair, err := tls.LoadX509KeyPair(
		filepath.Join(folder, "chain.pem"), filepath.Join(folder, "key.pem"))
	check(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	config := tls.Config{Certificates: []tls.Certificate{pair}}
	for range 2 {
		socket, err := listener.Accept()
		check(err)
		talk(tls.Server(socket, &config))
	}
}
