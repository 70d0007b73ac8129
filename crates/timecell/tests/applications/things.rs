//! The things that cells are given, and how they see them.

use std::fs;
use std::path::Path;

use engine::app::{Access, Bind, Bundle, Device, Ended, Ids, Image, Network, Tmpfs};
use model::EngineKind;

use crate::support::{Place, refusal, rootfs, run};

pub fn says_hello_and_leaves_nothing(kind: EngineKind) {
    let place = Place::new(kind);
    let (ended, output) = run(&place.script(kind, "echo hello; echo bad >&2; exit 7"));
    assert_eq!(ended, Ended::Exited(7), "{output}");
    assert_eq!(output, "hello\nbad\n");
}

pub fn command_environment_directory_and_user_are_as_asked(kind: EngineKind) {
    let place = Place::new(kind);
    let mut spec = place.script(
        kind,
        "echo $0 $1; pwd; id -u; id -g; hostname; echo $COLOUR; umask",
    );
    spec.args = vec!["zero".into(), "one two".into()];
    spec.env.insert("COLOUR".into(), "a=b c".into());
    spec.cwd = Some("/bin".into());
    spec.ids = Some(Ids { uid: 12, gid: 34 });
    spec.hostname = Some("camera-1".into());
    assert_eq!(
        run(&spec).1,
        "zero one two\n/bin\n12\n34\ncamera-1\na=b c\n0022\n"
    );
}

pub fn nobody_in_a_cell_of_its_own_is_the_default(kind: EngineKind) {
    let place = Place::new(kind);
    let spec = place.script(
        kind,
        "id -u; hostname; pwd; echo $$; set -- /proc/[0-9]*; echo $#",
    );
    let host: String = spec.id.chars().take(64).collect();
    // The shell is the only process.
    assert_eq!(run(&spec).1, format!("65534\n{host}\n/\n1\n1\n"));
}

pub fn a_cell_has_no_network_unless_it_is_the_hosts(kind: EngineKind) {
    let place = Place::new(kind);
    let mut spec = place.script(kind, "ls /sys/class/net");
    assert_eq!(run(&spec).1, "lo\n");
    spec.network = Network::Host;
    let mut names: Vec<String> = fs::read_dir("/sys/class/net")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(run(&spec).1, format!("{}\n", names.join("\n")));
}

pub fn a_writable_root_is_lost_with_the_cell(kind: EngineKind) {
    let place = Place::new(kind);
    let script = "touch /new && rm /bin/ls && mkdir -p /a/b && ls / | grep -c new";
    let mut spec = place.script(kind, script);
    spec.ids = Some(Ids { uid: 0, gid: 0 });
    spec.writable_root = true;
    // Once more in the same place, without the first one's files.
    for _ in 0..2 {
        assert_eq!(run(&spec), (Ended::Exited(0), "1\n".to_owned()));
    }
    assert!(rootfs().join("bin/ls").exists());
    spec.writable_root = false;
    assert_ne!(run(&spec).0, Ended::Exited(0));
}

pub fn mounts_are_what_they_were_asked_to_be(kind: EngineKind) {
    let place = Place::new(kind);
    let (open, closed) = (place.writable("open"), place.writable("closed"));
    fs::write(closed.join("file"), "there").unwrap();
    let bind = |source: &Path, target: &str, writable| Bind::new(source, target, writable);
    let mut spec = place.script(
        kind,
        "echo x > /scratch/deep/open/file; cat /closed/file /one; \
         echo x 2>/dev/null > /closed/new || echo closed; \
         (echo x > /one) 2>/dev/null || echo one; \
         dd if=/dev/zero of=/scratch/big bs=1k count=2000 2>/dev/null || echo full; \
         echo x > /dev/shm/x && cat /dev/shm/x",
    );
    spec.binds = vec![
        bind(&open, "/scratch/deep/open", true),
        bind(&closed, "/closed", false),
        bind(&closed.join("file"), "/one", false),
    ];
    spec.tmpfs = vec![Tmpfs {
        target: "/scratch".into(),
        size_bytes: 1 << 20,
    }];
    assert_eq!(
        run(&spec),
        (
            Ended::Exited(0),
            "therethereclosed\none\nfull\nx\n".to_owned()
        )
    );
    assert_eq!(fs::read(open.join("file")).unwrap(), b"x\n");
}

