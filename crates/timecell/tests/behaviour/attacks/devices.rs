//! A device that a cell may only read, and whose node its uid 0 owns. A cgroup v1 controller that would refuse the access is
//! hidden here, so that v2 must refuse it on every machine, as on those that have nothing else.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;

use super::scene::{Scene, Setting, changed_view, number, program};
use super::{AT_IT, Attack, Before, Now, say};
use crate::support::Need;

pub const DEVICES: Attack = Attack {
    name: "devices",
    tries: "a cell of uid 0 makes the device that it may only read writable, and opens it; the controller of cgroup v1 out of sight",
    before: Before {
        got: "opened for writing",
        neighbour: "not recorded",
    },
    needs: &[
        Need::Root,
        Need::TwoCpus,
        Need::AnyEnforcer(400),
        Need::File(DEVICE),
    ],
    deed,
    run,
};

/// To open it does nothing.
const DEVICE: &str = "/dev/loop-control";

fn run(_: u64) -> Now {
    let rights = format!(
        "user = {{ uid = 0, gid = 0 }}\ndevices = [{{ path = \"{DEVICE}\", access = \"r\" }}]\n"
    );
    let hostile = program("hostile", "devices", &[], "class = \"other\"") + &rights;
    let cgroups = host::cgroup::detect().unwrap();
    let v1 = cgroups.v1_mount("devices");
    let hide = v1.map(|mount| format!("umount -l {}", mount.point.display()));
    changed_view(hide.as_slice(), || {
        let scene = Scene::start(&Setting::beside(&hostile));
        let said = scene.to_the_end();
        let answer = |word| number(&said, word).expect("it says what it was told") as i32;
        let (read, write) = (answer("read"), answer("write"));
        Now {
            got: match write {
                0 => "opened for writing".to_owned(),
                error => std::io::Error::from_raw_os_error(error).to_string(),
            },
            held: read == 0 && write == libc::EPERM,
            neighbour: Some(scene.end()),
        }
    })
}

/// The program in the cell.
fn deed(_: &[&str]) {
    say(AT_IT);
    let _ = fs::set_permissions(DEVICE, Permissions::from_mode(0o666));
    let errno =
        |opened: std::io::Result<File>| opened.err().map_or(0, |e| e.raw_os_error().unwrap_or(-1));
    say(&format!("read {}", errno(File::open(DEVICE))));
    say(&format!(
        "write {}",
        errno(File::options().write(true).open(DEVICE))
    ));
}
