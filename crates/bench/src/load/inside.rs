//! The hidden commands of a load's processes, and their arguments.

use std::path::Path;

use host::sched;
use model::LoadKind;

use super::guard;
use super::kind::Setting;
use super::kinds::by_kind;
use super::tally::Tally;

/// Runs the words behind `timecell load`; returns the exit code. Must be called before any thread is started.
pub fn inside(words: &[String]) -> i32 {
    match words.split_first() {
        Some((word, rest)) if word == "guard" => guard::guard(rest),
        Some((word, rest)) if word == "run" => {
            let why = work(rest);
            eprintln!("load: {why}");
            1
        }
        _ => {
            eprintln!("load: unknown arguments");
            2
        }
    }
}

/// The words of a built-in load, to stand behind `timecell`.
pub(super) fn words(kind: LoadKind, setting: &Setting, tally: &str) -> Vec<String> {
    let mut words = vec![
        "load".to_owned(),
        "run".to_owned(),
        kind.name().to_owned(),
        format!("tally={tally}"),
        format!("cpus={}", host::cpus::format_list(&setting.cpus)),
    ];
    words.extend(setting.dir.iter().map(|dir| format!("dir={dir}")));
    words.extend(setting.peer.iter().map(|at| format!("peer={at}")));
    words.extend(setting.own.iter().map(|at| format!("own={at}")));
    words.extend((setting.network.iter()).map(|file| format!("network={file}")));
    words
}

fn setting(words: &[String]) -> Result<(Setting, &str), String> {
    let mut setting = Setting::default();
    let mut tally = "";
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "tally" => tally = value,
            "cpus" => setting.cpus = host::cpus::parse_list(value).map_err(|e| e.to_string())?,
            "dir" => setting.dir = Some(value.to_owned()),
            "peer" => setting.peer = Some(value.to_owned()),
            "own" => setting.own = Some(value.to_owned()),
            "network" => setting.network = Some(value.to_owned()),
            _ => return Err(format!("cannot read `{word}`")),
        }
    }
    Ok((setting, tally))
}

/// Works until killed; the answer is why it ended.
fn work(words: &[String]) -> String {
    let Some((kind, rest)) = words.split_first() else {
        return "no load is named".to_owned();
    };
    let run = || -> Result<String, String> {
        let kind: LoadKind = kind.parse()?;
        let (setting, tally) = setting(rest)?;
        let page = Path::new(tally);
        // In the guest of a virtual machine nobody has made it, and nobody looks at it.
        let made = (!page.exists()).then(|| Tally::create(page)).transpose();
        let _made = made.map_err(|error| format!("{tally}: {error}"))?;
        let tally = Tally::open(page).map_err(|error| format!("{tally}: {error}"))?;
        sched::set_affinity(0, &setting.cpus).map_err(|error| error.to_string())?;
        Ok(by_kind(kind).work(&setting, &tally))
    };
    run().unwrap_or_else(|why| why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_back() {
        let asked = Setting {
            cpus: vec![0, 2],
            dir: Some("/x".to_owned()),
            peer: Some("198.18.77.2".to_owned()),
            own: Some("198.18.77.1".to_owned()),
            network: None,
        };
        let words = words(LoadKind::Disk, &asked, "/cell/t");
        assert_eq!(words[..3], ["load", "run", "disk"]);
        assert_eq!(setting(&words[3..]), Ok((asked, "/cell/t")));
        assert!(setting(&["x=1".to_owned()]).is_err());
    }

    #[test]
    fn a_load_without_its_page_says_so() {
        let words = ["cpu", "tally=/nonexistent/t", "cpus=0"].map(str::to_owned);
        assert!(work(&words).starts_with("/nonexistent/t: "));
        assert!(work(&["cqu".to_owned()]).contains("did you mean `cpu`?"));
    }
}
