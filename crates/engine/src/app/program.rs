//! The program that a cell executes.

use std::io;
use std::path::{Path, PathBuf};

use host::file::at;
use host::found::Found;
use host::ground;
use serde::{Deserialize, Serialize};

use super::bundle::Bundle;
use super::spec::{AppSpec, Ids, Image};
use crate::error::Result;
use crate::note::MARK;

/// The program of a cell, from its specification and its image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program {
    /// Whether nobody else can change the directory that is its root filesystem; false where there is none.
    pub(crate) root_is_own: bool,
    /// Program and arguments, never empty.
    pub(crate) args: Vec<String>,
    /// `NAME=VALUE`, each name once, the cell's mark among them.
    pub(crate) env: Vec<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) ids: Ids,
    pub(crate) hostname: String,
}

/// The default PATH.
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The path of a static program in its cell.
pub(crate) fn binary_target(binary: &Path) -> Result<PathBuf> {
    let name = binary
        .file_name()
        .ok_or_else(|| format!("{} is not a program", binary.display()))?;
    Ok(Path::new("/").join(name))
}

/// Where the process that makes a cell finds its program.
fn path(state: &Path) -> PathBuf {
    state.join("program.json")
}

/// Writes the program down for that process; the image is not read again.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn keep(program: Option<&Program>, state: &Path) -> io::Result<()> {
    ground::replace(&path(state), &serde_json::to_vec(&program)?)
}

/// Reads it.
///
/// # Errors
/// When it is not there, or not one.
pub(crate) fn kept(state: &Path) -> Result<Option<Program>> {
    const MOST_BYTES: u64 = 64 << 20;
    let path = path(state);
    let text = ground::read(&path, MOST_BYTES).map_err(at(&path))?;
    Ok(serde_json::from_slice(&text).map_err(at(&path))?)
}

impl Program {
    /// The program of the specification, and of a bundle where there is one.
    ///
    /// # Errors
    /// When there is nothing to run.
    pub(super) fn of(
        spec: &AppSpec,
        bundle: Option<&Bundle>,
        root: Option<&Found>,
    ) -> Result<Program> {
        let mut args = match (&spec.image, bundle) {
            (_, Some(bundle)) => bundle.args.clone(),
            (Image::Binary(binary), _) => {
                // A bare cell sees the host's files.
                let path = match spec.engine {
                    model::EngineKind::Bare => binary.clone(),
                    _ => binary_target(binary)?,
                };
                vec![path.display().to_string()]
            }
            _ => Vec::new(),
        };
        if !spec.command.is_empty() {
            args.clone_from(&spec.command);
        } else if !spec.args.is_empty() {
            args.truncate(1);
        }
        if args.is_empty() {
            return Err("no command is given, and the image names none".into());
        }
        args.extend(spec.args.iter().cloned());
        Ok(Program {
            root_is_own: root.is_some_and(Found::is_own),
            args,
            env: environment(spec, bundle),
            cwd: (spec.cwd.clone())
                .or_else(|| Some(bundle?.cwd.clone()))
                .unwrap_or_else(|| "/".into()),
            ids: (spec.ids)
                .or(bundle.map(|bundle| bundle.ids))
                .unwrap_or(Ids::NOBODY),
            hostname: (spec.hostname.clone())
                .or_else(|| bundle?.hostname.clone())
                // A host name has 64 bytes.
                .unwrap_or_else(|| spec.id.chars().take(64).collect()),
        })
    }
}

fn environment(spec: &AppSpec, bundle: Option<&Bundle>) -> Vec<String> {
    let mark = format!("{MARK}={}", spec.id);
    // HOME saves the runtimes a search in /etc/passwd.
    let mut all = vec![PATH.to_owned(), "HOME=/".to_owned()];
    let given = spec
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let said = bundle.map(|bundle| bundle.env.clone()).unwrap_or_default();
    for variable in said.into_iter().chain(given).chain([mark]) {
        let name = |text: &str| text.split('=').next().map(str::to_owned);
        let own = name(&variable);
        all.retain(|other| name(other) != own);
        all.push(variable);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::EngineKind;

    fn spec(image: Image) -> AppSpec {
        AppSpec::new("a", EngineKind::Embedded, image, Path::new("/w"))
    }

    fn bundle() -> Bundle {
        let text = r#"{"ociVersion": "1.0.2", "root": {"path": "rootfs"},
            "process": {"args": ["/a", "b"], "env": ["PATH=/p", "X=1"], "cwd": "/w"}}"#;
        Bundle::parse(Path::new("config.json"), text.as_bytes()).unwrap()
    }

    fn of_bundle(spec: &AppSpec) -> Program {
        Program::of(spec, Some(&bundle()), None).unwrap()
    }

    #[test]
    fn arguments_replace_those_of_the_image_and_follow_the_command() {
        let mut spec = spec(Image::Bundle("/b".into()));
        let args = |spec: &AppSpec| of_bundle(spec).args;
        assert_eq!(args(&spec), ["/a", "b"]);
        spec.args = vec!["c".into()];
        assert_eq!(args(&spec), ["/a", "c"]);
        spec.command = vec!["/d".into(), "e".into()];
        assert_eq!(args(&spec), ["/d", "e", "c"]);
    }

    #[test]
    fn the_nearest_word_on_a_variable_wins() {
        let mut spec = spec(Image::Bundle("/b".into()));
        spec.env.insert("X".into(), "2".into());
        spec.env.insert(MARK.into(), "forged".into());
        assert_eq!(
            of_bundle(&spec).env,
            ["HOME=/", "PATH=/p", "X=2", "TIMECELL_CELL=a"]
        );
    }

    #[test]
    fn a_root_without_a_command_is_refused() {
        let error = Program::of(&spec(Image::Rootfs("/r".into())), None, None)
            .unwrap_err()
            .to_string();
        assert!(error.contains("no command"), "{error}");
        let binary = Program::of(&spec(Image::Binary("/opt/x/camera".into())), None, None).unwrap();
        assert_eq!(binary.args, ["/camera"]);
        assert_eq!(binary.ids, Ids::NOBODY);
    }
}
