//! Keys of the kernel: an OCI runtime makes a keyring for each container.

use super::limit::{Kind, Limit, of_file};
use crate::root::Root;

pub(super) fn limits(root: &Root, uid: u32) -> Vec<Limit> {
    let (keys, bytes) = used(root, uid).unzip();
    let of = |what: &str, name: &str, used: Option<u64>| {
        let root_or = if uid == 0 { "root_" } else { "" };
        let path = format!("/proc/sys/kernel/keys/{root_or}{name}");
        of_file(root, Kind::Keys, what, &path, used)
    };
    [
        of("keys and keyrings of the user", "maxkeys", keys),
        of("bytes of keys of the user", "maxbytes", bytes),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Keys and their bytes that count against the user's quota: the last two columns of `/proc/key-users`, see keyrings(7).
fn used(root: &Root, uid: u32) -> Option<(u64, u64)> {
    let text = root.read("/proc/key-users").ok()?;
    let of_user = |line: &str| {
        let (user, rest) = line.split_once(':')?;
        (user.trim().parse() == Ok(uid)).then(|| rest.to_owned())
    };
    let line = text.lines().find_map(of_user)?;
    let mut fields = line.split_whitespace().skip(2);
    let mut next = || fields.next()?.split_once('/')?.0.parse().ok();
    Some((next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn the_quota_of_the_user_is_read() {
        let tree = Tree::new()
            .file("/proc/key-users", "    0:   100 99/99 98/1000000 2000/25000000\n 1000:   205 205/205 200/200 4000/20000\n")
            .file("/proc/sys/kernel/keys/maxkeys", "200\n")
            .file("/proc/sys/kernel/keys/root_maxkeys", "1000000\n");
        let values =
            |uid| -> Vec<String> { limits(&tree.root(), uid).iter().map(Limit::value).collect() };
        assert_eq!(values(1000), ["200 of 200"]);
        assert_eq!(values(0), ["98 of 1,000,000"]);
        assert_eq!(values(7), ["at most 200"]);
    }
}
