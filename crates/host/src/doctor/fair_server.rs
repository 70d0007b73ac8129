//! The fair server: the share that ordinary tasks may take from real-time ones on each cpu, since Linux 6.12.

use std::collections::BTreeMap;

use super::{Check, Question, State, name_cpus};
use crate::debugfs;
use crate::fair_server::{self, FairServer};
use crate::fix::{Fix, Form};
use crate::root::Root;

const QUESTION: Question = Question {
    id: "fair-server",
    title: "Server for ordinary tasks",
    why: "When real-time tasks starve ordinary ones, this server runs the ordinary ones for its whole runtime at once, ahead of every real-time priority.",
};

pub(super) fn check(root: &Root, cpus: &[u32]) -> Check {
    let usual = FairServer::USUAL;
    if fair_server::is_there(root) == Some(false) {
        return QUESTION.answer(
            State::Info,
            "none: Linux has it since 6.12; before that, only real-time throttling leaves time to ordinary tasks",
        );
    }
    let mut of_cpus: Vec<(u32, FairServer)> = Vec::new();
    for &cpu in cpus {
        match fair_server::of_cpu(root, cpu) {
            Ok(server) => of_cpus.push((cpu, server)),
            Err(error) => {
                return QUESTION.answer(
                    State::Unknown,
                    format!("{error}; the kernel's default is {}", cost(usual)),
                );
            }
        }
    }
    let cpus_with = |is: &dyn Fn(FairServer) -> bool| -> Vec<(u32, FairServer)> {
        let with = of_cpus.iter().filter(|(_, server)| is(*server));
        with.copied().collect()
    };
    let off = cpus_with(&|server| server.runtime_ns == 0);
    let large = cpus_with(&|server| server.takes_more_than(usual));
    let servers = of_cpus.iter().map(|(_, server)| *server);
    let found = match fair_server::largest(servers) {
        None => return QUESTION.answer(State::Unknown, "no cpu is known for real-time work"),
        Some(most) if most.runtime_ns > 0 => format!("{} of {}", cost(most), name_cpus(cpus)),
        Some(_) => String::new(),
    };
    match (off.is_empty(), large.is_empty()) {
        (true, true) => QUESTION.answer(State::Good, found),
        (_, false) => QUESTION
            .answer(State::Warning, found)
            .with_fix(format!("{} (5 % of the period)", to_usual(&large))),
        (false, true) => {
            let cpus: Vec<u32> = off.iter().map(|(cpu, _)| *cpu).collect();
            let found = format!(
                "off on {}: a real-time task that never blocks keeps its cpu",
                name_cpus(&cpus)
            );
            (QUESTION.answer(State::Warning, found))
                .with_fix(format!("{}, unless that is intended", to_usual(&off)))
        }
    }
}

/// The commands that give each of these cpus the usual share, one for all of the same period.
fn to_usual(of_cpus: &[(u32, FairServer)]) -> String {
    let mut by_runtime: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (cpu, server) in of_cpus {
        let cpus = by_runtime.entry(server.usual_runtime_ns()).or_default();
        cpus.push(cpu.to_string());
    }
    let commands = by_runtime.iter().map(|(runtime, cpus)| {
        format!(
            "for cpu in {}; do echo {runtime} > /sys/kernel/debug/sched/fair_server/cpu$cpu/runtime; done",
            cpus.join(" ")
        )
    });
    commands.collect::<Vec<_>>().join("; ")
}

/// "up to 50 ms of every 1000 ms, 5 %".
fn cost(server: FairServer) -> String {
    let ms = |ns: u64| ns as f64 / 1e6;
    format!(
        "up to {} ms of every {} ms, {:.1} %",
        ms(server.runtime_ns),
        ms(server.period_ns),
        server.percent()
    )
}

