//! Checks of a cell's specification, before anything is made: each fault is one sentence.

use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use host::found::Found;
use model::EngineKind;

use super::bundle::Bundle;
use super::program::{Program, binary_target};
use super::sources::{Sources, find, may_be_shown};
use super::spec::{AppSpec, Device, Image};
use super::{Grants, RealTime, Scheduling};
use super::{magic_links, paths, root};
use crate::error::{Doing, Result, refused};
use crate::rootfs::{self, RootfsError};
use crate::{note, programs};

/// A specification that was checked, and all that was looked up for it.
#[derive(Debug)]
pub(super) struct Checked {
    /// Every path of the host in it is resolved.
    pub(super) spec: AppSpec,
    /// `None` where only the engine knows the image.
    pub(super) program: Option<Program>,
    pub(super) sources: Sources,
}

/// Checks everything.
pub(super) fn check(spec: &AppSpec) -> Result<Checked> {
    note::check(spec, &[])?;
    engine(spec)?;
    let mut spec = spec.clone();
    let mut image = image(&mut spec)?;
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
    let mut mounts = mounts(&mut spec)?;
    for device in &spec.devices {
        check_device(device)?;
    }
    if spec.limits.pids == 0 {
        return Err("a cell needs at least one process; the limit is 0".into());
    }
    grants(&spec.grants)?;
    let program = match spec.image {
        Image::Reference(_) => None,
        _ => Some(image.program(&spec)?),
    };
    if let Some(root) = &image.root {
        root::check(root, &spec)?;
    }
    if let Some(program) = &program {
        named(&spec, program, image.root.as_ref())?;
    }
    mounts.extend(image.binary.take());
    let sources = Sources {
        root: image.root,
        mounts,
    };
    Ok(Checked {
        spec,
        program,
        sources,
    })
}

/// Checks that the image, where it is a directory, has no links where something is mounted in it.
///
/// # Errors
/// One sentence. Other faults of the image are not reported here.
pub fn check_image(spec: &AppSpec) -> Result<()> {
    match looked_up(&spec.image) {
        Ok(Looked {
            root: Some(root), ..
        }) => root::check(&root, spec),
        _ => Ok(()),
    }
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
    let Ok(image) = looked_up(&spec.image) else {
        return Ok(());
    };
    match spec.image {
        Image::Reference(_) => Ok(()),
        _ => (image.program(spec))
            .map_or(Ok(()), |program| named(spec, &program, image.root.as_ref())),
    }
}

fn named(spec: &AppSpec, program: &Program, root: Option<&Found>) -> Result<()> {
    match (root, spec.engine) {
        (Some(root), _) => magic_links::check_in(&root.way(), program),
        (None, EngineKind::Bare) => magic_links::check_in(Path::new("/"), program),
        // It is alone in its cell, and called by its name.
        (None, _) if spec.command.is_empty() => Ok(()),
        (None, _) => magic_links::check_in(Path::new("/nonexistent"), program),
    }
}

/// An image on the host.
#[derive(Debug, Default)]
struct Looked {
    root: Option<Found>,
    /// A static program that is alone in its cell.
    binary: Option<Found>,
    bundle: Option<Bundle>,
}

impl Looked {
    fn program(&self, spec: &AppSpec) -> Result<Program> {
        Program::of(spec, self.bundle.as_ref(), self.root.as_ref())
    }
}

/// Looks up an image; a program only by [`image`].
fn looked_up(image: &Image) -> Result<Looked> {
    let dir = |what: &str, path: &Path| -> Result<Found> {
        let found = find(what, path)?;
        match found.metadata()?.is_dir() {
            true => Ok(found),
            false => Err(refused!("{what} {} is not a directory", path.display())),
        }
    };
    Ok(match image {
        Image::Rootfs(path) => Looked {
            root: Some(dir("the root filesystem", path)?),
            ..Looked::default()
        },
        Image::Bundle(path) => {
            let (bundle, root) = Bundle::of(&dir("the bundle", path)?)?;
            // It may be anywhere.
            may_be_shown("the root filesystem", &root)?;
            Looked {
                root: Some(root),
                bundle: Some(bundle),
                ..Looked::default()
            }
        }
        Image::Binary(_) | Image::Reference(_) | Image::Inmate(_) => Looked::default(),
    })
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

/// Checks and looks up the image; the path of a program becomes the one where it was found.
fn image(spec: &mut AppSpec) -> Result<Looked> {
    let mut looked = looked_up(&spec.image)?;
    match &mut spec.image {
        Image::Rootfs(_) | Image::Bundle(_) | Image::Inmate(_) => {}
        Image::Binary(path) => {
            let found = find("the program", path)?;
            if !programs::is_program(&found.way()) {
                return Err(refused!("{} is not a program", path.display()));
            }
            // A process of the machine goes by the name by which it is called: some programs do one thing or another by that.
            if spec.engine != EngineKind::Bare {
                alone(&found.way(), path)?;
                binary_target(found.path())?;
                found.path().clone_into(path);
                looked.binary = Some(found);
            }
        }
        Image::Reference(name) if name.is_empty() || name.starts_with('-') => {
            return Err(refused!("`{name}` is not the name of an image"));
        }
        Image::Reference(_) => {}
    }
    Ok(looked)
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

/// Checks and looks up the sources of mounts.
fn mounts(spec: &mut AppSpec) -> Result<Vec<Found>> {
    let mut targets = BTreeSet::new();
    let mut sources = Vec::new();
    for bind in &mut spec.binds {
        paths::check_target("the mount's target", &bind.target)?;
        let found = find("the mount's source", &bind.source)?;
        if let Some(before) = (bind.leads_to.as_deref()).filter(|before| *before != found.path()) {
            return Err(refused!(
                "the mount's source {} now leads to {}, no longer to {}; point it back there, or end the mission and start it \
                 again if the change is intended",
                bind.source.display(),
                found.path().display(),
                before.display()
            ));
        }
        found.path().clone_into(&mut bind.source);
        if !targets.insert(bind.target.clone()) {
            return Err(refused!("{} is mounted twice", bind.target.display()));
        }
        sources.push(found);
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
    Ok(sources)
}

/// Character devices that give access to the machine's memory and ports: /dev/mem, /dev/kmem and /dev/port.
const MEMORY_DEVICES: [(u32, u32); 3] = [(1, 1), (1, 2), (1, 4)];

fn check_device(device: &Device) -> Result<()> {
    let path = &device.path;
    paths::check_target("the device", path)?;
    if !path.starts_with("/dev") {
        return Err(refused!("the device {} is not below /dev", path.display()));
    }
    let looked =
        Found::at(path).doing(|| format!("the device {} cannot be used", path.display()))?;
    let found = looked.metadata()?;
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
    // Its number is read again when its node is made.
    if !looked.is_own() {
        return Err(refused!(
            "another user could put another device in the place of {}; move it to a directory to which only root may write",
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
        let found = image(&mut spec).unwrap();
        assert_eq!(spec.image, Image::Binary(link.clone()));
        assert_eq!(
            found.program(&spec).unwrap().args,
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
                Box::new(|s| {
                    let path = std::path::PathBuf::from(format!(
                        "/dev/shm/timecell-test-{}",
                        std::process::id()
                    ));
                    std::os::unix::fs::symlink("/dev/null", &path).unwrap();
                    std::os::unix::fs::lchown(&path, Some(65_534), None).unwrap();
                    let access = Access::Read;
                    s.devices = vec![Device { path, access }];
                }),
                "is a link that another user",
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
        let link = format!("/dev/shm/timecell-test-{}", std::process::id());
        std::fs::remove_file(link).unwrap();
    }
}
