//! The documentation has one form, and docs/src/architecture.md is true: the files and names that it gives exist, every crate is listed, and its picture and its table
//! agree with the dependencies of the crates. Programs that look at cells read files within bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/src/architecture.md")).unwrap()
}

/// The crates that are published by their directories, and which of them each uses outside of its tests.
fn crates() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .args(["--offline", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {said}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let package = |package: &Value| {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let used = package["dependencies"].as_array().unwrap().iter();
        let used = used.filter(|used| used["kind"] != "dev");
        let used = used.filter_map(|used| Some(name(Path::new(used["path"].as_str()?))));
        (name(manifest.parent().unwrap()), used.collect())
    };
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .filter(|package| package["publish"].is_null())
        .map(package)
        .collect()
}

/// The words in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The text without its blocks of code.
fn prose(page: &str) -> String {
    page.split("```").step_by(2).collect()
}

#[test]
fn every_file_and_name_exists() {
    let page = prose(&page());
    let parts: Vec<&str> = page.split('`').collect();
    let mut files = 0;
    // Quoted words have odd places; the text behind each has the next.
    for at in (1..parts.len()).step_by(2) {
        let path = parts[at];
        // Files that somebody is to add have no names yet.
        if !path.contains('/') || path.contains(char::is_whitespace) || path.contains("NAME") {
            continue;
        }
        let file = root().join(path);
        let is_ours = root().join(path.split('/').next().unwrap()).exists();
        assert!(is_ours && file.exists(), "`{path}` does not exist");
        files += 1;
        if !parts[at + 1].starts_with(" (") && !parts[at + 1].starts_with(", ") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        for at in (at + 2..parts.len()).step_by(2) {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "_:".contains(c);
            let (name, before) = (parts[at], parts[at - 1]);
            let goes_on = [" (", ", "].contains(&before) && name.chars().all(is_name);
            if !goes_on || !file.is_file() {
                break;
            }
            let name = name.rsplit("::").next().unwrap();
            assert!(text.contains(name), "`{name}` is not in {path}");
        }
    }
    assert!(files > 50, "{files}");
}

#[test]
fn every_page_opens_with_its_use_and_fits_a_screen() {
    let pages = std::fs::read_dir(root().join("docs/src")).unwrap();
    let pages = pages.map(|page| page.unwrap().path());
    let pages: Vec<PathBuf> =
        (pages.filter(|page| page.extension().is_some_and(|kind| kind == "md"))).collect();
    let summary = std::fs::read_to_string(root().join("docs/src/SUMMARY.md")).unwrap();
    for page in &pages {
        let name = page.file_name().unwrap().to_string_lossy();
        let text = std::fs::read_to_string(page).unwrap();
        let opening = text.lines().nth(2).unwrap_or_default();
        let is_prose = opening.starts_with(|c: char| c.is_alphabetic() || "`*".contains(c))
            && !opening.starts_with("```");
        let is_listed = summary.contains(&format!("]({name})"));
        assert!(
            name == "SUMMARY.md" || is_prose && is_listed,
            "{name}: {opening}"
        );
        // Tables and code cannot be wrapped.
        let is_wide = |line: &&str| line.chars().count() > 120 && !line.starts_with(['|', ' ']);
        assert_eq!(prose(&text).lines().find(is_wide), None, "{name}");
    }
    assert!(pages.len() > 30, "{pages:?}");
}

#[test]
fn every_finding_names_a_test_that_exists_or_that_there_is_none() {
    let page = std::fs::read_to_string(root().join("docs/src/findings.md")).unwrap();
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let sources: String = (files.iter())
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| finding "));
    let mut tests = 0;
    for row in rows {
        let told = row.trim_matches('|').split(" | ").nth(1).unwrap();
        let names = quoted(told).filter(|name| name.contains('_'));
        let missing = |name: &&str| {
            let defined = [
                format!("fn {name}("),
                format!("=> {name},"),
                format!("=> {name};"),
            ];
            !defined.iter().any(|form| sources.contains(form.as_str()))
        };
        let (missing, found): (Vec<&str>, Vec<&str>) = names.partition(missing);
        assert!(missing.is_empty(), "{row}: {missing:?}");
        assert!(!found.is_empty() || told.starts_with("none"), "{row}");
        tests += found.len();
    }
    assert!(tests > 30, "{tests}");
}

#[test]
fn the_table_has_every_crate_and_what_it_uses() {
    let crates = crates();
    let page = page();
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with("| crate |"));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let told: BTreeMap<String, BTreeSet<String>> = rows
        .map(|row| {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
            let all = |text| quoted(text).map(str::to_owned).collect::<BTreeSet<_>>();
            let name = quoted(cells[0]).next().unwrap().to_owned();
            let used = match cells[2].strip_prefix("all but") {
                Some(others) => {
                    let left_out = all(others);
                    let others = crates.keys().filter(|other| **other != name);
                    others
                        .filter(|name| !left_out.contains(*name))
                        .cloned()
                        .collect()
                }
                None => all(cells[2]),
            };
            (name, used)
        })
        .collect();
    assert_eq!(told, crates);
    assert!(quoted(&page).any(|name| name == "benches"));
}

