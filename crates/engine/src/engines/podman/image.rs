//! The images in podman's usual storage: whether one of a name exists, and which user its program runs as, before a container is made from it.

use std::process::Command;
use std::time::Duration;

use model::Requirement;

use crate::app::engine::Images;
use crate::app::spec::Ids;
use crate::error::{Doing, Result, refused};
use crate::{process, programs};

/// How long podman may take to answer about one.
const PATIENCE: Duration = Duration::from_secs(10);

/// The storage.
pub(super) struct Storage;

impl Images for Storage {
    fn knows(&self, name: &str) -> Option<bool> {
        let mut exists = Command::new(programs::find("podman")?);
        exists.args(["image", "exists", "--", name]);
        let answer = process::output_within(&mut exists, PATIENCE).ok()?;
        // Others than these two are failures of podman itself.
        match answer.status.code()? {
            0 => Some(true),
            1 => Some(false),
            _ => None,
        }
    }

    fn user(&self, name: &str) -> Result<Ids> {
        let program = programs::find("podman").ok_or("podman is not installed")?;
        let mut inspect = Command::new(program);
        inspect.args([
            "image",
            "inspect",
            "--format",
            "{{.Config.User}}",
            "--",
            name,
        ]);
        let answer = process::output_within(&mut inspect, PATIENCE)?;
        if !answer.status.success() {
            return Err(answer.failure("podman")).doing(|| "podman does not say");
        }
        numbers(answer.out.trim())
    }

    fn requirement(&self, name: &str) -> Requirement {
        let what = format!("image {name}");
        let id = programs::first_line("podman", &["image", "inspect", "--format", "{{.Id}}", name]);
        match id {
            Some(id) => Requirement::met(what, id),
            None => Requirement::unmet(
                what,
                "podman has no image of this name",
                format!("podman pull {name}"),
            ),
        }
    }
}

/// `1000`, `1000:100`, or nothing for root, as an image's configuration has it.
fn numbers(user: &str) -> Result<Ids> {
    let (uid, gid) = user.split_once(':').unwrap_or((user, ""));
    let number = |text: &str| match text {
        // The group of a user without one is that of its files, or root's; a reader of a page needs to be its user.
        "" => Ok(0),
        text => (text.parse::<u32>()).map_err(|_| {
            refused!(
                "its image names it `{user}`, and only files in the image say which number that is"
            )
        }),
    };
    Ok(Ids {
        uid: number(uid)?,
        gid: number(gid)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_understood_and_names_are_not_guessed() {
        let ids = |user: &str| numbers(user).map(|ids| (ids.uid, ids.gid));
        assert_eq!(ids("").unwrap(), (0, 0));
        assert_eq!(ids("1000").unwrap(), (1000, 0));
        assert_eq!(ids("1000:100").unwrap(), (1000, 100));
        for name in ["app", "app:app", "1000:staff", "-1"] {
            let why = ids(name).unwrap_err().to_string();
            assert!(why.contains(&format!("`{name}`")), "{why}");
        }
    }
}
