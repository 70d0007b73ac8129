//! Checks of what a cell is asked to be, before anything is made: each fault is one sentence.

use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use host::root::Root;
use model::EngineKind;

use super::bundle::Bundle;
use super::program::{Program, binary_target};
use super::spec::{AppSpec, Device, Image};
use super::{Grants, RealTime, Scheduling};
use super::{magic_links, paths, root};
use crate::error::{Doing, Result, refused};
use crate::rootfs::{self, RootfsError};
use crate::{note, programs};

/// Checks everything; returns the specification with every path of the host resolved, and the program, which is `None` where only the engine knows
/// the image.
pub(super) fn check(spec: &AppSpec) -> Result<(AppSpec, Option<Program>)> {
    note::check(spec, &[])?;
    engine(spec)?;
    let mut spec = spec.clone();
    image(&mut spec)?;
    for word in spec.command.iter().chain(&spec.args) {
        paths::check_text("an argument", word.as_bytes())?;
    }
    for (name, value) in &spec.env {
        paths::check_text("an environment variable", value.as_bytes())?;
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(refused!(
                "`{name}` is not a valid name for an environment variable"
            ));
        }
    }
    if let Some(cwd) = &spec.cwd
        && !cwd.is_absolute()
    {
        return Err(refused!(
            "the directory `{}` is not absolute",
            cwd.display()
        ));
    }
    if let Some(name) = &spec.hostname {
        hostname(name)?;
    }
    mounts(&mut spec)?;
    for device in &spec.devices {
        check_device(device)?;
    }
    if spec.limits.pids == 0 {
        return Err("a cell needs at least one process; the limit is 0".into());
    }
    grants(&spec.grants)?;
    let program = match spec.image {
        Image::Reference(_) => None,
        _ => Some(Program::of(&spec)?),
    };
    // A bundle's root may be anywhere.
    if let Some(root) = program.as_ref().and_then(|program| program.root.as_ref()) {
        paths::find("the root filesystem", root)?;
        paths::check_source(&Root::live(), root)?;
        root::check(root, &spec)?;
    }
    if let Some(program) = &program {
        named(&spec, program)?;
    }
    Ok((spec, program))
}

/// Checks that the image, where it is a directory, has no links where something is mounted in it.
///
/// # Errors
/// One sentence. Other faults of the image are not reported here.
pub fn check_image(spec: &AppSpec) -> Result<()> {
    let root = match &spec.image {
        Image::Rootfs(root) => Some(root.clone()),
        Image::Bundle(dir) => Bundle::read(dir).ok().map(|bundle| bundle.root),
        Image::Binary(_) | Image::Reference(_) => None,
    };
    root.map_or(Ok(()), |root| root::check(&root, spec))
}

/// Checks that the program and its interpreters are files of the cell's image, as far as that can be seen before there is a cell, and that a program
/// which is alone in its cell is static.
///
/// # Errors
/// One sentence. Other faults of the image are not reported here.
pub fn check_program(spec: &AppSpec) -> Result<()> {
    if let Image::Binary(path) = &spec.image
        && spec.engine != EngineKind::Bare
        && path.is_file()
    {
        alone(path, path)?;
    }
    match spec.image {
        Image::Reference(_) => Ok(()),
        _ => Program::of(spec).map_or(Ok(()), |program| named(spec, &program)),
    }
}

fn named(spec: &AppSpec, program: &Program) -> Result<()> {
    match (&program.root, spec.engine) {
        (Some(root), _) => magic_links::check_in(root, program),
        (None, EngineKind::Bare) => magic_links::check_in(Path::new("/"), program),
        // It is alone in its cell, and called by its name.
        (None, _) if spec.command.is_empty() => Ok(()),
        (None, _) => magic_links::check_in(Path::new("/nonexistent"), program),
    }
}

fn engine(spec: &AppSpec) -> Result<()> {
    let kind = spec.image.kind();
    if !spec.engine.makes(kind) {
        let those = EngineKind::ALL
            .into_iter()
            .filter(|engine| engine.makes(kind));
        let names: Vec<&str> = those.map(EngineKind::name).collect();
        return Err(refused!(
            "{} cannot make cells from such an image; these engines can: {}",
            spec.engine,
            names.join(", ")
        ));
    }
    if spec.engine == EngineKind::Bare {
        let asked = [
            (spec.writable_root, "a writable root"),
            (!spec.binds.is_empty(), "mounts"),
            (!spec.tmpfs.is_empty(), "directories in memory"),
            (!spec.devices.is_empty(), "devices"),
            (spec.hostname.is_some(), "a host name"),
        ];
        if let Some((_, what)) = asked.iter().find(|(asked, _)| *asked) {
            return Err(refused!(
                "a bare cell sees the host's files and devices and cannot be given {what}; use another engine"
            ));
        }
    }
    if !programs::is_root() {
        return Err("cells of applications need root; run it with `sudo`".into());
    }
    Ok(())
}

