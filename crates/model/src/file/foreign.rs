//! Files of other programs that are given in place of ours: recognised by their content, and named with their use.

/// A kind of file, the beginnings of its lines, and the remedy.
const KINDS: [(&str, &[&str], &str); 7] = [
    (
        "a quadlet of podman",
        &["[Container]", "[Pod]", "[Kube]"],
        HOLD,
    ),
    (
        "a unit of systemd",
        &["[Unit]", "[Service]", "[Timer]"],
        HOLD,
    ),
    ("a manifest of Kubernetes", &["apiVersion:"], HOLD),
    ("a compose file", &["services:"], HOLD),
    (
        "a Dockerfile",
        &["FROM "],
        "build it, and give the image to a cell as `image`",
    ),
    (
        "a script",
        &["#!"],
        "`timecell run -- FILE` runs it under a budget",
    ),
    ("XML", &["<"], ANALYZE),
];
const HOLD: &str = "write what it starts as cells of a mission (`timecell demo` prints one), or start it and put it under a budget with `timecell hold`";
const ANALYZE: &str = "`timecell analyze` reads task sets of other tools";
const BUNDLE: &str = "give its directory to a cell as `image`";

/// The kind of another program's file that has this content, and the remedy; `None` if it is none of those that are known.
pub fn foreign(text: &str) -> Option<(&'static str, &'static str)> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with('{') {
        let is_bundle = text.contains("\"ociVersion\"");
        return Some(if is_bundle {
            ("the config.json of a bundle", BUNDLE)
        } else {
            ("JSON", ANALYZE)
        });
    }
    let begins = |begin: &str| match begin {
        "#!" | "<" => text.starts_with(begin),
        _ => text.lines().any(|line| line.starts_with(begin)),
    };
    let is_of = |kind: &&(_, &[&'static str], _)| kind.1.iter().any(|begin| begins(begin));
    KINDS.iter().find(is_of).map(|&(name, _, fix)| (name, fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_programs_are_named_with_a_remedy() {
        for (text, name, fix) in [
            (
                "services:\n  ctl:\n    image: a\n",
                "a compose file",
                "timecell hold",
            ),
            (
                "version: '3'\n\nservices:\n",
                "a compose file",
                "timecell demo",
            ),
            (
                "[Unit]\nDescription=x\n[Container]\nImage=a\n",
                "a quadlet of podman",
                "timecell hold",
            ),
            (
                "# x\n[Service]\nExecStart=/bin/a\n",
                "a unit of systemd",
                "timecell hold",
            ),
            (
                "apiVersion: v1\nkind: Pod\n",
                "a manifest of Kubernetes",
                "timecell hold",
            ),
            ("FROM debian\nRUN a\n", "a Dockerfile", "image"),
            ("#!/bin/sh\n", "a script", "timecell run"),
            ("\u{feff}<taskset/>", "XML", "timecell analyze"),
            ("{\"tasks\": {}}", "JSON", "timecell analyze"),
            (
                "{\"ociVersion\": \"1.0\"}",
                "the config.json of a bundle",
                "`image`",
            ),
        ] {
            let found = foreign(text).expect(text);
            assert_eq!(found.0, name);
            assert!(found.1.contains(fix), "{found:?}");
        }
        for ours in ["schema = 1\nname = [", "[[cell]]\nname = 'services:'\n", ""] {
            assert_eq!(foreign(ours), None, "{ours}");
        }
    }
}
