//! Whose an image's program is, as the image says it: known before a container of it is made.

use std::process::Command;
use std::time::Duration;

use super::spec::Ids;
use crate::{process, programs};

/// How long podman may take to tell it.
const PATIENCE: Duration = Duration::from_secs(10);

/// User and group of an image of podman's.
///
/// # Errors
/// Why they are not known, a clause: podman does not tell, or the image has a name, whose number stands in its files.
pub fn image_user(name: &str) -> Result<Ids, String> {
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
        return Err(format!("podman does not tell it: {}", answer.err.trim()));
    }
    numbers(answer.out.trim())
}

/// `1000`, `1000:100`, or nothing for root, as an image's configuration has it.
fn numbers(user: &str) -> Result<Ids, String> {
    let (uid, gid) = user.split_once(':').unwrap_or((user, ""));
    let number = |text: &str| match text {
        // The group of a user without one is that of its files, or root's; whoever looks at a page needs to be its user.
        "" => Ok(0),
        text => (text.parse::<u32>()).map_err(|_| {
            format!("its image calls it `{user}`, and the number stands in its files")
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
        assert_eq!(ids(""), Ok((0, 0)));
        assert_eq!(ids("1000"), Ok((1000, 0)));
        assert_eq!(ids("1000:100"), Ok((1000, 100)));
        for name in ["app", "app:app", "1000:staff", "-1"] {
            let why = ids(name).unwrap_err();
            assert!(why.contains(&format!("`{name}`")), "{why}");
        }
    }
}
