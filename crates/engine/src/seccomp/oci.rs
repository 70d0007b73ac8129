//! A seccomp policy in the form of an OCI bundle.

use std::path::Path;

use serde_json::{Value, json};

use super::calls::INHERITANCE;
use super::{Answers, Refusal, SCHEDULING, Test};

/// The policy as `linux.seccomp` of an OCI bundle, `None` if nothing is refused; calls of [`SCHEDULING`] are answered by the agent that
/// listens at `socket`. Calls of other architectures than
/// this one are not listed, so the runtimes' libseccomp kills their caller.
pub(crate) fn profile(
    policy: &[Refusal],
    answers: Option<Answers>,
    socket: &Path,
) -> Option<Value> {
    if policy.is_empty() {
        return None;
    }
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "SCMP_ARCH_X86_64",
        "aarch64" => "SCMP_ARCH_AARCH64",
        "riscv64" => "SCMP_ARCH_RISCV64",
        // The runtimes then take the machine's own.
        _ => "SCMP_ARCH_NATIVE",
    };
    let mut calls = Vec::new();
    for refusal in policy {
        let mut rule = json!({ "names": [refusal.name], "action": "SCMP_ACT_NOTIFY" });
        if answers != Some(Answers::Agent) || *refusal != INHERITANCE {
            rule["action"] = json!("SCMP_ACT_ERRNO");
            rule["errnoRet"] = json!(refusal.errno);
        }
        if refusal.when.is_empty() {
            calls.push(rule);
            continue;
        }
        // Several conditions in one rule must hold together; those that need not have rules of their own.
        for when in refusal.when {
            let mut rule = rule.clone();
            let arguments = when.all().map(|when| match when.test {
                Test::Masked { mask, value } => json!({
                    "index": when.argument,
                    "op": "SCMP_CMP_MASKED_EQ",
                    "value": mask,
                    "valueTwo": value,
                }),
                Test::NotNull => {
                    json!({ "index": when.argument, "op": "SCMP_CMP_NE", "value": 0 })
                }
            });
            rule["args"] = arguments.collect();
            calls.push(rule);
        }
    }
    let mut profile = json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "architectures": [architecture],
    });
    let names = SCHEDULING.map(|(name, _)| name);
    match answers {
        None => {}
        Some(Answers::Agent) => {
            calls.push(json!({ "names": names, "action": "SCMP_ACT_NOTIFY" }));
            profile["listenerPath"] = json!(socket);
        }
        Some(Answers::Nothing) => {
            calls.push(json!({ "names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": 0 }));
        }
    }
    profile["syscalls"] = calls.into();
    Some(profile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Grants, Network, Seccomp};
    use crate::seccomp::policy;

    #[test]
    fn the_profile_is_one_that_the_runtime_library_reads() {
        let profile = profile(
            &policy(&Grants::default(), Network::None),
            None,
            Path::new("/s"),
        )
        .unwrap();
        let read: libcontainer::oci_spec::runtime::LinuxSeccomp =
            serde_json::from_value(profile).unwrap();
        let calls = read.syscalls().as_ref().unwrap();
        let unshare = calls
            .iter()
            .filter(|call| call.names() == &["unshare".to_owned()]);
        assert_eq!(unshare.count(), 8);
        let option = (calls.iter()).find(|call| call.names() == &["setsockopt".to_owned()]);
        let arguments = option.unwrap().args().as_ref().unwrap();
        assert_eq!(arguments.len(), 2, "level and name");
        let off = Grants {
            seccomp: Seccomp::Off,
            ..Grants::default()
        };
        assert_eq!(
            super::profile(&policy(&off, Network::None), None, Path::new("/s")),
            None
        );
    }
}
