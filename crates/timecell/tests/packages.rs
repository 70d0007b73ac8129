//! The packages as they would be published: each describes itself, depends on nothing that only this repository has, and contains
//! everything that it is built from. `cargo publish --dry-run` checks the rest (docs/src/packages.md).

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The output of cargo; it needs no network for this.
fn cargo(words: &[&str]) -> String {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(words)
        .arg("--offline")
        .arg("--manifest-path")
        .arg(manifest)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {words:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The members of the workspace that are to be published.
fn packages() -> Vec<Value> {
    let metadata = cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap().clone();
    let published: Vec<Value> = packages
        .into_iter()
        .filter(|package| package["publish"].is_null())
        .collect();
    assert!(published.len() > 10, "{published:?}");
    published
}

fn name(package: &Value) -> &str {
    package["name"].as_str().unwrap()
}

fn directory(package: &Value) -> PathBuf {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    manifest.parent().unwrap().to_owned()
}

/// Files that a package takes along, relative to its directory.
fn taken(package: &Value) -> BTreeSet<PathBuf> {
    let list = cargo(&["package", "--list", "--allow-dirty", "-p", name(package)]);
    list.lines().map(PathBuf::from).collect()
}

#[test]
fn every_package_says_what_it_is() {
    for package in packages() {
        let name = name(&package);
        assert!(
            name == "timecell" || name.starts_with("timecell-"),
            "{name}: a name that strangers would not know whose it is"
        );
        for key in ["description", "license", "documentation", "rust_version"] {
            let said = package[key].as_str().unwrap_or_default();
            assert!(!said.is_empty(), "{name}: no {key}");
        }
        for key in ["keywords", "categories"] {
            let count = package[key].as_array().unwrap().len();
            assert!((1..=5).contains(&count), "{name}: {count} {key}");
        }
        // As the registry limits them.
        for keyword in package["keywords"].as_array().unwrap() {
            let keyword = keyword.as_str().unwrap();
            let plain = |c: char| c.is_ascii_alphanumeric() || "_-+".contains(c);
            let good = keyword.len() <= 20 && keyword.chars().all(plain);
            assert!(good, "{name}: keyword `{keyword}`");
        }
        let readme = directory(&package).join(package["readme"].as_str().unwrap_or_default());
        let readme = std::fs::read_to_string(&readme).unwrap();
        assert!(readme.starts_with(&format!("# {name}\n")), "{name}: README");
        assert!(
            readme.contains("\n## What it does not do\n"),
            "{name}: README"
        );
    }
}

#[test]
fn packages_of_this_repository_take_each_other_by_their_exact_version() {
    for package in packages() {
        let name = name(&package);
        let version = package["version"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            if dependency["path"].is_null() {
                continue;
            }
            let asked = dependency["req"].as_str().unwrap();
            // A dependency for tests only and without a version is left out of the published package.
            let left_out = dependency["kind"] == "dev" && asked == "*";
            assert!(
                left_out || asked == format!("={version}"),
                "{name}: {} {asked}",
                dependency["name"]
            );
        }
    }
}

#[test]
fn packages_take_along_what_they_are_built_from() {
    for package in packages() {
        let (name, directory, taken) = (name(&package), directory(&package), taken(&package));
        for file in ["Cargo.toml", "README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            assert!(taken.contains(Path::new(file)), "{name}: no {file}");
        }
        let bytes: u64 = taken
            .iter()
            .filter_map(|file| std::fs::metadata(directory.join(file)).ok())
            .map(|file| file.len())
            .sum();
        assert!(bytes < 2 << 20, "{name}: {bytes} bytes");
        for source in taken.iter().filter(|file| file.starts_with("src")) {
            let text = std::fs::read_to_string(directory.join(source)).unwrap_or_default();
            for included in included(source, &text) {
                let file = below(&source.parent().unwrap().join(&included));
                assert!(
                    file.is_some_and(|file| taken.contains(&file)),
                    "{name}: {} includes {included}, which is not in the package",
                    source.display()
                );
            }
        }
    }
}

/// The files that a source file includes, but in its tests.
fn included(source: &Path, text: &str) -> Vec<String> {
    let is_test = |part: Component| part.as_os_str().to_string_lossy().starts_with("tests");
    if source.components().any(is_test) {
        return Vec::new();
    }
    let text = text
        .split_once("#[cfg(test)]\nmod tests {")
        .map_or(text, |(before, _)| before);
    let calls = ["include_str!(", "include_bytes!("]
        .into_iter()
        .flat_map(|call| text.split(call).skip(1));
    calls
        .filter_map(|rest| rest.split('"').nth(1))
        .map(str::to_owned)
        .collect()
}

/// The path without its `..`, if it does not lead out of the package.
fn below(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => plain.pop().then_some(())?,
            part => plain.push(part),
        }
    }
    Some(plain)
}
