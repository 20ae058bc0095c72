//! Memory: of the machine, of the control group, and the pages of TCP's buffers.

use throng_report::render::bytes;

use super::check::{Check, LimitValue, Remedy, Sufficiency};
use super::{MachineLimits, Requirements};
use crate::fact::Fact;
use crate::slabinfo::SlabCaches;

/// What one end of an idle connection takes of the kernel's memory, where the sizes of its objects cannot be read. Of
/// Linux 6.18 on x86-64.
pub const KERNEL_BYTES: u64 = 3_984;

/// What one end of an idle connection takes of the kernel's memory on a machine with these objects, its watch of epoll included;
/// none when one of the caches is missing.
pub fn kernel_bytes(slabs: &SlabCaches, page_bytes: u64) -> Option<u64> {
    let cost = |name: &str| slabs.get(name).map(|slab| slab.cost_bytes(page_bytes));
    let mut all = EPPOLL_ENTRY_BYTES.saturating_add(cost("ep_head").unwrap_or(0));
    for name in ["TCP", "sock_inode_cache", "filp", "dentry", "eventpoll_epi"] {
        all = all.saturating_add(cost(name)?);
    }
    Some(all)
}

/// What of the machine's memory is free.
pub(super) fn machine(ask: &Requirements, machine: &MachineLimits) -> Option<Check> {
    let each = each(ask, machine);
    let free =
        machine.memory.clone().map(|memory| memory.available_bytes.unwrap_or(memory.total_bytes));
    let found = free.map(|free| LimitValue::linear(free / 100 * FREE_PERCENT, each.total(), 0));
    let needs = ask.connections.saturating_mul(each.total());
    let check = Check::stops("memory", "memory", ask.connections, needs, found).in_bytes();
    let because = format!("{}; {FREE_PERCENT} % of what is free", each.words(ask));
    Some(check.because(because).else_do(|| {
        // As much as the check above finds to be enough, which takes whole hundreds of bytes.
        let enough = needs.div_ceil(FREE_PERCENT).saturating_mul(100);
        let short = machine
            .memory
            .known()
            .map_or(0, |m| enough.saturating_sub(m.available_bytes.unwrap_or(m.total_bytes)));
        Remedy::command(format!(
            "{} more memory, or fewer connections a machine",
            bytes(short as f64)
        ))
    }))
}

/// What the tightest control group leaves.
pub(super) fn cgroup(ask: &Requirements, machine: &MachineLimits) -> Option<Check> {
    let group = match &machine.cgroup_memory {
        Fact::Known(None) => return None,
        Fact::Known(Some(group)) => Fact::Known(*group),
        Fact::Unknown(why) => Fact::Unknown(why.clone()),
    };
    let taken = group.known().map_or(0, |group| group.taken_bytes);
    let free = group.map(|group| group.left_bytes());
    let each = each(ask, machine);
    let needs = ask.connections.saturating_mul(each.total());
    let found = free.map(|free| LimitValue::linear(free / 100 * FREE_PERCENT, each.total(), 0));
    let check =
        Check::stops("cgroup_memory", "memory of the control group", ask.connections, needs, found);
    Some(check.in_bytes().because(each.words(ask)).else_do(|| {
        Remedy::command(format!(
            "systemctl set-property UNIT MemoryMax={}",
            (needs.saturating_mul(100) / FREE_PERCENT).saturating_add(taken)
        ))
        .or("docker run --memory")
    }))
}

/// Pages that the buffers of all sockets may take.
pub(super) fn buffers(ask: &Requirements, machine: &MachineLimits) -> Option<Check> {
    let used = machine.tcp_mem_used_pages.known().copied().unwrap_or(0);
    let needs = ask.connections.div_ceil(CONNECTIONS_PER_BUFFER_PAGE);
    let found = machine.tcp_mem.clone().map(|[_, _, max]| {
        let has = max.saturating_sub(used);
        let enough = Sufficiency::For(has.saturating_mul(CONNECTIONS_PER_BUFFER_PAGE));
        LimitValue { has, enough }
    });
    let check =
        Check::stops("tcp_mem", "net.ipv4.tcp_mem, pages left", ask.connections, needs, found);
    let because =
        format!("a page for {CONNECTIONS_PER_BUFFER_PAGE}: buffers are empty nearly always");
    Some(check.because(because).else_do(|| {
        let old = machine.tcp_mem.known().copied().unwrap_or([0; 3]);
        let most = needs.saturating_add(used);
        let new = [old[0].max(most / 2), old[1].max(most * 3 / 4), old[2].max(most)];
        let words = |pages: [u64; 3]| pages.map(|pages| pages.to_string()).join(" ");
        Remedy::sysctl("net.ipv4.tcp_mem", words(old), words(new))
    }))
}

/// What one connection takes.
struct Each {
    kernel_bytes: u64,
    user_bytes: u64,
    /// Whether the kernel's part is this machine's own.
    is_read: bool,
}

impl Each {
    fn total(&self) -> u64 {
        self.kernel_bytes.saturating_add(self.user_bytes)
    }

    fn words(&self, ask: &Requirements) -> String {
        let whose = if self.is_read {
            "this machine's slabs"
        } else {
            "as of Linux 6.18: slabinfo is not readable"
        };
        format!(
            "{} B of kernel ({whose}) + {} B of {} each",
            self.kernel_bytes,
            self.user_bytes,
            if ask.ends() == 1 { "program" } else { "both programs" }
        )
    }
}

fn each(ask: &Requirements, machine: &MachineLimits) -> Each {
    let read = machine.slabs.known().and_then(|slabs| kernel_bytes(slabs, machine.page_bytes));
    Each {
        kernel_bytes: read.unwrap_or(KERNEL_BYTES).saturating_mul(ask.ends()),
        user_bytes: ask.user_bytes.saturating_mul(ask.ends()),
        is_read: read.is_some(),
    }
}

/// `struct eppoll_entry`, whose cache is merged with another and so has no line of its own.
const EPPOLL_ENTRY_BYTES: u64 = 64;
/// How much of the free memory connections may take: the rest is for what is sent, and for everything else.
const FREE_PERCENT: u64 = 90;
/// Connections whose buffers share a page on average: those that say a few bytes now and then have theirs empty nearly
/// always. A limit that is reached all the same shows as `TCPMemoryPressures`.
const CONNECTIONS_PER_BUFFER_PAGE: u64 = 16;
