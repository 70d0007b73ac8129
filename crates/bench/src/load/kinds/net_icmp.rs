//! `net-icmp`: 65,500-byte echo requests, one every 2 ms. `ping`, or the same over a socket of our own.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::Duration;

use model::{LoadKind, LoadPlan};
use probe::clock;
use record::Achieved;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, recv, sendto,
    socket_with, sockopt,
};

use crate::load::kind::{Gauge, Load, Program, Setting, Window};
use crate::load::tally::Tally;

pub(crate) struct NetIcmp;

/// Bytes of payload of a request: near the largest that IPv4 can carry.
const BYTES: usize = 65_500;
/// Time between two requests, ns: the shortest that ping allows without privilege.
const INTERVAL_NS: i64 = 2_000_000;
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_millis(200);
/// Bytes of the ICMP header.
const HEADER: usize = 8;
const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;

impl Load for NetIcmp {
    fn kind(&self) -> LoadKind {
        LoadKind::NetIcmp
    }

    fn does(&self) -> &'static str {
        "sends a 65,500-byte ping every 2 ms over loopback or a veth pair"
    }

    fn program(&self) -> Option<Program> {
        Some(Program {
            name: "ping",
            package: "iputils-ping",
            version: &["-V"],
        })
    }

    fn command(&self, _: &LoadPlan, setting: &Setting) -> Vec<String> {
        [
            "ping",
            "-q",
            "-n",
            "-i",
            "0.002",
            "-s",
            "65500",
            setting.peer(),
        ]
        .map(str::to_owned)
        .to_vec()
    }

    fn told(&self, window: &Window<'_>) -> Vec<Achieved> {
        summary(window.log).unwrap_or_default()
    }

    fn gauges(&self) -> Vec<Gauge> {
        vec![
            Gauge::rate("pings answered", "1/s", 1.0),
            Gauge::count("pings lost", "pings"),
        ]
    }

    fn work(&self, setting: &Setting, tally: &Tally) -> String {
        match ping(setting, tally) {
            Ok(never) => match never {},
            Err(error) => format!("pings to {}: {error}", setting.peer()),
        }
    }

    fn needs_network(&self) -> bool {
        true
    }
}

/// `500 packets transmitted, 499 received, 0.2% packet loss, time 1001ms`
fn summary(log: &str) -> Option<Vec<Achieved>> {
    let line = log
        .lines()
        .find(|line| line.contains("packets transmitted"))?;
    let number = |what: &str| -> Option<f64> {
        let (before, _) = line.split_once(what)?;
        before.split_whitespace().last()?.parse().ok()
    };
    let (sent, received) = (number(" packets transmitted")?, number(" received")?);
    let (_, time) = line.rsplit_once("time ")?;
    let ms: f64 = time.trim_end_matches("ms").trim().parse().ok()?;
    let achieved = |quantity: &str, unit: &str, value: f64| Achieved {
        quantity: quantity.to_owned(),
        unit: unit.to_owned(),
        value,
        window_ns: (ms * 1e6) as i64,
    };
    Some(vec![
        achieved("pings answered", "1/s", received * 1000.0 / ms.max(1.0)),
        achieved("pings lost", "pings", sent - received),
    ])
}

enum Never {}

fn ping(setting: &Setting, tally: &Tally) -> std::io::Result<Never> {
    tally.die_with_coordinator()?;
    let peer: Ipv4Addr = setting.peer().parse().map_err(std::io::Error::other)?;
    let socket = open()?;
    let address = SocketAddrV4::new(peer, 0);
    let identity = std::process::id() as u16;
    let mut request = vec![0x5a; HEADER + BYTES];
    let mut next = clock::now();
    for sequence in (0..=u16::MAX).cycle() {
        head(&mut request, identity, sequence);
        sendto(&socket, &request, SendFlags::empty(), &address)?;
        match answered(&socket, sequence)? {
            true => tally.add(0, 1),
            false => tally.add(1, 1),
        }
        next = (next + INTERVAL_NS).max(clock::now());
        clock::sleep_until(next);
    }
    unreachable!("the sequence begins again for ever")
}

/// A ping socket where the system allows it to this user, else a raw one.
fn open() -> std::io::Result<OwnedFd> {
    let icmp = Some(ipproto::ICMP);
    let of = |kind| socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, icmp);
    let socket = of(SocketType::DGRAM).or_else(|_| of(SocketType::RAW))?;
    let _ = sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE));
    let _ = sockopt::set_socket_recv_buffer_size(&socket, 1 << 20);
    let _ = sockopt::set_socket_send_buffer_size(&socket, 1 << 20);
    Ok(socket)
}

/// Whether the answer of this number comes in time; others, and the requests that a raw socket on loopback sees, are skipped.
fn answered(socket: &OwnedFd, sequence: u16) -> std::io::Result<bool> {
    let mut packet = vec![0; BYTES + 128];
    let until = clock::now() + PATIENCE.as_nanos() as i64;
    while clock::now() < until {
        let length = match recv(socket, &mut packet[..], RecvFlags::empty()) {
            Ok((length, _)) => length,
            Err(Errno::AGAIN) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let packet = &packet[..length];
        // A raw socket gives the IP header too, whose first byte says 4 and its length in words.
        let skip = match packet.first() {
            Some(first) if first >> 4 == 4 => usize::from(first & 15) * 4,
            _ => 0,
        };
        if let Some(&[kind, _, _, _, _, _, high, low]) = packet.get(skip..skip + HEADER)
            && kind == ECHO_REPLY
            && u16::from_be_bytes([high, low]) == sequence
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Type, checksum (RFC 1071), identity and number of a request.
fn head(request: &mut [u8], identity: u16, sequence: u16) {
    request[..4].copy_from_slice(&[ECHO_REQUEST, 0, 0, 0]);
    request[4..6].copy_from_slice(&identity.to_be_bytes());
    request[6..8].copy_from_slice(&sequence.to_be_bytes());
    let sum = checksum(request);
    request[2..4].copy_from_slice(&sum.to_be_bytes());
}

fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = (bytes.chunks(2))
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)])))
        .fold(0, u32::wrapping_add);
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        // The RFC's example: the sum of these is ddf2.
        assert_eq!(
            checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            !0xddf2
        );
        let mut request = vec![7; HEADER + 5];
        head(&mut request, 1, 2);
        assert_eq!(
            checksum(&request),
            0,
            "a packet with its checksum sums up to nothing"
        );
    }

    #[test]
    fn the_summary_of_ping_is_read() {
        let log = "--- 127.0.0.1 ping statistics ---\n\
                   500 packets transmitted, 498 received, 0.4% packet loss, time 1000ms\n";
        let told = summary(log).unwrap();
        assert!((told[0].value - 498.0).abs() < 1e-9);
        assert!((told[1].value - 2.0).abs() < 1e-9);
        assert_eq!(told[0].window_ns, 1_000_000_000);
        assert!(summary("nothing").is_none());
    }
}
