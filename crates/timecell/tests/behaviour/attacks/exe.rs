//! The host's own binary, through `/proc/self/exe`: a cell with this program would run the program that makes cells, open its
//! file, wait until it is no longer executed, and overwrite it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::scene::{place, print_of};
use super::{Attack, Before, Now};
use crate::missions::{Up, mission, nothing_is_left};
use crate::support::{Need, binary, say};

pub const EXE: Attack = Attack {
    name: "exe",
    tries: "a program, and an interpreter in a mount, that is /proc/self/exe, as uid 0, to overwrite the host's timecell",
    before: Before {
        got: "overwrote it: the next `up` ran it as root",
        neighbour: "not recorded",
    },
    needs: &[Need::Root],
    deed: |_| (),
    run,
};

fn run(_: u64) -> Now {
    let binary = binary();
    let before = print_of(&binary);
    let dir = place();
    bundle(dir.path());
    mission_of(dir.path(), "image = { bundle = \"b\" }", "");
    let named = say(dir.path(), &["admit", "mission.toml"]);
    let refused_by_name = named.code == Some(2)
        && named.err.contains("mission.toml:5")
        && named.err.contains("leads through /proc");
    // The image does not show the files mounted in it.
    mission_of(
        dir.path(),
        "image = { rootfs = \"b/rootfs\" }\ncommand = [\"/door/run\"]",
        "mounts = [{ source = \"door\", target = \"/door\" }]\n",
    );
    let mut up = Up::start(dir.path());
    let line = up.until("hostile: ");
    let told = match line.contains("leads through /proc") {
        true => line,
        false => up.until("hostile: "),
    };
    let refused_before_exec = told.contains("leads through /proc");
    match refused_before_exec {
        // Nothing is left to supervise.
        true => {
            up.until("no cell runs any more");
            up.child.wait().unwrap();
        }
        false => up.end(),
    }
    nothing_is_left(dir.path());
    let intact = print_of(&binary) == before;
    let word = |yes: bool, what: &str, not: &str| if yes { what } else { not }.to_owned();
    Now {
        got: format!(
            "{}, {}; the file is {}",
            word(refused_by_name, "refused at admit", "admitted"),
            word(refused_before_exec, "refused before exec", "executed"),
            word(intact, "intact", "overwritten"),
        ),
        held: refused_by_name && refused_before_exec && intact,
        neighbour: None,
    }
}

fn bundle(dir: &Path) {
    fs::create_dir_all(dir.join("b/rootfs")).unwrap();
    fs::write(
        dir.join("b/config.json"),
        r#"{"ociVersion": "1.0.2", "root": {"path": "rootfs"}, "process": {"cwd": "/", "env": ["PATH=/"],
            "args": ["/proc/self/exe", "load", "guard", "parent=0", "cpus=", "--", "/evil", "go"]}}"#,
    )
    .unwrap();
    fs::create_dir(dir.join("door")).unwrap();
    let script = dir.join("door/run");
    fs::write(&script, "#!/proc/self/exe load\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
}

fn mission_of(dir: &Path, image: &str, rights: &str) {
    mission(
        dir,
        &format!(
            "[[cell]]\nname = \"hostile\"\n{image}\nclass = \"other\"\nrestart = {{ policy = \"never\" }}\n\
             [cell.rights]\nuser = {{ uid = 0, gid = 0 }}\n{rights}"
        ),
    );
}
