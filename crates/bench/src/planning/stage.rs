//! Needs of tasks that run out of band.

use std::os::unix::fs::MetadataExt;

use model::Requirement;

/// Whether EVL runs, and its devices are there; with users of rootless cells, whether each may use them.
pub(super) fn out_of_band(rootless: Option<&engine::User>) -> Result<(), Requirement> {
    let unmet = |why: String, fix: &str| Requirement::unmet("out-of-band threads", why, fix);
    let core = evl::Core::open();
    core.map_err(|error| {
        unmet(
            error.to_string(),
            "boot a kernel with EVL (Xenomai 4), or leave out `stage`",
        )
    })?;
    for node in evl::NODES {
        let found = std::fs::metadata(node).map_err(|error| {
            unmet(
                format!("{node}: {error}"),
                "give the kernel's devices back their names, or leave out `stage`",
            )
        })?;
        if let Some(user) = rootless.filter(|user| !may_use(&found, user)) {
            return Err(unmet(
                format!(
                    "{node} is not for user {}, whose cell is rootless",
                    user.name
                ),
                &format!(
                    "chgrp {} {nodes}; chmod g+rw {nodes}",
                    user.gid,
                    nodes = evl::NODES.join(" ")
                ),
            ));
        }
    }
    Ok(())
}

/// Whether the user may read and write a file by its mode; a rootless cell keeps no group but the primary one.
fn may_use(file: &std::fs::Metadata, user: &engine::User) -> bool {
    let bits = match (file.uid() == user.uid, file.gid() == user.gid) {
        (true, _) => file.mode() >> 6,
        (false, true) => file.mode() >> 3,
        (false, false) => file.mode(),
    };
    bits & 6 == 6
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_rootless_cell_uses_devices_of_its_user_and_its_primary_group() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let own = std::fs::metadata(file.path()).unwrap();
        let may = |mode: u32, uid: u32, gid: u32| {
            std::fs::set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
            let user = engine::User {
                name: "ann".to_owned(),
                uid,
                gid,
                home: "/".into(),
            };
            may_use(&std::fs::metadata(file.path()).unwrap(), &user)
        };
        let (uid, gid) = (own.uid(), own.gid());
        assert!(may(0o600, uid, gid + 1));
        assert!(!may(0o600, uid + 1, gid) && may(0o660, uid + 1, gid));
        assert!(!may(0o660, uid + 1, gid + 1) && may(0o666, uid + 1, gid + 1));
        assert!(!may(0o640, uid + 1, gid) && !may(0o066, uid, gid));
    }
}
