//! `docker`, by its command line, where a daemon answers.

use std::process::Command;

use host::install::install;
use model::{EngineKind, Requirement};

use super::calls::{Calls, Form, Namespaces, Network, Source};
use super::info::{Info, installed};
use crate::error::Result;
use crate::identity::Identity;
use crate::made::{self, Payload};
use crate::note::MARK;
use crate::{
    Cell, CellSpec, Engine, EngineError, Footprint, cgroups, limits, process, programs, unit,
};

pub(super) static INFO: Info = Info {
    engine: |_| Box::new(Docker),
    programs: || installed(&["docker"]),
    wipe,
    run: None,
    steps: None,
    calls: Some(&Docker),
    apps: None,
};

struct Docker;

impl Engine for Docker {
    fn kind(&self) -> EngineKind {
        EngineKind::Docker
    }

    fn requirements(&self) -> Vec<Requirement> {
        let program = programs::requirement("docker", "docker.io");
        let installed = program.met;
        let mut all = vec![program];
        if installed {
            all.push(daemon());
        }
        all
    }

    fn version(&self) -> Option<String> {
        let format = "docker {{.Server.Version}}";
        programs::first_line("docker", &["version", "--format", format])
    }

    fn cell_sets_class(&self) -> bool {
        true
    }

    fn footprint(&self) -> Footprint {
        // At the least: a shim is beside the payload, whose threads vary.
        Footprint {
            processes: 2,
            keys: 1,
            ..Footprint::CONTAINER
        }
    }

    fn create(&self, spec: &CellSpec) -> Result<Box<dyn Cell>, EngineError> {
        made::create(spec, || make(spec), wipe)
    }
}

fn daemon() -> Requirement {
    const WHAT: &str = "docker daemon";
    match programs::first_line("docker", &["version", "--format", "{{.Server.Version}}"]) {
        Some(version) => Requirement::met(WHAT, version),
        None => Requirement::unmet(
            WHAT,
            "no daemon answers on /var/run/docker.sock",
            started(programs::find("dockerd").is_some(), unit::systemd_runs()),
        ),
    }
}

/// How docker's daemon comes to run, where it is installed or not.
fn started(is_installed: bool, by_systemd: bool) -> String {
    let start = match by_systemd {
        true => "systemctl start docker",
        false => "start dockerd",
    };
    match is_installed {
        true => start.to_owned(),
        false => format!("{}, then {start}", install("docker.io")),
    }
}

/// An image with the one file, named like the cell: docker knows no plain root directory.
fn import(spec: &CellSpec) -> Result<()> {
    let archive = made::pack(spec)?;
    let mut import = docker(spec)?;
    import.arg("import").arg(&archive).arg(&spec.id);
    process::run_quiet(&mut import, &made::log(spec))
}

fn make(spec: &CellSpec) -> Result<Payload> {
    import(spec)?;
    let mut command = run(spec, &["--detach", "--network", "none"])?;
    process::run_quiet(&mut command, &made::log(spec))?;
    let pid = programs::first_line(
        "docker",
        &["inspect", "--format", "{{.State.Pid}}", &spec.id],
    )
    .and_then(|line| line.parse().ok())
    .filter(|pid| *pid > 1)
    .ok_or("docker reports no pid; the payload has already ended")?;
    Ok(Payload {
        pid,
        child: None,
        helper: None,
    })
}

impl Calls for Docker {
    fn forms(&self) -> &'static [Form] {
        const FORMS: &[Form] = &[
            Form::new("docker", Source::Image, Network::Connected),
            Form::new("docker, host net", Source::Image, Network::Host),
        ];
        FORMS
    }

    fn prepare(&self, spec: &CellSpec) -> Result<Option<Namespaces>> {
        import(spec).map(|()| None)
    }

    fn call(
        &self,
        spec: &CellSpec,
        _: Option<&Namespaces>,
        _: Source,
        network: Network,
    ) -> Result<Command> {
        run(spec, &["--rm", "--network", network.name()])
    }
}

fn run(spec: &CellSpec, how: &[&str]) -> Result<Command> {
    let mut command = docker(spec)?;
    command
        .args(["run", "--name", &spec.id, "--read-only"])
        .args(how)
        .args(["--cap-drop", "ALL", "--security-opt", "no-new-privileges"])
        .args(["--env", &format!("{MARK}={}", spec.id)])
        .arg("--volume")
        .arg(format!("{}:/cell:rw", spec.shared.display()));
    command.args(limits::words(&spec.rights.limits));
    if spec.rights.rtprio > 0 {
        command.args(["--cap-add", "SYS_NICE", "--cap-add", "IPC_LOCK"]);
    }
    for limit in limits::of(&spec.rights) {
        let name = limit.name.trim_start_matches("RLIMIT_").to_lowercase();
        command.args(["--ulimit", &format!("{name}={0}:{0}", limit.value)]);
    }
    for device in &spec.rights.devices {
        command.arg("--device").arg(device);
    }
    command.arg(&spec.id).arg("/timecell").args(&spec.words);
    Ok(command)
}

fn wipe(cell: &dyn Identity) -> Result<()> {
    if programs::find("docker").is_some() {
        // Nothing tells a cell that was never made from one that cannot be removed but the daemon's words.
        for words in [["rm", "--force", cell.id()], ["rmi", "--force", cell.id()]] {
            let mut command = docker(cell)?;
            let _ = process::run_quiet(command.args(words), &made::log(cell));
        }
    }
    cgroups::remove(cell.id())
}

fn docker(cell: &dyn Identity) -> Result<Command> {
    let program = programs::find("docker").ok_or("`docker` is not installed")?;
    let mut command = Command::new(program);
    command.env(MARK, cell.id()).current_dir("/");
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_is_installed_is_only_to_be_started() {
        assert_eq!(started(true, true), "systemctl start docker");
        assert_eq!(started(true, false), "start dockerd");
        let both = started(false, false);
        assert!(
            both.contains("install ") || both.contains("pacman") || both.contains("apk"),
            "{both}"
        );
        assert!(both.ends_with(", then start dockerd"), "{both}");
    }
}