pub fn granted_devices_and_no_others_are_there(kind: EngineKind) {
    let device = "/dev/fuse";
    if !Path::new(device).exists() {
        println!("{device} is not there");
        return;
    }
    let place = Place::new(kind);
    let script = "for node in /dev/*; do [ -c $node ] && [ ! -L $node ] && echo $node; done; \
        (: < /dev/fuse) 2>/dev/null && echo read; (: >> /dev/fuse) 2>/dev/null && echo written; true";
    let mut spec = place.script(kind, script);
    let common: Vec<String> = run(&spec).1.lines().map(str::to_owned).collect();
    for name in &common {
        let known = [
            "null", "zero", "full", "random", "urandom", "tty", "ptmx", "console",
        ];
        assert!(known.contains(&name.trim_start_matches("/dev/")), "{name}");
    }
    // With podman, a node belongs to its owner on the host.
    let id = if kind == EngineKind::Podman { 0 } else { 1000 };
    spec.ids = Some(Ids { uid: id, gid: id });
    spec.devices = vec![Device {
        path: device.into(),
        access: Access::Read,
    }];
    let (_, text) = run(&spec);
    assert!(text.contains("/dev/fuse\n"), "{text}");
    assert!(text.contains("read") && !text.contains("written"), "{text}");
    spec.devices[0].access = Access::ReadWrite;
    let (_, text) = run(&spec);
    assert!(text.contains("read") && text.contains("written"), "{text}");
}

pub fn a_bundle_says_what_to_run_and_grants_nothing(kind: EngineKind) {
    let place = Place::new(kind);
    let bundle = place.path().join("bundle");
    fs::create_dir(&bundle).unwrap();
    std::os::unix::fs::symlink(rootfs(), bundle.join("rootfs")).unwrap();
    let config = serde_json::json!({
        "ociVersion": "1.0.2",
        "hostname": "from-bundle",
        "root": { "path": "rootfs" },
        "process": {
            "args": ["sh", "-c", "hostname; id -u; pwd; echo $COLOUR; grep CapEff /proc/self/status; ls /out 2>/dev/null; true"],
            "env": ["PATH=/bin", "COLOUR=red"],
            "cwd": "/bin",
            "user": { "uid": 77, "gid": 78 },
            "capabilities": { "bounding": ["CAP_SYS_ADMIN"], "effective": ["CAP_SYS_ADMIN"],
                "permitted": ["CAP_SYS_ADMIN"], "ambient": ["CAP_SYS_ADMIN"] },
        },
        "mounts": [{ "destination": "/out", "type": "bind", "source": "/etc", "options": ["bind"] }],
    });
    fs::write(bundle.join("config.json"), config.to_string()).unwrap();
    let mut spec = place.spec(kind, Image::Bundle(bundle.clone()));
    assert_eq!(
        run(&spec).1,
        "from-bundle\n77\n/bin\nred\nCapEff:\t0000000000000000\n"
    );
    assert_eq!(
        Bundle::read(&bundle).unwrap().ignored,
        ["process.capabilities", "mounts: /out (bind)"]
    );
    spec.env.insert("COLOUR".into(), "blue".into());
    spec.command = ["sh", "-c", "echo $COLOUR"].map(str::to_owned).to_vec();
    assert_eq!(run(&spec).1, "blue\n");
    fs::write(bundle.join("config.json"), "{}").unwrap();
    let error = refusal(&spec);
    assert!(error.contains("config.json:1: missing field"), "{error}");
}

pub fn a_static_program_needs_nothing_else(kind: EngineKind) {
    let place = Place::new(kind);
    let mut spec = place.spec(kind, Image::Binary("/usr/bin/busybox".into()));
    spec.args = ["ls", "/"].map(str::to_owned).to_vec();
    let (ended, text) = run(&spec);
    assert_eq!(ended, Ended::Exited(0), "{text}");
    let names: Vec<&str> = text.lines().collect();
    assert!(names.contains(&"busybox"), "{text}");
    let known = ["busybox", "dev", "proc", "sys", "etc", "run"];
    assert!(names.iter().all(|name| known.contains(name)), "{text}");
    spec.image = Image::Binary("/bin/sh".into());
    let error = refusal(&spec);
    assert!(error.contains("is not static"), "{error}");
}

