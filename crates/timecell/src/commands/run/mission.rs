//! Makes a mission from the command line of `timecell run`.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use engine::User;
use model::mission::{Limits, MissionFile};
use model::{InputError, InputErrors};
use supervise::admit::HIGHEST_HELD;
use supervise::machine::Here;
use supervise::run::Inputs;

use crate::cli::Run;
use crate::commands::admit::latency;
use crate::exit::CommandError;

/// The name of its cell.
pub(super) const CELL: &str = "app";

/// Its name in messages.
const PLACE: &str = "timecell run";
/// The highest priority that a cell may have.
const HIGHEST: i64 = *Limits::PRIORITY.end();

/// The mission of the command line, checked against this machine; its threads get priorities in this range, if one is given.
pub(super) fn inputs(
    options: &Run,
    name: &str,
    priorities: Option<(u8, u8)>,
    here: &Here,
) -> Result<Inputs, CommandError> {
    check(options)?;
    let is_process =
        options.image.is_none() && options.rootfs.is_none() && options.bundle.is_none();
    let text = mission(options, name, priorities, is_process)?;
    let parsed = MissionFile::parse(PLACE, &text).and_then(|file| {
        let file = match is_process {
            true => file.of_processes(),
            false => file,
        };
        file.check(here).map(|()| file)
    });
    let file = parsed.map_err(without_lines)?;
    Ok(Inputs {
        latency_ns: latency(&file)?,
        measured: Vec::new(),
        text,
        file,
    })
}

/// Removes line numbers: they belong to a file that the user never sees.
fn without_lines(faults: InputErrors) -> CommandError {
    let plain = |fault: &InputError| InputError {
        line: None,
        ..fault.clone()
    };
    match InputErrors::of(faults.iter().map(plain).collect()) {
        Some(plain) => plain.into(),
        None => faults.into(),
    }
}

/// Checks for faults that a mission file would be refused for, so that the error names the option.
fn check(options: &Run) -> Result<(), InputError> {
    if let Some((option, priority)) = options.priority()
        && i64::from(priority) > HIGHEST
    {
        let what = format!("{priority} is too high: the kernel's own threads run above {HIGHEST}");
        let fix =
            format!("it must be 1 to {HIGHEST}, with `--enforcer freezer` at most {HIGHEST_HELD}");
        return Err(InputError::new(option, what, fix));
    }
    let mut names = HashSet::new();
    match options.task.iter().find(|task| !names.insert(&task.name)) {
        Some(task) => Err(InputError::new(
            "--task",
            format!("two tasks are called `{}`", task.name),
            "give each its own name, under which the program reports its jobs",
        )),
        None => Ok(()),
    }
}

/// The text of the mission file.
fn mission(
    options: &Run,
    name: &str,
    priorities: Option<(u8, u8)>,
    is_process: bool,
) -> Result<String, InputError> {
    let words = (options.program.iter())
        .map(|word| text_of(word))
        .collect::<Result<Vec<&str>, InputError>>()?;
    let mut text = format!("schema = 1\nname = {}\n", quoted(name));
    if let Some(enforcer) = options.enforcer {
        let _ = writeln!(text, "enforcer = {}", quoted(enforcer.name()));
    }
    text.push_str("supervisor = { class = \"other\" }\n\n[[cell]]\n");
    let _ = writeln!(text, "name = {}", quoted(CELL));
    made_of(&mut text, options, &words)?;
    if let Some(cpu) = options.cpu {
        let _ = writeln!(text, "cpus = [{cpu}]");
    }
    if options.rr.is_some() {
        text.push_str("class = \"rr\"\n");
    }
    if let Some((lowest, highest)) = priorities {
        let _ = writeln!(
            text,
            "priorities = {{ lowest = {lowest}, highest = {highest} }}"
        );
    }
    if let Some(reserve) = options.reserve {
        let _ = writeln!(
            text,
            "reservation = {{ budget = \"{}ns\", period = \"{}ns\" }}",
            reserve.budget_ns, reserve.period_ns
        );
    }
    if options.only_tasks {
        text.push_str("only_tasks = true\n");
    }
    let _ = writeln!(text, "stop_timeout = \"{}ns\"", options.stop_timeout.ns());
    text.push_str("restart = { policy = \"never\" }\n");
    let env = environment(options, is_process)?;
    if !env.is_empty() {
        let pairs: Vec<String> = (env.iter())
            .map(|(name, value)| format!("{} = {}", quoted(name), quoted(value)))
            .collect();
        let _ = writeln!(text, "env = {{ {} }}", pairs.join(", "));
    }
    text.push_str("\n[cell.rights]\n");
    rights(&mut text, options, is_process)?;
    for task in &options.task {
        let _ = write!(
            text,
            "\n[[cell.task]]\nname = {}\nwcet = \"{}ns\"\nperiod = \"{}ns\"\n",
            quoted(&task.name),
            task.work.budget_ns,
            task.work.period_ns
        );
    }
    Ok(text)
}

