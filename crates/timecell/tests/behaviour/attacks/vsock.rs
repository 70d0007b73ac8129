//! A way to the machine's hypervisor: AF_VSOCK sockets belong to no network namespace.

use super::scene::{Scene, Setting, number, program};
use super::{AT_IT, Attack, Before, Now, say};
use crate::support::Need;

pub const VSOCK: Attack = Attack {
    name: "vsock",
    tries: "a socket of AF_VSOCK in a cell without a network",
    before: Before {
        got: "a socket",
        neighbour: "not recorded",
    },
    needs: &[Need::Root, Need::TwoCpus, Need::AnyEnforcer(400)],
    deed,
    run,
};

fn run(_: u64) -> Now {
    let hostile = program("hostile", "vsock", &[], "class = \"other\"");
    let scene = Scene::start(&Setting::beside(&hostile));
    let said = scene.to_the_end();
    let neighbour = scene.end();
    let answer = number(&said, "vsock").expect("it says what it was told") as i32;
    let refused = [libc::EPERM, libc::EACCES, libc::EAFNOSUPPORT].contains(&answer);
    Now {
        got: match answer {
            0 => "a socket".to_owned(),
            error => std::io::Error::from_raw_os_error(error).to_string(),
        },
        held: refused,
        neighbour: Some(neighbour),
    }
}

/// The program in the cell.
fn deed(_: &[&str]) {
    say(AT_IT);
    // SAFETY: no memory is involved.
    let socket = unsafe { libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0) };
    let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    say(&format!("vsock {}", if socket >= 0 { 0 } else { error }));
}
