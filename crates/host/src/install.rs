//! How a package is installed on this distribution, as a hint to the user.

use crate::root::Root;

/// The commands of distributions: words of os-release's `ID` and `ID_LIKE`, and the command.
const COMMANDS: [(&[&str], &str); 5] = [
    (&["debian", "ubuntu"], "apt install"),
    (&["fedora", "rhel", "centos"], "dnf install"),
    (&["suse", "opensuse", "sles"], "zypper install"),
    (&["arch"], "pacman -S"),
    (&["alpine"], "apk add"),
];

/// Packages whose names differ from Debian's: Debian's, the command, the name there.
const NAMES: [(&str, &str, &str); 15] = [
    ("busybox-static", "dnf install", "busybox"),
    ("busybox-static", "pacman -S", "busybox"),
    ("docker.io", "dnf install", "moby-engine"),
    ("docker.io", "zypper install", "docker"),
    ("docker.io", "pacman -S", "docker"),
    ("docker.io", "apk add", "docker"),
    ("iproute2", "dnf install", "iproute"),
    ("iputils-ping", "dnf install", "iputils"),
    ("iputils-ping", "zypper install", "iputils"),
    ("iputils-ping", "pacman -S", "iputils"),
    ("rt-tests", "dnf install", "realtime-tests"),
    ("uidmap", "dnf install", "shadow-utils"),
    ("uidmap", "zypper install", "shadow"),
    ("uidmap", "pacman -S", "shadow"),
    ("uidmap", "apk add", "shadow-uidmap"),
];

/// The command that installs a package here, such as `apt install crun`; `package` is its name in Debian. `install crun` where the
/// distribution is unknown.
pub fn install(package: &str) -> String {
    install_at(&Root::live(), package)
}

/// The same for the machine with this root.
pub fn install_at(root: &Root, package: &str) -> String {
    let release = ["/etc/os-release", "/usr/lib/os-release"];
    let release = release.iter().find_map(|file| root.read(file).ok());
    let words = release.as_deref().map(ids).unwrap_or_default();
    // The distribution's own id comes before those that it is like.
    let command = words.iter().find_map(|word| {
        let known = COMMANDS.iter().find(|(ids, _)| {
            let of_family = |id: &&str| word == id || word.starts_with(&format!("{id}-"));
            ids.iter().any(of_family)
        });
        known.map(|(_, command)| *command)
    });
    let Some(command) = command else {
        return format!("install {package}");
    };
    let other = NAMES
        .iter()
        .find(|(debian, with, _)| *debian == package && *with == command);
    format!("{command} {}", other.map_or(package, |(_, _, name)| *name))
}

/// The words of `ID` and `ID_LIKE`, as os-release(5) writes them.
fn ids(text: &str) -> Vec<&str> {
    let of = |key: &str| {
        let values = text.lines().filter_map(move |line| {
            let (name, value) = line.trim().split_once('=')?;
            (name == key).then(|| value.trim_matches(['"', '\'']))
        });
        values.flat_map(str::split_whitespace).collect::<Vec<_>>()
    };
    [of("ID"), of("ID_LIKE")].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn each_distribution_gets_its_own_command() {
        for (release, command) in [
            (
                "PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n",
                "apt install docker.io",
            ),
            ("ID=ubuntu\nID_LIKE=debian\n", "apt install docker.io"),
            (
                "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n",
                "dnf install moby-engine",
            ),
            ("ID=fedora\n", "dnf install moby-engine"),
            (
                "ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n",
                "zypper install docker",
            ),
            ("ID=manjaro\nID_LIKE='arch'\n", "pacman -S docker"),
            ("ID=alpine\n", "apk add docker"),
            ("ID=nixos\n", "install docker.io"),
            ("VARIANT_ID=debian\n", "install docker.io"),
        ] {
            let tree = Tree::new().file("/etc/os-release", release);
            assert_eq!(install_at(&tree.root(), "docker.io"), command, "{release}");
        }
        let elsewhere = Tree::new().file("/usr/lib/os-release", "ID=arch\n");
        assert_eq!(install_at(&elsewhere.root(), "crun"), "pacman -S crun");
        assert_eq!(install_at(&Tree::new().root(), "crun"), "install crun");
    }
}
