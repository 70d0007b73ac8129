//! `net-tcp`: receives 1 MB over TCP every second and stores it on the disk, as the recorder of the thesis on
//! real-time Linux devices does. Built in only: there is no usual program for it.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use model::LoadKind;
use probe::clock;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::disk::{BLOCK, commit, nameless};
use crate::load::kind::{Gauge, Load, Setting};
use crate::load::tally::Tally;

pub(crate) struct NetTcp;

const SECOND_NS: i64 = 1_000_000_000;
/// Blocks of the file before it is written over.
const BLOCKS: u64 = 64;

impl Load for NetTcp {
    fn kind(&self) -> LoadKind {
        LoadKind::NetTcp
    }

    fn does(&self) -> &'static str {
        "receives 1 MB over TCP every second and stores it"
    }

    fn gauges(&self) -> Vec<Gauge> {
        vec![
            Gauge::rate("stored", "MB/s", 1e6),
            Gauge::count(
                "seconds without their megabyte",
                crate::load::kind::MISSED_SECONDS,
            ),
        ]
    }

    fn work(&self, setting: &Setting, tally: &Tally) -> String {
        match record(setting, tally) {
            Ok(()) => "the sender closed the connection".to_owned(),
            Err(error) => format!("TCP at {}: {error}", setting.own()),
        }
    }

    fn pause_ns(&self) -> i64 {
        3 * SECOND_NS
    }

    fn cycle_ns(&self) -> Option<i64> {
        Some(SECOND_NS)
    }

    fn needs_disk(&self, _: bool) -> bool {
        true
    }

    fn needs_network(&self) -> bool {
        true
    }
}

fn record(setting: &Setting, tally: &Tally) -> std::io::Result<()> {
    tally.die_with_coordinator()?;
    let listener = TcpListener::bind((setting.own(), 0))?;
    let to = listener.local_addr()?;
    let network = setting.network.clone();
    std::thread::spawn(move || {
        if let Err(error) = send(network.as_deref(), to) {
            eprintln!("load: sender: {error}");
        }
    });
    let (mut stream, _) = listener.accept()?;
    hold_little(&stream);
    let file = nameless(setting.dir.as_deref().unwrap_or("."))?;
    let mut block = vec![0; BLOCK];
    let began = clock::now();
    let mut second = 0;
    for number in 0u64.. {
        stream.read_exact(&mut block)?;
        file.write_all_at(&block, number % BLOCKS * BLOCK as u64)?;
        commit(&file)?;
        tally.worked(clock::now());
        tally.add(0, BLOCK as u64);
        // The seconds that this megabyte took beyond its own have passed without one.
        let now = (clock::now() - began) / SECOND_NS;
        tally.add(1, (now - second).unsigned_abs());
        second = now + 1;
        clock::sleep_until(began + second * SECOND_NS);
    }
    Ok(())
}

/// A small receive buffer, so that each megabyte crosses the network within its second: a large one would be filled before that begins.
/// Where the system refuses, the megabytes come earlier.
fn hold_little(stream: &TcpStream) {
    let _ = set_socket_recv_buffer_size(stream, 64 << 10);
}

/// Sends as fast as it is received, from the other network if there is one.
fn send(network: Option<&str>, to: std::net::SocketAddr) -> std::io::Result<()> {
    if let Some(network) = network {
        let file = File::open(network)?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
    }
    let mut stream = TcpStream::connect(to)?;
    let block = vec![0x5a; 64 << 10];
    loop {
        stream.write_all(&block)?;
    }
}
