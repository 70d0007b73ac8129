//! Whether what is asked for can be had, before anything is made: each fault is one sentence.

use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use host::root::Root;
use model::EngineKind;

use super::bundle::Bundle;
use super::program::{Program, binary_target};
use super::spec::{AppSpec, Device, Image};
use super::{Grants, Scheduling};
use super::{magic_links, paths, root};
use crate::rootfs::{self, RootfsError};
use crate::{note, programs};

/// Checks everything; returns the same with every path of the host as it really is, and what is executed; nothing is
/// known of the latter where only the engine knows the image.
pub(super) fn check(spec: &AppSpec) -> Result<(AppSpec, Option<Program>), String> {
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
            return Err(format!(
                "`{name}` is not a name for an environment variable"
            ));
        }
    }
    if let Some(cwd) = &spec.cwd
        && !cwd.is_absolute()
    {
        return Err(format!("the directory `{}` is not absolute", cwd.display()));
    }
    if let Some(name) = &spec.hostname {
        hostname(name)?;
    }
    mounts(&mut spec)?;
    for device in &spec.devices {
        check_device(device)?;
    }
    if spec.limits.pids == 0 {
        return Err("a cell needs at least one process; the limit is 0".to_owned());
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

/// That the image, where it is a directory, has no links in place of what is mounted in it.
///
/// # Errors
/// One sentence. What else is wrong with the image is no error here.
pub fn check_image(spec: &AppSpec) -> Result<(), String> {
    let root = match &spec.image {
        Image::Rootfs(root) => Some(root.clone()),
        Image::Bundle(dir) => Bundle::read(dir).ok().map(|bundle| bundle.root),
        Image::Binary(_) | Image::Reference(_) => None,
    };
    root.map_or(Ok(()), |root| root::check(&root, spec))
}

/// That the program and its interpreters are files of the cell's image, as far as can be seen before there is a cell, and that a
/// program which is alone in its cell is static.
///
/// # Errors
/// One sentence. What else is wrong with the image is no error here.
pub fn check_program(spec: &AppSpec) -> Result<(), String> {
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

fn named(spec: &AppSpec, program: &Program) -> Result<(), String> {
    match (&program.root, spec.engine) {
        (Some(root), _) => magic_links::check_in(root, program),
        (None, EngineKind::Bare) => magic_links::check_in(Path::new("/"), program),
        // It is alone in its cell, and called by its name.
        (None, _) if spec.command.is_empty() => Ok(()),
        (None, _) => magic_links::check_in(Path::new("/nonexistent"), program),
    }
}

fn engine(spec: &AppSpec) -> Result<(), String> {
    let kind = spec.image.kind();
    if !spec.engine.makes(kind) {
        let those = EngineKind::ALL
            .into_iter()
            .filter(|engine| engine.makes(kind));
        let names: Vec<&str> = those.map(EngineKind::name).collect();
        return Err(format!(
            "{} makes no cells of such an image; these do: {}",
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
            return Err(format!(
                "a bare cell sees the host's files and devices and cannot be given {what}; another engine can"
            ));
        }
    }
    if !programs::is_root() {
        return Err("cells of applications need root; run it with `sudo`".to_owned());
    }
    Ok(())
}

fn image(spec: &mut AppSpec) -> Result<(), String> {
    let is_dir = |what: &str, path: &Path| -> Result<PathBuf, String> {
        let found = paths::find(what, path)?;
        if found.is_dir() {
            Ok(found)
        } else {
            Err(format!("{what} {} is no directory", path.display()))
        }
    };
    match &mut spec.image {
        Image::Rootfs(path) => *path = is_dir("the root filesystem", path)?,
        Image::Bundle(path) => *path = is_dir("the bundle", path)?,
        Image::Binary(path) => {
            let found = paths::find("the program", path)?;
            if !programs::is_program(&found) {
                return Err(format!("{} is no program", path.display()));
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
            return Err(format!("`{name}` is not the name of an image"));
        }
        Image::Reference(_) => {}
    }
    Ok(())
}

/// That a program needs nothing but itself.
fn alone(found: &Path, named: &Path) -> Result<(), String> {
    rootfs::check_static(found, named).map_err(|error| match error {
        RootfsError::NotStatic { interpreter, .. } => format!(
            "{} is not static: it needs {}, and a cell of a `binary` holds nothing else; link it statically, or give the cell a \
             `rootfs` with its libraries",
            named.display(),
            interpreter.map_or("libraries".to_owned(), |name| format!("the interpreter {name} and libraries"))
        ),
        other => other.to_string(),
    })
}

fn hostname(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return Err(format!(
            "`{name}` is not a host name: letters, digits, `-`, `_` and `.`, at most 64"
        ));
    }
    Ok(())
}

fn mounts(spec: &mut AppSpec) -> Result<(), String> {
    let mut targets = BTreeSet::new();
    for bind in &mut spec.binds {
        paths::check_target("the mount's target", &bind.target)?;
        let found = paths::find("the mount's source", &bind.source)?;
        if let Some(before) = bind.leads_to.as_ref().filter(|before| **before != found) {
            return Err(format!(
                "the mount's source {} now leads to {}, and no longer to {}; lead it back there, or end the mission and start it \
                 again if that is meant",
                bind.source.display(),
                found.display(),
                before.display()
            ));
        }
        bind.source = found;
        paths::check_source(&Root::live(), &bind.source)?;
        if !targets.insert(bind.target.clone()) {
            return Err(format!("{} is mounted twice", bind.target.display()));
        }
    }
    for tmpfs in &spec.tmpfs {
        paths::check_target("the directory in memory", &tmpfs.target)?;
        if tmpfs.size_bytes == 0 {
            return Err(format!(
                "the directory in memory {} has size 0, which would be no limit; give one",
                tmpfs.target.display()
            ));
        }
        if !targets.insert(tmpfs.target.clone()) {
            return Err(format!("{} is mounted twice", tmpfs.target.display()));
        }
    }
    Ok(())
}

/// Character devices that hand out the machine itself: /dev/mem, /dev/kmem and /dev/port.
const MEMORY_DEVICES: [(u32, u32); 3] = [(1, 1), (1, 2), (1, 4)];

fn check_device(device: &Device) -> Result<(), String> {
    let path = &device.path;
    paths::check_target("the device", path)?;
    if !path.starts_with("/dev") {
        return Err(format!("the device {} is not below /dev", path.display()));
    }
    let found = (path.metadata())
        .map_err(|error| format!("the device {} cannot be used: {error}", path.display()))?;
    let kind = found.file_type();
    if !kind.is_char_device() && !kind.is_block_device() {
        return Err(format!("{} is not a device", path.display()));
    }
    let number = (libc::major(found.rdev()), libc::minor(found.rdev()));
    if kind.is_char_device() && MEMORY_DEVICES.contains(&number) {
        return Err(format!(
            "{} is the machine's own memory, which no cell is given",
            path.display()
        ));
    }
    Ok(())
}

fn grants(grants: &Grants) -> Result<(), String> {
    if let Scheduling::UpTo { priority } = grants.scheduling
        && !(1..=99).contains(&priority)
    {
        return Err(format!(
            "the highest priority is {priority}; it must be 1 to 99"
        ));
    }
    for name in &grants.capabilities {
        if name.parse::<caps::Capability>().is_err() {
            return Err(format!(
                "`{name}` is not a capability; they are called such as `CAP_NET_RAW`"
            ));
        }
    }
    if grants.open_files < 3 {
        return Err("a program needs at least 3 open files".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Access, Bind, Tmpfs};

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
        check(&spec).err().unwrap_or_default()
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
        assert!(image(&mut spec).unwrap_err().contains("is no program"));
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
            (Box::new(|s| s.id = "../x".into()), "not a name for a cell"),
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
                "these do: podman",
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
                Box::new(|s| s.grants.scheduling = Scheduling::UpTo { priority: 100 }),
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
                "makes no cells",
            ),
        ];
        for (change, says) in faults {
            let fault = fault(change);
            assert!(fault.contains(says), "{says}: {fault}");
        }
    }
}