/// A server that takes more than the usual share is brought down to it; none is switched on or off.
pub(super) fn fix(root: &Root, cpus: &[u32]) -> Fix {
    let mut fix = Fix::of(QUESTION.id);
    if fair_server::is_there(root) == Some(false) {
        return fix;
    }
    for &cpu in cpus {
        match fair_server::of_cpu(root, cpu) {
            Ok(server) if server.takes_more_than(FairServer::USUAL) => {
                let file = debugfs::path(&fair_server::runtime_file(cpu));
                let set = server.usual_runtime_ns();
                fix = fix.write(root, file, Form::Plain, set.to_string());
            }
            Ok(_) => {}
            // The first says it for all.
            Err(error) => return fix.leave(error.to_string()),
        }
    }
    fix
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn tree(runtimes: [&str; 2]) -> Tree {
        let tree = Tree::new().file("/proc/sys/kernel/osrelease", "6.12.0\n");
        (runtimes.iter().enumerate()).fold(tree, |tree, (cpu, runtime)| {
            let dir = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}");
            tree.file(&format!("{dir}/runtime"), runtime)
                .file(&format!("{dir}/period"), "1000000000\n")
        })
    }

    #[test]
    fn the_usual_is_good_and_its_cost_is_told() {
        let tree = tree(["0\n", "50000000\n"]);
        let usual = check(&tree.root(), &[1]);
        assert_eq!(usual.state, State::Good);
        assert_eq!(usual.found, "up to 50 ms of every 1000 ms, 5.0 % of cpu 1");
        assert!(fix(&tree.root(), &[1]).writes.is_empty());
    }

    #[test]
    fn off_is_warned_of_and_left_and_more_than_usual_is_brought_down() {
        let off = tree(["0\n", "0\n"]);
        let found = check(&off.root(), &[0, 1]);
        assert_eq!(found.state, State::Warning);
        assert!(
            found.found.starts_with("off on cpus 0-1"),
            "{}",
            found.found
        );
        assert_eq!(fix(&off.root(), &[0, 1]), Fix::of("fair-server"));
        let large = tree(["50000000\n", "200000000\n"]);
        let found = check(&large.root(), &[0, 1]);
        assert_eq!(found.state, State::Warning);
        assert!(
            found.found.contains("200 ms of every 1000 ms, 20.0 %"),
            "{}",
            found.found
        );
        assert!(
            found
                .fix
                .unwrap()
                .starts_with("for cpu in 1; do echo 50000000 >")
        );
        let writes = fix(&large.root(), &[0, 1]).writes;
        assert_eq!(writes.len(), 1, "{writes:?}");
        assert_eq!(
            (writes[0].was.as_str(), writes[0].set.as_str()),
            ("200000000", "50000000")
        );
    }

    #[test]
    fn the_advice_is_what_the_fix_writes_whatever_the_period() {
        let dir = "/sys/kernel/debug/sched/fair_server/cpu0";
        let tree =
            tree(["20000000\n", "200000000\n"]).file(&format!("{dir}/period"), "100000000\n");
        let writes = fix(&tree.root(), &[0, 1]).writes;
        let sets: Vec<&str> = writes.iter().map(|write| write.set.as_str()).collect();
        assert_eq!(sets, ["5000000", "50000000"]);
        let fix = check(&tree.root(), &[0, 1]).fix.unwrap();
        for (cpu, set) in [(0, 5_000_000), (1, 50_000_000)] {
            let command = format!("for cpu in {cpu}; do echo {set} >");
            assert!(fix.contains(&command), "{fix}");
        }
    }

    #[test]
    fn old_kernels_have_none_and_a_closed_debugfs_tells_nothing() {
        let release = |text: &str| Tree::new().file("/proc/sys/kernel/osrelease", text);
        let old = release("6.1.0-56-rt-amd64\n");
        assert_eq!(check(&old.root(), &[1]).state, State::Info);
        assert_eq!(fix(&old.root(), &[1]), Fix::of("fair-server"));
        let closed = release("6.12.0\n");
        let found = check(&closed.root(), &[1]);
        assert_eq!(found.state, State::Unknown);
        assert!(found.found.contains("mount -t debugfs") && found.found.contains("5.0 %"));
        assert_eq!(fix(&closed.root(), &[1]).left.len(), 1);
    }
}
