//! The kernel interface of one core: epoll, sockets, fd tables, mailboxes, permits; the only unsafe crate.