/// Image, engine and command.
fn made_of(text: &mut String, options: &Run, words: &[&str]) -> Result<(), InputError> {
    let path = |dir: &Path| {
        let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        Ok::<_, InputError>(quoted(text_of(dir.as_os_str())?))
    };
    let image = match (&options.image, &options.rootfs, &options.bundle) {
        (Some(name), _, _) => format!(
            "image = {{ reference = {} }}\nengine = \"podman\"",
            quoted(name)
        ),
        (_, Some(dir), _) => {
            if let Some(program) = words.first().filter(|program| lacks(dir, program)) {
                let what = format!("there is no such program in {}", dir.display());
                return Err(InputError::new(*program, what, ""));
            }
            format!("image = {{ rootfs = {} }}", path(dir)?)
        }
        (_, _, Some(dir)) => format!("image = {{ bundle = {} }}", path(dir)?),
        _ => {
            let program = found(words.first().copied().unwrap_or_default())?;
            let args: Vec<String> = words.iter().skip(1).map(|word| quoted(word)).collect();
            let _ = writeln!(text, "image = {{ binary = {} }}", path(&program)?);
            if !args.is_empty() {
                let _ = writeln!(text, "args = [{}]", args.join(", "));
            }
            let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
            let _ = writeln!(text, "workdir = {}", path(&here)?);
            return Ok(());
        }
    };
    text.push_str(&image);
    text.push('\n');
    if !words.is_empty() {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let _ = writeln!(text, "command = [{}]", words.join(", "));
    }
    Ok(())
}

/// Finds a program by path, or by name on the PATH. Links are not followed: a program may depend on the name by which it is called.
fn found(program: &str) -> Result<PathBuf, InputError> {
    let path = match program.contains('/') {
        true => std::path::absolute(program)
            .ok()
            .filter(|path| engine::is_program(path)),
        false => engine::find_program(program),
    };
    path.ok_or_else(|| no_program(program))
}

/// Whether a root directory certainly lacks a program. Links and names on its PATH are left to the cell to resolve.
fn lacks(root: &Path, program: &str) -> bool {
    let Ok(within) = Path::new(program).strip_prefix("/") else {
        return false;
    };
    let mut at = root.to_owned();
    for part in within.components() {
        at.push(part);
        match at.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return true,
            Ok(found) if !found.is_symlink() => {}
            _ => return false,
        }
    }
    false
}

/// Why a program cannot be run.
fn no_program(program: &str) -> InputError {
    let found = (program.contains('/')).then(|| Path::new(program).metadata());
    let (what, fix) = match found {
        Some(Ok(found)) if found.is_dir() => ("this is a directory, not a program", String::new()),
        Some(Ok(_)) => (
            "this file is not executable",
            format!("chmod +x {program}, if it is a program"),
        ),
        Some(Err(error)) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            ("no permission to access it", String::new())
        }
        _ => ("there is no such program", String::new()),
    };
    InputError::new(program, what, fix)
}

/// Variables that a plain process inherits from this command.
const KEPT: [&str; 8] = [
    "PATH", "LANG", "LC_ALL", "TERM", "TZ", "USER", "LOGNAME", "HOME",
];

/// Those of them that describe the user.
const OF_USER: [&str; 3] = ["USER", "LOGNAME", "HOME"];

/// The user who called `sudo`, as whom a plain process runs.
struct Caller {
    uid: u32,
    gid: u32,
    /// Name and home, from the machine's user database.
    user: Option<User>,
}

impl Caller {
    /// `None` without `sudo`: the process is root's.
    ///
    /// # Errors
    /// If the user's group is unknown: it must not be root's.
    fn of_sudo() -> Result<Option<Caller>, InputError> {
        let id = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
        match id("SUDO_UID") {
            Some(uid) => Caller::of(uid, id("SUDO_GID"), engine::users::of_id(uid)).map(Some),
            None => Ok(None),
        }
    }

