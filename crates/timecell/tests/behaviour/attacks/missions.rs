//! A second mission beside that of the critical cell: one that would run at the same priority on the same cpu, and
//! one whose cell has a name that resembles the first one's.

use model::Enforcer;

use super::scene::{Scene, Setting, program};
use super::{AT_IT, Attack, Before, Now, say};
use crate::missions::{Up, name, nothing_is_left, pid_of, runs};
use crate::support::{self, Need, timecell};

pub const SECOND_MISSION: Attack = Attack {
    name: "second-mission",
    tries: "a mission that spins 40 of 100 ms on the critical cell's cpu, without a budget",
    before: Before {
        got: "FIFO 89 like the critical cell",
        neighbour: "69 to 87 of 345 jobs late",
    },
    needs: &[Need::Root, Need::RealTime, Need::TwoCpus],
    deed,
    run: beside_another,
};

pub const SAME_NAME: Attack = Attack {
    name: "same-name",
    tries: "mission `m-x` with a cell `y`, beside mission `m` with a cell `x-y`",
    before: Before {
        got: "the other mission's cell killed",
        neighbour: "not recorded",
    },
    needs: &[Need::Root, Need::TwoCpus, Need::AnyEnforcer(400)],
    deed,
    run: of_the_same_name,
};

fn beside_another(seconds: u64) -> Now {
    let task = "class = \"fifo\"\n[[cell.task]]\nname = \"t\"\nwcet = \"2ms\"\nperiod = \"20ms\"";
    let cpu = host::sched::get_affinity(0).unwrap()[1];
    let quiet = program("hostile", "second-mission", &["quiet"], "class = \"other\"");
    let mut scene = Scene::start(&Setting {
        enforcer: Enforcer::CpusetOnly,
        critical: task,
        hostile: &quiet,
    });
    let critical = pid_of(&scene.up.told("critical: runs"));
    let dir = super::scene::place();
    let keys =
        "class = \"fifo\"\n[[cell.task]]\nname = \"t\"\nwcet = \"41ms\"\nperiod = \"100ms\"\n";
    let text = format!(
        "schema = 1\nname = \"{}\"\nenforcer = \"cpuset-only\"\ncpus = [{cpu}]\n{}",
        name(dir.path()),
        program("second", "second-mission", &["spin"], keys)
    );
    std::fs::write(dir.path().join("mission.toml"), text).unwrap();
    let admitted = support::say(dir.path(), &["admit", "mission.toml"]);
    if admitted.code == Some(3) {
        return Now {
            got: "refused".to_owned(),
            held: true,
            neighbour: Some(scene.end()),
        };
    }
    let mut second = Up::start(dir.path());
    let spinner = pid_of(&second.until("second: runs"));
    std::thread::sleep(std::time::Duration::from_secs(seconds));
    let (its, critical) = (priority(spinner), priority(critical));
    let neighbour = scene.end();
    second.end();
    nothing_is_left(dir.path());
    Now {
        got: format!("FIFO {its} beside the critical cell's {critical}"),
        held: its < critical,
        neighbour: Some(neighbour),
    }
}

fn of_the_same_name(_: u64) -> Now {
    let mut hostile = program("hostile", "same-name", &["quiet"], "class = \"other\"");
    hostile += &program("x-y", "same-name", &["quiet"], "class = \"other\"");
    let mut scene = Scene::start(&Setting::beside(&hostile));
    let first = pid_of(&scene.up.told("x-y: runs"));
    let dir = super::scene::place();
    let text = format!(
        "schema = 1\nname = \"{}-x\"\n{}",
        scene.name(),
        program("y", "same-name", &["quiet"], "class = \"other\"")
    );
    std::fs::write(dir.path().join("mission.toml"), text).unwrap();
    let mut second =
        Up::of(
            timecell()
                .current_dir(dir.path())
                .args(["up", "mission.toml", "--dir", "state"]),
        );
    let own = pid_of(&second.until("y: runs (pid"));
    let beside = runs(first);
    assert!(runs(own), "the second mission's cell has ended");
    second.end();
    let lives = beside && runs(first);
    Now {
        got: if lives {
            "a cell beside the other mission's"
        } else {
            "the other mission's cell killed"
        }
        .to_owned(),
        held: lives,
        neighbour: Some(scene.end()),
    }
}

/// The FIFO priority of a process's first thread.
fn priority(pid: i32) -> i32 {
    // SAFETY: plain data, which the call fills.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let done = unsafe { libc::sched_getparam(pid, &mut param) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    param.sched_priority
}

/// The program in the cells.
fn deed(words: &[&str]) {
    say(AT_IT);
    if words != ["spin"] {
        return;
    }
    let (mut next, busy) = (timecell_client::now_ns(), 40_000_000);
    loop {
        while timecell_client::now_ns() < next + busy {
            std::hint::spin_loop();
        }
        next += 100_000_000;
        let rest = next - timecell_client::now_ns();
        std::thread::sleep(std::time::Duration::from_nanos(rest.max(0) as u64));
    }
}
