// A chat on gobwas/ws: every text message goes to all clients, the sender included.
//
//	chat PORT        (GOMAXPROCS threads)
//
// A goroutine for each connection, which reads. Connections are spread over shards, each with a goroutine that
// writes a message's one frame to all of its connections.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

const messagesMax = 1024

type shard struct {
	lock        sync.Mutex
	connections map[net.Conn]struct{}
	frames      chan []byte
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "chat PORT")
		os.Exit(2)
	}
	// Go reads its backlog from the system and sets TCP_NODELAY by itself.
	config := net.ListenConfig{Control: reuseAddress}
	listener, err := config.Listen(context.Background(), "tcp4", "127.0.0.1:"+os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shards := make([]*shard, runtime.GOMAXPROCS(0))
	for i := range shards {
		shards[i] = &shard{connections: map[net.Conn]struct{}{}, frames: make(chan []byte, messagesMax)}
		go shards[i].writeAll()
	}
	for next := 0; ; next++ {
		connection, err := listener.Accept()
		if err != nil {
			continue
		}
		go serve(connection, shards[next%len(shards)], shards)
	}
}

func reuseAddress(_, _ string, raw syscall.RawConn) error {
	var failure error
	err := raw.Control(func(fd uintptr) {
		failure = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	})
	if err != nil {
		return err
	}
	return failure
}

func serve(connection net.Conn, own *shard, shards []*shard) {
	defer connection.Close()
	if _, err := ws.Upgrade(connection); err != nil {
		return
	}
	own.add(connection)
	defer own.remove(connection)
	for {
		text, operation, err := readMessage(connection)
		if err != nil {
			return
		}
		if operation != ws.OpText {
			continue
		}
		frame := ws.MustCompileFrame(ws.NewTextFrame(text))
		for _, each := range shards {
			each.frames <- frame
		}
	}
}

// Answers pings and closes by itself.
func readMessage(connection net.Conn) ([]byte, ws.OpCode, error) {
	return wsutil.ReadClientData(struct {
		io.Reader
		io.Writer
	}{connection, connection})
}

func (s *shard) add(connection net.Conn) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.connections[connection] = struct{}{}
}

func (s *shard) remove(connection net.Conn) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.connections, connection)
}

func (s *shard) writeAll() {
	for frame := range s.frames {
		s.lock.Lock()
		for connection := range s.connections {
			// The reader ends a connection that cannot be written to.
			_, _ = connection.Write(frame)
		}
		s.lock.Unlock()
	}
}
