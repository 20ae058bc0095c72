//! Walls of the packet queue of each CPU.

use super::stage::Stage;
use super::{Cause, Provoked};

pub(crate) const WALLS: &[Cause] = &[Cause {
    name: "short packet queue",
    what: "netdev_max_backlog of 1, and packets that are spread over the CPUs (RPS)",
    expected: Some("softnet_drops"),
    says: &[],
    is_of_cpus: false,
    stage: Stage::here,
    provoke: short_packet_queue,
}];

/// Loopback removes a packet from the queue before the next one arrives, unless another CPU is to
/// process it.
fn short_packet_queue(stage: &mut Stage) -> Provoked {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        return Err("there is one CPU, so packets cannot be spread".into());
    }
    stage.at_server(
        "unshare -m sh -ec 'mount -t sysfs sysfs /sys; \
         echo 3 > /sys/class/net/lo/queues/rx-0/rps_cpus'",
    )?;
    let addr = stage.serve(&["echo"]);
    let _limited = stage.limit_machine(&[("net/core/netdev_max_backlog", "1")])?;
    stage.run(&format!(
        "target: tcp://{addr}\n\
         load: [{{ramp: {{to: 100, over: 1s}}}}, {{hold: {{for: 3s}}}}]\n\
         user: [connect, every: {{rate: 5/s, \
         do: [send: {{random: 128KiB}}, expect: {{bytes: 131072}}]}}]\n"
    ))
}
