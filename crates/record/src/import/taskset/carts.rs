//! The XML that CARTS reads: `<system os_scheduler><component name scheduler><task name p d e/></component></system>`,
//! times without a unit. The innermost components, those that hold tasks, become cells.

use model::InputError;
use model::taskset::{CellTask, Order, Policy};
use roxmltree::Node;

use super::{
    Cells, Imported, Names, Options, Reader, Takes, Unread, attribute_time, excerpt, fault, faulty,
    is_xml, line, required_time, root, unit, xml,
};

pub(super) const READER: Reader = Reader {
    name: "carts",
    files: "XML as CARTS reads it",
    endings: &["xml"],
    looks_like: |text| {
        is_xml(text) && root(text).map_or_else(|| text.contains("<system"), |root| root == "system")
    },
    whose: " of CARTS",
    takes: Takes {
        unit: true,
        policy: false,
    },
    read: |_, text, options| Ok(read(text, options)?),
};

fn read(text: &str, options: Options) -> Result<Imported, InputError> {
    let document = xml(text)?;
    let root = document.root_element();
    if !root.has_tag_name("system") {
        return Err(fault(
            line(root),
            format!(
                "<{}> is not a CARTS system",
                excerpt(root.tag_name().name())
            ),
            "the outermost element is <system>; for SchedCAT files use --format schedcat",
        ));
    }
    let mut notes = Vec::new();
    let unit = unit(options, &mut notes);
    let holders = root
        .descendants()
        .filter(|node| node.has_tag_name("system") || node.has_tag_name("component"));
    let mut cells = Cells::default();
    let mut unread = Unread::default();
    let mut nested = 0;
    for (place, holder) in holders.enumerate() {
        let tasks: Vec<Node> = holder
            .children()
            .filter(|node| node.has_tag_name("task"))
            .collect();
        let within = holder.children().any(|node| node.has_tag_name("component"));
        if within && !tasks.is_empty() {
            return Err(fault(
                line(holder),
                "a component contains both tasks and components",
                "put the tasks into a separate component; timecell analyses one level",
            ));
        }
        nested += usize::from(within && holder != root);
        unread.elements(holder, &["component", "task"], &[])?;
        if tasks.is_empty() {
            continue;
        }
        let title = holder.attribute("name").unwrap_or("system");
        let policy = scheduler(holder)?;
        let mut names = Names::default();
        for (number, node) in tasks.into_iter().enumerate() {
            let task = task(node, number, unit, &mut names)?;
            unread.attributes(node, "name p d e");
            unread.elements(node, &[], &[])?;
            cells.count(line(node))?;
            cells.of(&place.to_string(), title, policy).tasks.push(task);
        }
    }
    if nested > 0 {
        notes.push(format!("{nested} components contain other components; only the innermost are analysed, each separately"));
    }
    if root
        .descendants()
        .any(|node| node.has_attribute("min_period"))
    {
        notes.push("min_period and max_period are not used".to_owned());
    }
    let mut uncovered = Vec::new();
    if nested > 0 {
        uncovered.push(format!(
            "{nested} components that contain other components are left out"
        ));
    }
    unread.tell(&mut notes, &mut uncovered);
    let set = cells.finish("a CARTS file contains <component> with one <task> or more")?;
    Ok(Imported {
        uncovered,
        ..Imported::of(set, notes)
    })
}

fn scheduler(holder: Node<'_, '_>) -> Result<Policy, InputError> {
    let key = if holder.has_tag_name("system") {
        "os_scheduler"
    } else {
        "scheduler"
    };
    let found = holder.attribute(key).unwrap_or_default();
    match found.to_ascii_uppercase().as_str() {
        "EDF" => Ok(Policy::Edf),
        "RM" => Ok(Policy::Fixed(Order::Rate)),
        "DM" => Ok(Policy::Fixed(Order::Deadline)),
        _ => Err(fault(
            line(holder),
            format!("`{key}` is \"{}\"", excerpt(found)),
            "it must be EDF, RM or DM",
        )),
    }
}

fn task(
    node: Node<'_, '_>,
    number: usize,
    unit: super::Unit,
    names: &mut Names,
) -> Result<CellTask, InputError> {
    let title = match node.attribute("name") {
        Some(title) => title.to_owned(),
        None => format!("task {}", number + 1),
    };
    if let Some((key, fix)) = node.attributes().find_map(|attribute| {
        let fix = meaning(attribute.name(), attribute.value())?;
        Some((attribute.name(), fix))
    }) {
        return Err(fault(
            line(node),
            format!(
                "task `{}` has `{}`, which timecell does not read from CARTS files",
                excerpt(&title),
                excerpt(key)
            ),
            fix,
        ));
    }
    let period = required_time(node, "p", unit)?;
    let wcet = required_time(node, "e", unit)?;
    let mut task = CellTask::new(names.unique(&title), wcet, period);
    if let Some(deadline) = attribute_time(node, "d", unit)? {
        task.deadline = deadline;
    }
    match task.fault() {
        Some(fault) => Err(faulty(line(node), fault)),
        None => Ok(task),
    }
}

