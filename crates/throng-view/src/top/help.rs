//! The help of the view.

/// The lines of the help: at most 80 columns.
pub(super) const LINES: &[&str] = &[
    "q  quit    space, p  freeze the display    s  change the order    ?  help",
    "",
    "A look lasts half a second. Rates are of that time, all else is as of its end.",
    "",
    "node   a server that shares its topics with others over a bus. dropped: what the",
    "       others do not receive; lost: what came too fast. Both since it started.",
    "CORE   one event loop. open: its connections; in, out: messages; busy: the",
    "       share of the time in which it worked; max turn: the longest turn of its",
    "       loop, for which all other connections waited; mailbox: the most messages",
    "       of other cores that a turn found; queued: bytes for slow peers.",
    "TOPIC  members on all cores. publications: a second, since the look before;",
    "       waiting: publications that some members have not received yet.",
    "SLOW   peers that do not take what is sent. queued: bytes in this process;",
    "       in kernel: sent and not acknowledged; takes nothing for: since the",
    "       kernel last took bytes; behind for: since bytes began to wait.",
    "BUSY   the connections with the most work: their bytes, and a kilobyte for",
    "       each message and each send. One send may carry several messages.",
    "",
    "order by amount: members, queued bytes, work.",
    "order by rate: publications, the time in which a peer took nothing, messages.",
];
