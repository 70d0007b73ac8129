//! Texts that make fixes survive a reboot: a line of kernel parameters, a file for sysctl and a unit for systemd. Each says where
//! it goes; nothing here installs it.

use std::path::Path;

use serde::Serialize;

use super::undo::Change;
use super::{Fix, Parameter, Write};
use crate::cpus::format_list;
use crate::kernel::CommandLine;
use crate::root::Root;

/// One file to install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// Its name.
    pub name: &'static str,
    /// How to install it, a clause.
    pub how: String,
    /// Its whole text.
    pub text: String,
}

/// The names of all possible pieces.
pub const NAMES: [&str; 3] = [PARAMETERS, SYSCTL, UNIT];
const PARAMETERS: &str = "kernel-parameters";
const SYSCTL: &str = "90-timecell.conf";
const UNIT: &str = "timecell-doctor.service";

/// Kernel parameters that act at the start like writing a file, of fixes that name them only until they are made.
const OF_FILES: [(&str, &str); 2] = [
    (
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "clocksource",
    ),
    (
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "transparent_hugepage",
    ),
];

/// The pieces that these fixes for `cpus` need, including changes of `earlier` calls. The unit starts `program`.
pub fn pieces(
    root: &Root,
    fixes: &[Fix],
    earlier: &[Change],
    cpus: &[u32],
    program: &Path,
) -> Vec<Piece> {
    let fixes = &with_earlier(root, fixes, earlier);
    let unit = (fixes.iter().any(|fix| !fix.writes.is_empty())).then(|| unit(cpus, program));
    (parameters(root, fixes).into_iter())
        .chain(sysctl(fixes))
        .chain(unit)
        .collect()
}

/// A fix that is made names nothing any more where only its being made tells that it was asked for.
fn with_earlier(root: &Root, fixes: &[Fix], earlier: &[Change]) -> Vec<Fix> {
    let mut fixes = fixes.to_vec();
    for change in earlier {
        let now = change.form.read(root, &change.path, &change.set);
        let is_in_force = now.is_ok_and(|now| now == change.set);
        let Some(fix) = (fixes.iter_mut()).find(|fix| is_in_force && fix.id == change.id) else {
            continue;
        };
        if fix.writes.iter().all(|write| write.path != change.path) {
            fix.writes.push(Write {
                path: change.path.clone(),
                form: change.form,
                was: change.set.clone(),
                set: change.set.clone(),
            });
        }
        let of_file = OF_FILES.iter().find(|(path, _)| *path == change.path);
        if let Some((_, name)) = of_file
            && fix.parameters.iter().all(|known| known.name != *name)
        {
            let value = change.set.clone();
            fix.parameters.push(Parameter { name, value });
        }
    }
    fixes
}

/// The parameters that the running kernel was not started with.
fn parameters(root: &Root, fixes: &[Fix]) -> Option<Piece> {
    let line = CommandLine::read(root).ok();
    let now = |name: &str| line.as_ref().and_then(|line| line.get(name));
    let (mut words, mut replaced) = (Vec::new(), Vec::new());
    for parameter in fixes.iter().flat_map(|fix| &fix.parameters) {
        match now(parameter.name) {
            Some(value) if value == parameter.value => continue,
            Some(value) => replaced.push(format!("{}={value}", parameter.name)),
            None => {}
        }
        words.push(format!("{}={}", parameter.name, parameter.value));
    }
    let mut how = "add the line to the kernel parameters where your boot loader keeps them (GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub; cmdline.txt on a Raspberry Pi; `append` in extlinux.conf), and reboot".to_owned();
    if !replaced.is_empty() {
        how.push_str(&format!("; it replaces {}", replaced.join(" ")));
    }
    (!words.is_empty()).then(|| Piece {
        name: PARAMETERS,
        how,
        text: format!("{}\n", words.join(" ")),
    })
}

fn sysctl(fixes: &[Fix]) -> Option<Piece> {
    let mut text = String::new();
    for fix in fixes {
        for write in &fix.writes {
            if let Some(name) = write.path.strip_prefix("/proc/sys/") {
                let (name, set) = (name.replace('/', "."), &write.set);
                text.push_str(&format!(
                    "# {} of timecell doctor\n{name} = {set}\n",
                    fix.id
                ));
            }
        }
    }
    (!text.is_empty()).then(|| Piece {
        name: SYSCTL,
        how: "put it into /etc/sysctl.d".to_owned(),
        text,
    })
}

/// Numbers of interrupts and features of a kernel change from start to start, so that the unit has them looked up. It stands also
/// where a fix could not be made: the changes are put back when it is stopped.
fn unit(cpus: &[u32], program: &Path) -> Piece {
    let program = quoted(&program.display().to_string());
    let text = format!(
        "[Unit]\n\
         Description=Real-time settings of timecell doctor\n\
         After=systemd-sysctl.service sys-kernel-debug.mount irqbalance.service\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         SuccessExitStatus=1\n\
         ExecStart={program} doctor --fix --cpus {}\n\
         ExecStop={program} doctor --undo\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        format_list(cpus)
    );
    Piece {
        name: UNIT,
        how: "put it into /etc/systemd/system, then systemctl enable timecell-doctor".to_owned(),
        text,
    }
}

/// A word of a unit's command: systemd takes `%` for a specifier.
fn quoted(word: &str) -> String {
    let escaped = word
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('%', "%%");
    match word.contains(char::is_whitespace) || escaped != word {
        true => format!("\"{escaped}\""),
        false => escaped,
    }
}
