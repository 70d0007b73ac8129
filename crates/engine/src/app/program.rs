//! The program that a cell executes.

use std::path::{Path, PathBuf};

use super::bundle::Bundle;
use super::spec::{AppSpec, Ids, Image};
use crate::error::{Doing, Result};
use crate::note::MARK;

/// What a cell executes, from its specification and its image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// The root filesystem on the host, without links; `None`: an empty one that holds the binary.
    pub(crate) root: Option<PathBuf>,
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

impl Program {
    /// Reads what the image says.
    ///
    /// # Errors
    /// When there is nothing to run, or a bundle cannot be read.
    pub(crate) fn of(spec: &AppSpec) -> Result<Program> {
        let bundle = match &spec.image {
            Image::Bundle(dir) => Some(Bundle::read(dir)?),
            _ => None,
        };
        let (root, mut args) = match (&spec.image, &bundle) {
            (_, Some(bundle)) => (Some(bundle.root.clone()), bundle.args.clone()),
            (Image::Rootfs(root), _) => (Some(root.clone()), Vec::new()),
            (Image::Binary(binary), _) => {
                // A bare cell sees the host's files.
                let path = match spec.engine {
                    model::EngineKind::Bare => binary.clone(),
                    _ => binary_target(binary)?,
                };
                (None, vec![path.display().to_string()])
            }
            _ => (None, Vec::new()),
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
        // Elsewhere in the file system, links may lead elsewhere.
        let root = root
            .map(|root| (root.canonicalize()).doing(|| root.display().to_string()))
            .transpose()?;
        let said = |of: fn(&Bundle) -> &PathBuf| bundle.as_ref().map(|bundle| of(bundle).clone());
        Ok(Program {
            root,
            args,
            env: environment(spec, bundle.as_ref()),
            cwd: (spec.cwd.clone())
                .or_else(|| said(|bundle| &bundle.cwd))
                .unwrap_or_else(|| "/".into()),
            ids: (spec.ids)
                .or(bundle.as_ref().map(|bundle| bundle.ids))
                .unwrap_or(Ids::NOBODY),
            hostname: (spec.hostname.clone())
                .or_else(|| bundle.as_ref()?.hostname.clone())
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

    fn bundle() -> (tempfile::TempDir, AppSpec) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("rootfs")).unwrap();
        std::fs::write(
            dir.path().join("config.json"),
            r#"{"ociVersion": "1.0.2", "root": {"path": "rootfs"},
                "process": {"args": ["/a", "b"], "env": ["PATH=/p", "X=1"], "cwd": "/w"}}"#,
        )
        .unwrap();
        let spec = spec(Image::Bundle(dir.path().to_owned()));
        (dir, spec)
    }

    #[test]
    fn arguments_replace_those_of_the_image_and_follow_the_command() {
        let (_dir, mut spec) = bundle();
        let args = |spec: &AppSpec| Program::of(spec).unwrap().args;
        assert_eq!(args(&spec), ["/a", "b"]);
        spec.args = vec!["c".into()];
        assert_eq!(args(&spec), ["/a", "c"]);
        spec.command = vec!["/d".into(), "e".into()];
        assert_eq!(args(&spec), ["/d", "e", "c"]);
    }

    #[test]
    fn the_nearest_word_on_a_variable_wins() {
        let (_dir, mut spec) = bundle();
        spec.env.insert("X".into(), "2".into());
        spec.env.insert(MARK.into(), "forged".into());
        assert_eq!(
            Program::of(&spec).unwrap().env,
            ["HOME=/", "PATH=/p", "X=2", "TIMECELL_CELL=a"]
        );
    }

    #[test]
    fn a_root_without_a_command_is_refused() {
        let error = Program::of(&spec(Image::Rootfs("/r".into())))
            .unwrap_err()
            .to_string();
        assert!(error.contains("no command"), "{error}");
        let binary = Program::of(&spec(Image::Binary("/opt/x/camera".into()))).unwrap();
        assert_eq!(binary.args, ["/camera"]);
        assert_eq!(binary.ids, Ids::NOBODY);
    }
}