    /// The user of this id, with the group of `sudo`, else their own.
    fn of(uid: u32, gid: Option<u32>, user: Option<User>) -> Result<Caller, InputError> {
        let gid = gid.or_else(|| Some(user.as_ref()?.gid));
        let gid = gid.ok_or_else(|| {
            let what = format!("SUDO_UID is {uid}, which has no group in /etc/passwd");
            InputError::new("SUDO_GID", what, "set it to the group id, as `sudo` does")
        })?;
        Ok(Caller { uid, gid, user })
    }

    /// The value of a variable that describes the user.
    fn variable(&self, name: &str) -> Option<String> {
        let user = self.user.as_ref()?;
        match name {
            "HOME" => Some(user.home.to_str()?.to_owned()),
            _ => Some(user.name.clone()),
        }
    }
}

/// The variables that a plain process has before `--env`: those of this command (`here`), except those that describe root under `sudo`.
fn usual(caller: Option<&Caller>, here: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let value = |name: &str| match caller.filter(|_| OF_USER.contains(&name)) {
        Some(caller) => caller.variable(name),
        None => here(name),
    };
    let pairs = KEPT.into_iter();
    pairs
        .filter_map(|name| Some((name.to_owned(), value(name)?)))
        .collect()
}

/// The variables of the program: those of `--env`, and for a plain process the usual ones.
fn environment(options: &Run, is_process: bool) -> Result<Vec<(String, String)>, InputError> {
    let here = |name: &str| std::env::var(name).ok();
    let own = |name: &str| Some((name.to_owned(), here(name)?));
    let mut env = match is_process {
        true => usual(Caller::of_sudo()?.as_ref(), here),
        false => Vec::new(),
    };
    for set in &options.env {
        let pair = match set.split_once('=') {
            Some((name, value)) => Some((name.to_owned(), value.to_owned())),
            None => own(set),
        };
        let (name, value) = pair.ok_or_else(|| {
            let what = format!("`{set}` is not set in this environment");
            InputError::new("--env", what, "write NAME=VALUE")
        })?;
        env.retain(|(known, _)| *known != name);
        env.push((name, value));
    }
    Ok(env)
}

fn rights(text: &mut String, options: &Run, is_process: bool) -> Result<(), InputError> {
    if is_process || options.network {
        text.push_str("network = \"host\"\n");
    }
    if let Some(memory) = &options.memory {
        let _ = writeln!(text, "memory = {}", quoted(memory));
    }
    let owner = match (options.user, is_process) {
        (Some(owner), _) => Some((owner.uid, owner.gid)),
        (None, true) => Some(Caller::of_sudo()?.map_or((0, 0), |caller| (caller.uid, caller.gid))),
        (None, false) => None,
    };
    if let Some((uid, gid)) = owner {
        let _ = writeln!(text, "user = {{ uid = {uid}, gid = {gid} }}");
    }
    Ok(())
}

/// A word of the command line as text.
fn text_of(word: &OsStr) -> Result<&str, InputError> {
    std::str::from_utf8(word.as_bytes()).map_err(|_| {
        InputError::new(
            PLACE,
            format!("{word:?} is not UTF-8"),
            "a mission can contain only UTF-8",
        )
    })
}

