//! Hypervisor: is this a virtual machine?

use super::{Check, Question, State};
use crate::root::{Root, Unreadable};
use crate::virt;

const QUESTION: Question = Question {
    id: "hypervisor",
    title: "Hypervisor",
    why: "In a virtual machine the hypervisor decides when a cpu runs at all, so latencies measured here are not those of the hardware.",
};

pub(super) fn check(root: &Root) -> Check {
    let virt = virt::detect(root);
    match virt.virtual_machine {
        Some(true) => QUESTION.answer(State::Warning, virt.to_string()).with_fix(
            "measure worst cases on the real board; here, have the host pin each virtual cpu to a cpu of its own",
        ),
        Some(false) => QUESTION.answer(State::Good, virt.to_string()),
        None => QUESTION.unknown(&Unreadable {
            path: "/proc/cpuinfo".to_owned(),
            reason: "no sign of whether there is a hypervisor".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn a_virtual_machine_is_a_warning() {
        let tree = Tree::new()
            .file("/proc/cpuinfo", "flags : fpu hypervisor\n")
            .file("/sys/class/dmi/id/product_name", "KVM Virtual Machine\n");
        let check = check(&tree.root());
        assert_eq!(check.state, State::Warning);
        assert_eq!(check.found, "virtual machine (KVM)");
    }

    #[test]
    fn bare_metal_is_good() {
        let tree = Tree::new().file("/proc/cpuinfo", "flags : fpu\n");
        assert_eq!(check(&tree.root()).state, State::Good);
    }
}
