//! The control socket of a running throng process: JSON lines over a Unix socket.
