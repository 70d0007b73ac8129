//! The preemption model: may a real-time task interrupt the kernel itself?

use super::{Check, Question, State};
use crate::debugfs;
use crate::fix::{Fix, Form};
use crate::kernel;
use crate::root::Root;

const QUESTION: Question = Question {
    id: "preemption",
    title: "Preemption model",
    why: "A kernel that cannot be interrupted makes real-time tasks wait for whatever it is doing; only PREEMPT_RT bounds that wait.",
};

pub(super) fn check(root: &Root) -> Check {
    let version = match kernel::version(root) {
        Ok(version) => version,
        Err(reason) if kernel::is_preempt_rt(root).is_none() => return QUESTION.unknown(&reason),
        Err(_) => String::new(),
    };
    if kernel::is_preempt_rt(root) == Some(true) {
        return QUESTION.answer(State::Good, "PREEMPT_RT");
    }
    let dynamic = kernel::is_dynamic(root);
    let rt_kernel = format!(
        "install a kernel built with PREEMPT_RT{}",
        debian_package(root)
    );
    match kernel::preemption_model(root).as_deref() {
        None => QUESTION
            .answer(
                State::Warning,
                format!("not PREEMPT_RT; the model cannot be read (version `{version}`)"),
            )
            .with_fix(rt_kernel),
        Some(model @ ("full" | "lazy")) => QUESTION
            .answer(State::Warning, format!("not PREEMPT_RT; model {model}"))
            .with_fix(rt_kernel),
        Some(model) => {
            let found = format!("not PREEMPT_RT; model {model}");
            // Where the kernel is locked down the file is there, and nobody may open it.
            let fix = if root.read("/sys/kernel/debug/sched/preempt").is_ok() {
                format!(
                    "echo full > /sys/kernel/debug/sched/preempt (permanently: kernel parameter preempt=full); better, {rt_kernel}"
                )
            } else if dynamic {
                format!("kernel parameter preempt=full; better, {rt_kernel}")
            } else {
                rt_kernel
            };
            QUESTION.answer(State::Bad, found).with_fix(fix)
        }
    }
}

/// Where the running kernel can choose, it is told to let itself be interrupted; also at its next start.
pub(super) fn fix(root: &Root, _: &[u32]) -> Fix {
    let fix = Fix::of(QUESTION.id);
    if kernel::is_preempt_rt(root) != Some(false) || !kernel::is_dynamic(root) {
        return fix;
    }
    match kernel::preemption_model(root).as_deref() {
        None => fix,
        Some(model) => {
            // Where it is the kernel's own choice nobody need ask for it.
            let by_itself =
                kernel::BuildOptions::read(root).is_ok_and(|options| options.has("CONFIG_PREEMPT"));
            let fix = match model {
                "lazy" => return fix,
                "full" if by_itself => fix,
                _ => fix.parameter("preempt", "full"),
            };
            match (model, debugfs::read(root, MODELS)) {
                ("full", Err(_)) => fix,
                (_, Ok(_)) => fix.write(root, debugfs::path(MODELS), Form::Parentheses, "full"),
                (_, Err(error)) => fix.leave(error.to_string()),
            }
        }
    }
}

const MODELS: &str = "sched/preempt";

/// The name of Debian's package, for the architectures that have one.
fn debian_package(root: &Root) -> &'static str {
    match kernel::arch(root).as_str() {
        "x86_64" => " (on Debian: apt install linux-image-rt-amd64)",
        "aarch64" => " (on Debian: apt install linux-image-rt-arm64)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tree, gzip};

    #[test]
    fn preempt_rt_is_good_by_flag_or_version() {
        for tree in [
            Tree::new().file("/sys/kernel/realtime", "1\n"),
            Tree::new().file("/proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian\n"),
        ] {
            assert_eq!(check(&tree.root()).state, State::Good);
        }
    }

    #[test]
    fn a_dynamic_kernel_without_preemption_is_bad_and_fixed_at_boot() {
        let tree = Tree::new()
            .file("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC\n")
            .bytes("/proc/config.gz", &gzip("CONFIG_PREEMPT_NONE=y\n"));
        let check = check(&tree.root());
        assert_eq!(check.state, State::Bad);
        assert_eq!(check.found, "not PREEMPT_RT; model none");
        assert!(
            check
                .fix
                .unwrap()
                .starts_with("kernel parameter preempt=full")
        );
    }

    #[test]
    fn a_debugfs_that_cannot_be_read_is_no_way_to_fix() {
        let fix = |tree: Tree| {
            let tree = tree
                .file("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC\n")
                .bytes("/proc/config.gz", &gzip("CONFIG_PREEMPT_NONE=y\n"));
            check(&tree.root()).fix.unwrap()
        };
        let preempt = "/sys/kernel/debug/sched/preempt";
        let open = fix(Tree::new().file(preempt, "(none) voluntary full\n"));
        assert!(open.starts_with("echo full > "), "{open}");
        // A directory in its place: there, and not to be read, as under lockdown.
        let locked = fix(Tree::new().file(&format!("{preempt}/x"), ""));
        assert!(
            locked.starts_with("kernel parameter preempt=full"),
            "{locked}"
        );
    }

    #[test]
    fn a_model_that_can_be_chosen_is_chosen() {
        let dynamic = || Tree::new().file("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC\n");
        let models = "/sys/kernel/debug/sched/preempt";
        let open = dynamic().file(models, "(none) voluntary full\n");
        let made = fix(&open.root(), &[]);
        let write = &made.writes[0];
        assert_eq!((write.was.as_str(), write.set.as_str()), ("none", "full"));
        assert_eq!(made.parameters[0].value, "full");
        let closed = dynamic().bytes("/proc/config.gz", &gzip("CONFIG_PREEMPT_NONE=y\n"));
        let made = fix(&closed.root(), &[]);
        assert!(made.writes.is_empty() && made.left[0].contains("mount -t debugfs"));
        let rt = dynamic()
            .file(models, "(none) voluntary full\n")
            .file("/sys/kernel/realtime", "1\n");
        assert_eq!(fix(&rt.root(), &[]), Fix::of("preemption"));
    }

    #[test]
    fn a_fully_preemptible_kernel_is_only_warned_about() {
        let tree = Tree::new().file("/proc/sys/kernel/version", "#1 SMP PREEMPT Thu\n");
        assert_eq!(check(&tree.root()).state, State::Warning);
    }
}