/// The fix for a task's attribute that would change a verdict but is not read; `None`: it is read, has no meaning, or cannot
/// make a verdict worse, as an offset.
fn meaning(key: &str, value: &str) -> Option<&'static str> {
    let value = value.trim().to_ascii_lowercase();
    let yes = matches!(value.as_str(), "1" | "true" | "yes");
    let no = matches!(value.as_str(), "" | "false" | "no") || value.parse() == Ok(0.0_f64);
    let key = key.to_ascii_lowercase();
    let plain: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
    match plain.as_str() {
        "preemptive" | "preemptible" => (!yes).then_some(NOT_PREEMPTIVE),
        _ if no => None,
        "np" | "nonpreemptive" | "nonpreemptible" | "noninterruptfraction" => Some(NOT_PREEMPTIVE),
        "cs" => {
            Some("give the critical section as the blocking of the others in timecell's own format")
        }
        "jitter" => Some("give it as `jitter` in timecell's own format"),
        _ if plain.starts_with("delta") => {
            Some("add the overhead to the wcet, and leave the attribute out")
        }
        _ => None,
    }
}

const NOT_PREEMPTIVE: &str = "timecell imports preemptive tasks; give its wcet as the blocking of the others in timecell's own format";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::taskset::Unit;
    use crate::import::taskset::{Format, import};
    use model::InputErrors;

    fn read(name: &str, text: &str, options: Options) -> Result<Imported, InputErrors> {
        import(Format::named("carts"), name, text.as_bytes(), options)
    }

    const GOOD: &str = "<system os_scheduler=\"EDF\" min_period=\"1\" max_period=\"30\">\n\
        <component name=\"C1\" scheduler=\"EDF\" min_period=\"10\" max_period=\"10\">\n\
        <task name=\"T1\" p=\"25\" d=\"20\" e=\"4\"/>\n\
        <task name=\"T2\" p=\"40\" d=\"40\" e=\"5\"/>\n\
        </component>\n\
        <component name=\"C2\" scheduler=\"RM\">\n\
        <task p=\"25\" e=\"4\"/>\n\
        </component>\n</system>";

    fn error(text: &str) -> String {
        let read = read("c.xml", text, Options::default());
        read.expect_err("must be refused").to_string()
    }

    #[test]
    fn components_become_cells() {
        let options = Options {
            cpus: None,
            unit: Some(Unit::Ms),
            policy: None,
        };
        let read = read("c.xml", GOOD, options).expect("good");
        assert_eq!(read.notes, ["min_period and max_period are not used"]);
        let [first, second] = read.set.cells.as_slice() else {
            panic!("two cells");
        };
        assert_eq!((first.name.as_str(), first.policy), ("C1", Policy::Edf));
        assert_eq!(second.policy, Policy::Fixed(Order::Rate));
        assert_eq!(first.tasks[0].deadline.ns(), 20_000_000);
        assert_eq!(second.tasks[0].deadline.ns(), 25_000_000);
    }

    #[test]
    fn what_is_not_read_is_named() {
        let text = GOOD.replacen(
            "e=\"5\"/>",
            "e=\"5\" core=\"1\" offset=\"2\" jitter=\"0\" delta_rel=\"0.0\" preemptive=\"true\"><resource/></task>",
            1,
        );
        let read = read("c.xml", &text, Options::default()).expect("good");
        let notes = read.notes.join("; ");
        for part in ["`core`", "`offset`", "<resource>"] {
            assert!(notes.contains(part), "{notes}");
        }
    }

    #[test]
    fn each_fault_has_its_line() {
        for (from, to, parts) in [
            ("\"RM\"", "\"LLF\"", ["c.xml:6:", "EDF, RM or DM"]),
            ("e=\"5\"", "", ["c.xml:4:", "no `e`"]),
            ("e=\"5\"", "e=\"50\"", ["c.xml:4:", "at most the deadline"]),
            (
                "e=\"5\"",
                "e=\"5\" non_preemptive=\"1\"",
                ["c.xml:4:", "preemptive"],
            ),
            (
                "e=\"5\"",
                "e=\"5\" preemptive=\"false\"",
                ["c.xml:4:", "`preemptive`"],
            ),
            ("e=\"5\"", "e=\"5\" np=\"1\"", ["c.xml:4:", "`np`"]),
            (
                "e=\"5\"",
                "e=\"5\" non-preemptive=\"yes\"",
                ["c.xml:4:", "`non-preemptive`"],
            ),
            (
                "e=\"5\"",
                "e=\"5\" noninterrupt_fraction=\"0.5\"",
                ["c.xml:4:", "blocking"],
            ),
            ("e=\"5\"", "e=\"5\" jitter=\"9\"", ["c.xml:4:", "`jitter`"]),
            (
                "e=\"5\"",
                "e=\"5\" cs=\"8\"",
                ["c.xml:4:", "critical section"],
            ),
            (
                "e=\"5\"",
                "e=\"5\" delta_crpmd=\"0.1\"",
                ["c.xml:4:", "overhead"],
            ),
            (
                "<component name=\"C1\"",
                "<group><task p=\"1\" e=\"1\"/></group><component name=\"C1\"",
                ["c.xml:2:", "inside <group>"],
            ),
            (
                "e=\"5\"/>",
                "e=\"5\"><task p=\"1\" e=\"1\"/></task>",
                ["c.xml:4:", "inside <task>"],
            ),
            (
                "<component name=\"C1\"",
                "<task p=\"1\" e=\"1\"/><component name=\"C1\"",
                ["c.xml:1:", "contains both"],
            ),
        ] {
            let error = error(&GOOD.replacen(from, to, 1));
            for part in parts {
                assert!(error.contains(part), "`{part}` is not in: {error}");
            }
        }
        assert!(error("<taskset/>").contains("--format schedcat"));
        assert!(error("<system/>").contains("no task"));
    }
}