fn image(spec: &mut AppSpec) -> Result<()> {
    let is_dir = |what: &str, path: &Path| -> Result<PathBuf> {
        let found = paths::find(what, path)?;
        if found.is_dir() {
            Ok(found)
        } else {
            Err(refused!("{what} {} is not a directory", path.display()))
        }
    };
    match &mut spec.image {
        Image::Rootfs(path) => *path = is_dir("the root filesystem", path)?,
        Image::Bundle(path) => *path = is_dir("the bundle", path)?,
        Image::Binary(path) => {
            let found = paths::find("the program", path)?;
            if !programs::is_program(&found) {
                return Err(refused!("{} is not a program", path.display()));
            }
            paths::check_source(&Root::live(), &found)?;
            // A process of the machine goes by the name by which it is called: some programs do one thing or another by that.
            if spec.engine != EngineKind::Bare {
                alone(&found, path)?;
                binary_target(&found)?;
                *path = found;
            }
        }
        Image::Reference(name) if name.is_empty() || name.starts_with('-') => {
            return Err(refused!("`{name}` is not the name of an image"));
        }
        Image::Reference(_) => {}
    }
    Ok(())
}

/// Checks that a program needs no other files.
fn alone(found: &Path, named: &Path) -> Result<()> {
    rootfs::check_static(found, named).map_err(|error| match error {
        RootfsError::NotStatic { interpreter, .. } => refused!(
            "{} is not static: it needs {}, and the cell of a `binary` contains nothing else; link it statically, or give the cell a \
             `rootfs` with its libraries",
            named.display(),
            interpreter.map_or("libraries".to_owned(), |name| format!("the interpreter {name} and libraries"))
        ),
        other => other.into(),
    })
}

fn hostname(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return Err(refused!(
            "`{name}` is not a host name; use at most 64 letters, digits, `-`, `_` and `.`"
        ));
    }
    Ok(())
}

fn mounts(spec: &mut AppSpec) -> Result<()> {
    let mut targets = BTreeSet::new();
    for bind in &mut spec.binds {
        paths::check_target("the mount's target", &bind.target)?;
        let found = paths::find("the mount's source", &bind.source)?;
        if let Some(before) = bind.leads_to.as_ref().filter(|before| **before != found) {
            return Err(refused!(
                "the mount's source {} now leads to {}, no longer to {}; point it back there, or end the mission and start it \
                 again if the change is intended",
                bind.source.display(),
                found.display(),
                before.display()
            ));
        }
        bind.source = found;
        paths::check_source(&Root::live(), &bind.source)?;
        if !targets.insert(bind.target.clone()) {
            return Err(refused!("{} is mounted twice", bind.target.display()));
        }
    }
    for tmpfs in &spec.tmpfs {
        paths::check_target("the directory in memory", &tmpfs.target)?;
        if tmpfs.size_bytes == 0 {
            return Err(refused!(
                "the directory in memory {} has size 0, which would mean no limit; give a size",
                tmpfs.target.display()
            ));
        }
        if !targets.insert(tmpfs.target.clone()) {
            return Err(refused!("{} is mounted twice", tmpfs.target.display()));
        }
    }
    Ok(())
}

/// Character devices that give access to the machine's memory and ports: /dev/mem, /dev/kmem and /dev/port.
const MEMORY_DEVICES: [(u32, u32); 3] = [(1, 1), (1, 2), (1, 4)];

fn check_device(device: &Device) -> Result<()> {
    let path = &device.path;
    paths::check_target("the device", path)?;
    if !path.starts_with("/dev") {
        return Err(refused!("the device {} is not below /dev", path.display()));
    }
    let found =
        (path.metadata()).doing(|| format!("the device {} cannot be used", path.display()))?;
    let kind = found.file_type();
    if !kind.is_char_device() && !kind.is_block_device() {
        return Err(refused!("{} is not a device", path.display()));
    }
    let number = (libc::major(found.rdev()), libc::minor(found.rdev()));
    if kind.is_char_device() && MEMORY_DEVICES.contains(&number) {
        return Err(refused!(
            "{} is the machine's memory, which no cell may access",
            path.display()
        ));
    }
    Ok(())
}