#[test]
fn no_crate_uses_one_beside_or_above_it_in_the_picture() {
    let crates = crates();
    let page = page();
    let picture = page.split("```text\n").nth(1).unwrap();
    let picture = picture.split("```").next().unwrap();
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    for (row, line) in picture.lines().enumerate() {
        // The row's description stands behind the names of its crates.
        let names = line.get(..46).unwrap_or(line).split_whitespace();
        rows.extend(names.map(|name| (name, row)));
    }
    for (name, used) in &crates {
        for used in used {
            let (above, below) = (rows[name.as_str()], rows[used.as_str()]);
            assert!(above < below, "{name} uses {used}");
        }
    }
    assert_eq!(rows.len(), crates.len(), "{rows:?}");
}

/// Parts of the program that run beside cells, as supervisor, `hold`, `clean` or `ps`, or that read files of users for guests.
const BESIDE_CELLS: [&str; 8] = [
    "engine/src",
    "freezer/src",
    "guest/src",
    "host/src",
    "jailhouse/src",
    "supervise/src",
    "timecell/src/commands",
    "bench/src/salvage",
];

/// Files that are read to their ends there, and why no cell decides how long they are.
const READ_WHOLE: [(&str, &str); 3] = [
    ("engine/src/app/log.rs", "its supervisor bounds the log"),
    (
        "timecell/src/commands/logs.rs",
        "the same log, in a process that does nothing else",
    ),
    (
        "bench/src/salvage/logs.rs",
        "as long as the trial of the bench that wrote it, read as its owner",
    ),
];

/// Files of `/proc/PID` that are as long, and keep their readers as long, as the process likes.
const OF_PROCESSES: [&str; 13] = [
    "/environ",
    "/cmdline",
    "/auxv",
    "/maps",
    "/smaps",
    "/numa_maps",
    "/pagemap",
    "/mem\"",
    "/fdinfo",
    "/syscall",
    "/stack",
    "/personality",
    "/io\"",
];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn files_are_read_within_bounds_beside_cells() {
    let crates = root().join("crates");
    let mut files = Vec::new();
    BESIDE_CELLS
        .iter()
        .for_each(|part| sources(&crates.join(part), &mut files));
    assert!(files.len() > 200, "{}", files.len());
    let mut wrong = Vec::new();
    let mut unused: BTreeSet<&str> = READ_WHOLE.iter().map(|(file, _)| *file).collect();
    for path in files {
        let file = path.strip_prefix(&crates).unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let is_test =
            file.rsplit('/').next().unwrap().starts_with("test") || file.contains("/tests/");
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
        let lines: Vec<&str> = if is_test {
            Vec::new()
        } else {
            code.lines().collect()
        };
        for at in 0..lines.len() {
            let around = |before: usize, after: usize| {
                lines[at.saturating_sub(before)..(at + after).min(lines.len())].concat()
            };
            let has = |words: &[&str]| words.iter().any(|word| lines[at].contains(word));
            let whole = has(&[".read_to_end(", ".read_to_string("])
                && !around(3, 1).contains(".take(")
                || has(&[
                    " fs::read(",
                    "(fs::read",
                    "std::fs::read(",
                    "fs::read_to_string(",
                ]);
            let listed = whole && READ_WHOLE.iter().any(|(known, _)| *known == file);
            if listed {
                unused.remove(file);
            }
            let waits = lines[at].contains("/proc/{")
                && has(&OF_PROCESSES)
                && !around(1, 2).contains("bounded::");
            if whole && !listed || waits {
                wrong.push(format!("{file}:{}: {}", at + 1, lines[at].trim()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "use host::bounded for what is a process's, or else host::file:\n{}",
        wrong.join("\n")
    );
    assert!(unused.is_empty(), "{unused:?} need no exception");
}

/// A file whose module nobody declares is neither compiled nor tested, and nothing else says so.
#[test]
fn every_source_file_is_declared() {
    let root = root();
    let mut files = Vec::new();
    sources(&root.join("crates"), &mut files);
    sources(&root.join("campaigns"), &mut files);
    let texts: BTreeMap<&Path, String> = (files.iter())
        .map(|path| (path.as_path(), std::fs::read_to_string(path).unwrap()))
        .collect();
    let by_path: BTreeSet<PathBuf> = (texts.iter())
        .flat_map(|(path, text)| {
            let named = text.split("#[path = \"").skip(1);
            named.filter_map(|rest| {
                path.parent()?
                    .join(rest.split('"').next()?)
                    .canonicalize()
                    .ok()
            })
        })
        .collect();
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let is_root = |path: &Path| {
        let is_named_so = matches!(name(path).as_str(), "main" | "lib" | "build");
        is_named_so
            || ["tests", "examples", "benches"]
                .iter()
                .any(|dir| path.parent().unwrap().ends_with(dir))
    };
    let lost = files.iter().filter(|path| {
        let module = match name(path).as_str() {
            "mod" => path.parent().unwrap(),
            _ => path.as_path(),
        };
        let (dir, declaration) = (module.parent().unwrap(), format!("mod {};", name(module)));
        let declares = |by: &Path| {
            let is_parent = by == dir.with_extension("rs")
                || by.parent() == Some(dir) && (name(by) == "mod" || is_root(by));
            is_parent && texts[by].contains(&declaration)
        };
        !is_root(path)
            && !by_path.contains(&path.canonicalize().unwrap())
            && !texts.keys().any(|by| declares(by))
    });
    let lost: Vec<&PathBuf> = lost.collect();
    assert!(lost.is_empty(), "no `mod` declares {lost:#?}");
}