/// As a basic string of TOML.
fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    // The only control character that JSON does not escape.
    json.replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    use crate::cli::{Cli, Command};

    fn options(words: &[&str]) -> Run {
        let words = ["timecell", "run"].iter().chain(words);
        match Cli::try_parse_from(words).unwrap().command {
            Command::Run(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    fn parsed(words: &[&str]) -> model::mission::Mission {
        let options = options(words);
        let is_process = options.image.is_none() && options.rootfs.is_none();
        let text = mission(
            &options,
            "run-7",
            options.priority().map(|(_, own)| (own, own)),
            is_process,
        )
        .unwrap();
        match MissionFile::parse(PLACE, &text) {
            Ok(file) => file.into_mission(),
            Err(faults) => panic!("{faults}: {text}"),
        }
    }

    #[test]
    fn a_command_line_is_a_mission_of_one_cell() {
        let words = [
            "--reserve",
            "3ms/10ms",
            "--fifo",
            "60",
            "--cpu",
            "1",
            "--enforcer",
            "freezer",
            "--env",
            "A=\"\u{7f}\n",
            "--",
            "/bin/sh",
            "-c",
            "echo \"$A\"\\",
        ];
        let mission = parsed(&words);
        assert_eq!(mission.enforcer, Some(model::Enforcer::Freezer));
        let cell = &mission.cells[0];
        assert_eq!(
            (&cell.cpus[..], cell.band().unwrap().highest),
            (&[1][..], 60)
        );
        assert_eq!(cell.args, ["-c", "echo \"$A\"\\"]);
        assert_eq!(cell.env["A"], "\"\u{7f}\n");
        assert_eq!(cell.reservation.unwrap().period.ns(), 10_000_000);
        let container = [
            "--task",
            "t=1ms/10ms",
            "--only-tasks",
            "--image",
            "localhost/a:1",
            "--",
            "/a",
            "b",
        ];
        let mission = parsed(&container);
        let cell = &mission.cells[0];
        assert_eq!(
            (cell.engine, &cell.command[..]),
            (
                model::EngineKind::Podman,
                &["/a".to_owned(), "b".to_owned()][..]
            )
        );
        assert_eq!((cell.tasks.len(), cell.env.len()), (1, 0));
        assert!(cell.only_tasks);
    }

    #[test]
    fn what_says_neither_budget_nor_task_is_refused() {
        for words in [
            &["--", "/bin/true"][..],
            &["--reserve", "3ms/10ms", "--only-tasks", "--", "/bin/true"],
            &["--reserve", "3ms/10ms"],
            &[
                "--reserve",
                "3ms/10ms",
                "--image",
                "a",
                "--rootfs",
                "b",
                "--",
                "c",
            ],
        ] {
            let words = ["timecell", "run"].iter().chain(words);
            assert!(Cli::try_parse_from(words).is_err());
        }
        // It is the time that is wrong, and no option that is not known.
        let words = ["timecell", "run", "--reserve", "-3ms/10ms", "--", "true"];
        let why = Cli::try_parse_from(words).unwrap_err().to_string();
        assert!(why.contains("is negative"), "{why}");
        assert!(found("no-such-program-at-all").is_err());
        let why = |program: &str| found(program).unwrap_err().to_string();
        assert!(why("/bin").contains("a directory"));
        assert!(why("/no/such").contains("no such program"));
        assert!(found("sh").is_ok());
        // No program, and one by another name.
        let dir = tempfile::tempdir().unwrap();
        let (plain, link) = (dir.path().join("plain"), dir.path().join("link"));
        std::fs::write(&plain, "").unwrap();
        assert!(why(plain.to_str().unwrap()).contains("chmod +x"));
        std::os::unix::fs::symlink("/bin/sh", &link).unwrap();
        for (program, is_lacking) in [
            ("/plain", false),
            ("/nothing", true),
            ("/link/what/it/leads/to", false),
            ("nothing", false),
        ] {
            assert_eq!(lacks(dir.path(), program), is_lacking, "{program}");
        }
        assert_eq!(found(link.to_str().unwrap()).unwrap(), link);
    }

    #[test]
    fn under_sudo_a_program_has_the_variables_of_its_user() {
        let user = User {
            name: "ann".to_owned(),
            uid: 1002,
            gid: 1002,
            home: "/home/ann".into(),
        };
        let caller = |user| Caller {
            uid: 1002,
            gid: 1002,
            user,
        };
        let here = |name: &str| match name {
            "TERM" => Some("xterm".to_owned()),
            "HOME" => Some("/root".to_owned()),
            "USER" | "LOGNAME" => Some("root".to_owned()),
            _ => None,
        };
        let usual = |caller: Option<Caller>| {
            let pairs = usual(caller.as_ref(), here).into_iter();
            pairs
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
        };
        let ann = ["TERM=xterm", "USER=ann", "LOGNAME=ann", "HOME=/home/ann"];
        assert_eq!(usual(Some(caller(Some(user)))), ann);
        // One that is in no file of users has none of them rather than root's.
        assert_eq!(usual(Some(caller(None))), ["TERM=xterm"]);
        let root = ["TERM=xterm", "USER=root", "LOGNAME=root", "HOME=/root"];
        assert_eq!(usual(None), root);
    }

    #[test]
    fn whoever_calls_without_a_group_has_their_own_and_never_roots() {
        let ann = User {
            name: "ann".to_owned(),
            uid: 1002,
            gid: 1003,
            home: "/home/ann".into(),
        };
        let gid = |said, user| Caller::of(1002, said, user).map(|caller| caller.gid);
        assert_eq!(gid(Some(1004), Some(ann.clone())).ok(), Some(1004));
        assert_eq!(gid(None, Some(ann)).ok(), Some(1003));
        let why = gid(None, None).unwrap_err().to_string();
        assert!(why.contains("SUDO_GID") && why.contains("1002"), "{why}");
    }
}