fn grants(grants: &Grants) -> Result<()> {
    if let Scheduling::Granted(granted) = &grants.scheduling
        && let RealTime::Band {
            lowest, highest, ..
        } = granted.real_time
        && !(1 <= lowest && lowest <= highest && highest <= 99)
    {
        return Err(refused!(
            "the priorities are {lowest} to {highest}; they must be 1 to 99, the lowest first"
        ));
    }
    for name in &grants.capabilities {
        if name.parse::<caps::Capability>().is_err() {
            return Err(refused!(
                "`{name}` is not a capability; names look like `CAP_NET_RAW`"
            ));
        }
    }
    if grants.open_files < 3 {
        return Err("a program needs at least 3 open files".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Access, Bind, Granted, Tmpfs};

    fn fault(change: impl FnOnce(&mut AppSpec)) -> String {
        let dir = tempfile::tempdir().unwrap();
        let mut spec = AppSpec::new(
            "timecell-test",
            EngineKind::Embedded,
            Image::Rootfs(dir.path().to_owned()),
            Path::new("/w"),
        );
        spec.command = vec!["/x".into()];
        change(&mut spec);
        check(&spec).map_or_else(|why| why.to_string(), |_| String::new())
    }

    #[test]
    fn a_process_goes_by_the_name_by_which_it_is_called() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/bin/sh", &link).unwrap();
        let mut spec = AppSpec::new(
            "timecell-test",
            EngineKind::Bare,
            Image::Binary(link.clone()),
            Path::new("/w"),
        );
        image(&mut spec).unwrap();
        assert_eq!(spec.image, Image::Binary(link.clone()));
        assert_eq!(
            Program::of(&spec).unwrap().args,
            [link.display().to_string()]
        );
        let plain = dir.path().join("plain");
        std::fs::write(&plain, "").unwrap();
        spec.image = Image::Binary(plain);
        assert!(
            image(&mut spec)
                .unwrap_err()
                .to_string()
                .contains("is not a program")
        );
    }

    #[test]
    fn each_fault_is_one_sentence() {
        if !programs::is_root() {
            assert!(fault(|_| ()).contains("need root"));
            return;
        }
        assert_eq!(fault(|_| ()), "");
        let bind = |source: &str, target: &str| Bind::new(source, target, false);
        type Change = Box<dyn FnOnce(&mut AppSpec)>;
        let faults: Vec<(Change, &str)> = vec![
            (Box::new(|s| s.id = "../x".into()), "not a valid cell name"),
            (
                Box::new(|s| s.image = Image::Rootfs("/".into())),
                "host's own root",
            ),
            (
                Box::new(|s| s.image = Image::Rootfs("/nowhere".into())),
                "/nowhere cannot be used",
            ),
            (
                Box::new(|s| s.image = Image::Reference("x".into())),
                "these engines can: podman",
            ),
            (Box::new(|s| s.command.clear()), "no command"),
            (
                Box::new(move |s| s.binds = vec![bind("/proc/sys", "/a")]),
                "type proc",
            ),
            (
                Box::new(move |s| s.binds = vec![bind("/", "/a")]),
                "host's own root",
            ),
            (
                Box::new(move |s| s.binds = vec![bind("/etc", "/a"), bind("/var", "/a")]),
                "mounted twice",
            ),
            (
                Box::new(|s| {
                    s.tmpfs = vec![Tmpfs {
                        target: "/t".into(),
                        size_bytes: 0,
                    }];
                }),
                "has size 0",
            ),
            (
                Box::new(|s| {
                    s.devices = vec![Device {
                        path: "/dev/shm".into(),
                        access: Access::Read,
                    }];
                }),
                "is not a device",
            ),
            (
                Box::new(|s| s.grants.capabilities = vec!["NET_RAW".into()]),
                "`NET_RAW` is not a capability",
            ),
            (
                Box::new(|s| {
                    let real_time = RealTime::Band {
                        lowest: 3,
                        highest: 100,
                        round_robin: false,
                    };
                    let cpus = vec![0];
                    s.grants.scheduling = Scheduling::Granted(Granted {
                        real_time,
                        cpus,
                        held_in: None,
                    });
                }),
                "1 to 99",
            ),
            (Box::new(|s| s.limits.pids = 0), "at least one process"),
            (
                Box::new(|s| s.hostname = Some("a b".into())),
                "not a host name",
            ),
            (
                Box::new(|s| {
                    s.engine = EngineKind::Bare;
                }),
                "cannot make cells",
            ),
        ];
        for (change, says) in faults {
            let fault = fault(change);
            assert!(fault.contains(says), "{says}: {fault}");
        }
    }
}
