//! Running containers that somebody else started: found by name or id. Nothing here makes or changes one.

use std::process::Command;
use std::time::Duration;

use model::EngineKind;

use crate::{process, programs};

/// How long an engine may take to answer about one container.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Podman, run by root, or docker.
    pub engine: EngineKind,
    /// Its name in the engine.
    pub name: String,
    /// 64 hexadecimal digits.
    pub id: String,
    /// Its first process, above 1.
    pub pid: i32,
}

/// Why a container is not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRunning {
    /// No engine knows it.
    #[error("neither podman nor docker has a container `{name}`{why}")]
    Unknown {
        /// The requested name.
        name: String,
        /// Why an engine could not be asked, a clause after a semicolon; empty where all were.
        why: String,
    },
    /// It exists, but no process of it runs.
    #[error("the container `{name}` of {engine} is not running")]
    Stopped {
        /// The requested name.
        name: String,
        /// Its engine.
        engine: &'static str,
    },
    /// Two engines have one.
    #[error("podman and docker both have a container `{name}`; name the one you mean by its id")]
    Several {
        /// The requested name.
        name: String,
    },
}

impl NotRunning {
    /// The requested name.
    pub fn name(&self) -> &str {
        match self {
            NotRunning::Unknown { name, .. }
            | NotRunning::Stopped { name, .. }
            | NotRunning::Several { name } => name,
        }
    }
}

/// An engine's answer about a container.
enum Answer {
    Runs(Running),
    Stopped,
    None,
    /// It was not asked, or does not say, for this reason.
    Silent(String),
}

/// The container of this name or id among those of podman (root's) and docker.
///
/// # Errors
/// [`NotRunning`].
pub fn find(name: &str) -> Result<Running, NotRunning> {
    if !is_name(name) {
        return Err(NotRunning::Unknown {
            name: name.to_owned(),
            why: String::new(),
        });
    }
    let engines = [
        (EngineKind::Podman, "podman"),
        (EngineKind::Docker, "docker"),
    ];
    let answers = engines.map(|(kind, program)| (program, ask(kind, program, name)));
    of_answers(name, answers)
}

fn of_answers(name: &str, answers: [(&'static str, Answer); 2]) -> Result<Running, NotRunning> {
    let mut found: Vec<Running> = Vec::new();
    let (mut stopped, mut silent) = (None, String::new());
    for (engine, answer) in answers {
        match answer {
            // Where `docker` is podman's under another name, both tell of podman's.
            Answer::Runs(running) if found.iter().any(|other| other.id == running.id) => {}
            Answer::Runs(running) => found.push(running),
            Answer::Stopped => stopped = Some(engine),
            Answer::None => {}
            Answer::Silent(why) => silent.push_str(&format!("; {engine}: {why}")),
        }
    }
    match (found.pop(), found.is_empty(), stopped) {
        (Some(only), true, _) => Ok(only),
        (Some(_), false, _) => Err(NotRunning::Several {
            name: name.to_owned(),
        }),
        (None, _, Some(engine)) => Err(NotRunning::Stopped {
            name: name.to_owned(),
            engine,
        }),
        (None, _, None) => Err(NotRunning::Unknown {
            name: name.to_owned(),
            why: silent,
        }),
    }
}

/// Whether an engine can have such a name or id.
fn is_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(inner)
}

fn ask(kind: EngineKind, program: &str, name: &str) -> Answer {
    let Some(path) = programs::find(program) else {
        return Answer::None;
    };
    let mut inspect = Command::new(path);
    inspect
        .args(["container", "inspect", "--format"])
        .args(["{{.Id}} {{.State.Pid}} {{.Name}}", name])
        .current_dir("/");
    match process::output_within(&mut inspect, PATIENCE) {
        Ok(answer) if answer.status.success() => read(kind, &answer.out)
            .unwrap_or_else(|| Answer::Silent("its answer is not understood".to_owned())),
        Ok(answer) if answer.err.to_lowercase().contains("no such container") => Answer::None,
        Ok(answer) => Answer::Silent(answer.why()),
        Err(why) => Answer::Silent(why.to_string()),
    }
}

/// The line that was asked for; `None`: it is another.
fn read(kind: EngineKind, out: &str) -> Option<Answer> {
    let mut words = out.lines().next()?.split(' ');
    let (id, pid, name) = (words.next()?, words.next()?, words.next()?);
    let pid: i32 = pid.parse().ok()?;
    let is_id = id.len() >= 12 && id.chars().all(|c| c.is_ascii_hexdigit());
    match (is_id, pid) {
        (false, _) => None,
        (true, ..=1) => Some(Answer::Stopped),
        (true, pid) => Some(Answer::Runs(Running {
            engine: kind,
            // Docker's begin with a slash.
            name: name.trim_start_matches('/').to_owned(),
            id: id.to_owned(),
            pid,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_engine_says_is_read_or_refused() {
        let id = "0123456789abcdef".repeat(4);
        let said = |text: &str| read(EngineKind::Docker, text);
        let Some(Answer::Runs(running)) = said(&format!("{id} 77 /web\n")) else {
            panic!("it runs");
        };
        assert_eq!((running.name.as_str(), running.pid), ("web", 77));
        assert_eq!(running.id, id);
        assert!(matches!(
            said(&format!("{id} 0 web")),
            Some(Answer::Stopped)
        ));
        for text in ["", "web", &format!("{id} x web"), "zzzzzzzzzzzzzz 77 web"] {
            assert!(said(text).is_none(), "{text}");
        }
    }

    #[test]
    fn one_that_two_engines_tell_of_is_one() {
        let runs = |engine, id: &str| {
            Answer::Runs(Running {
                engine,
                name: "web".to_owned(),
                id: id.to_owned(),
                pid: 77,
            })
        };
        let of = |ids: [&str; 2]| {
            let answers = [
                ("podman", runs(EngineKind::Podman, ids[0])),
                ("docker", runs(EngineKind::Docker, ids[1])),
            ];
            of_answers("web", answers)
        };
        assert_eq!(of(["a", "a"]).unwrap().engine, EngineKind::Podman);
        assert!(matches!(of(["a", "b"]), Err(NotRunning::Several { .. })));
    }

    #[test]
    fn what_is_no_name_is_never_asked_for() {
        for name in ["", "--all", "a b", "a/b", "-", ".hidden", "a\nb"] {
            assert!(
                matches!(find(name), Err(NotRunning::Unknown { .. })),
                "{name}"
            );
        }
        assert!(is_name("web_1.a-b"));
    }
}
