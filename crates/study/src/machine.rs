//! The machine of a run, as facts.

use host::provenance::Provenance;

/// Every fact as name and value; an unknown one says so.
pub fn facts(p: &Provenance) -> Vec<(&'static str, String)> {
    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let engines: Vec<String> = p
        .engines
        .iter()
        .map(|engine| {
            let version = engine.version.as_deref().unwrap_or("version unknown");
            let path = engine.path.as_deref().map(|path| format!(" ({path})"));
            match &engine.problem {
                Some(problem) => format!("{}: {problem}", engine.name),
                None => format!("{} {version}{}", engine.name, path.unwrap_or_default()),
            }
        })
        .collect();
    let mebibytes = p.memory_bytes.map_or("unknown".to_owned(), model::mib);
    let mut facts = vec![
        ("time", p.time_utc.clone()),
        ("timecell", p.timecell_version.clone()),
        ("host", known(&p.hostname)),
        ("cpu", known(&p.cpu_model)),
        ("instruction set", p.arch.clone()),
        ("cpus online", crate::plan::list(&p.cpus_online)),
        ("memory", mebibytes),
        ("virtualization", p.virtualization.to_string()),
        ("kernel", known(&p.kernel_release)),
        ("kernel build", known(&p.kernel_version)),
        (
            "PREEMPT_RT",
            match p.preempt_rt {
                Some(true) => "yes",
                Some(false) => "no",
                None => "unknown",
            }
            .to_owned(),
        ),
        ("kernel parameters", known(&p.cmdline)),
        (
            "user id",
            p.uid.map_or("unknown".to_owned(), |uid| uid.to_string()),
        ),
        (
            "capabilities",
            if p.capabilities.is_empty() {
                "none".to_owned()
            } else {
                p.capabilities.join(", ")
            },
        ),
    ];
    if !engines.is_empty() {
        facts.push(("engines", engines.join("; ")));
    }
    facts
}