/// As a plain process: the host's files, but the user, limits and filter of a cell.
pub fn a_bare_cell_is_a_process_in_the_same_cage(kind: EngineKind) {
    let place = Place::new(kind);
    let mut spec = place.spec(kind, Image::Binary("/usr/bin/busybox".into()));
    spec.cwd = Some("/var/tmp".into());
    spec.args = ["sh", "-c", "pwd; id -u; id -G; ls /sys/class/net; grep -E 'CapBnd|NoNewPrivs|Seccomp:|SigIgn' /proc/self/status; exit 3"]
        .map(str::to_owned)
        .to_vec();
    let (ended, text) = run(&spec);
    assert_eq!(ended, Ended::Exited(3), "{text}");
    let expected = "/var/tmp\n65534\n65534\n";
    assert!(text.starts_with(expected), "{text}");
    for line in [
        "CapBnd:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
        "SigIgn:\t0000000000000000",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    spec.tmpfs.push(Tmpfs {
        target: "/x".into(),
        size_bytes: 1,
    });
    assert!(refusal(&spec).contains("cannot be given directories in memory"));
}

/// An image in podman's own storage, made for this test and removed with it.
pub fn an_image_is_run_by_its_name(kind: EngineKind) {
    struct Built(String);
    impl Drop for Built {
        fn drop(&mut self) {
            let _ = std::process::Command::new("podman")
                .args(["rmi", "--force", &self.0])
                .output();
        }
    }
    let place = Place::new(kind);
    let archive = place.path().join("root.tar");
    let run_to_end = |program: &str, words: &[&str]| {
        let done = std::process::Command::new(program)
            .args(words)
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{program}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    let (root, archive) = (rootfs(), archive.display().to_string());
    run_to_end(
        "tar",
        &["-cf", &archive, "-C", &root.display().to_string(), "."],
    );
    let name = format!("localhost/timecell-test-{}:1", std::process::id());
    let changes = r#"ENTRYPOINT ["sh", "-c"]"#;
    run_to_end(
        "podman",
        &[
            "import",
            "--change",
            changes,
            "--change",
            "USER 55:66",
            &archive,
            &name,
        ],
    );
    let _built = Built(name.clone());
    let mut spec = place.spec(kind, Image::Reference(name));
    spec.args = vec!["id -u; id -g; echo $COLOUR; hostname".to_owned()];
    spec.env.insert("COLOUR".into(), "red".into());
    spec.hostname = Some("image-1".into());
    assert_eq!(run(&spec).1, "55\n66\nred\nimage-1\n");
    spec.command = ["echo", "own"].map(str::to_owned).to_vec();
    spec.args = vec!["words".to_owned()];
    assert_eq!(run(&spec).1, "own words\n");
    let left = std::process::Command::new("podman")
        .args(["ps", "--all", "--format", "{{.Names}}"])
        .output()
        .unwrap();
    assert!(left.status.success());
    assert!(!String::from_utf8_lossy(&left.stdout).contains(&spec.id));
    // A container that already has the name is somebody else's.
    let podman = |words: &[&str]| run_to_end("podman", words);
    let image = match &spec.image {
        Image::Reference(name) => name.clone(),
        _ => unreachable!(),
    };
    podman(&["create", "--name", &spec.id, &image, "true"]);
    let error = refusal(&spec);
    assert!(error.contains("in use"), "{error}");
    podman(&["container", "exists", &spec.id]);
    podman(&["rm", "--force", &spec.id]);
    spec.image = Image::Reference("localhost/timecell-no-such-image:1".into());
    let unmet = engine::app::requirements(&spec)
        .into_iter()
        .find(|need| !need.met);
    let unmet = unmet.expect("there is no such image");
    assert_eq!(
        unmet.fix.unwrap(),
        "podman pull localhost/timecell-no-such-image:1"
    );
    let error = refusal(&spec);
    assert!(error.contains("no-such-image"), "{error}");
}
