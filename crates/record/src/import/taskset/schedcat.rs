//! SchedCAT's XML: `<taskset><task id period wcet deadline partition/></taskset>`, times without a unit. A missing
//! deadline means the period; a partition of -1, or none, means no partition.

use model::InputError;
use model::taskset::CellTask;
use roxmltree::Node;

use super::{
    Cells, Imported, Names, Options, Reader, Takes, Unread, attribute_time, excerpt, fault, faulty,
    is_xml, line, policy, required_time, root, unit, xml,
};

pub(super) const READER: Reader = Reader {
    name: "schedcat",
    files: "SchedCAT's XML",
    endings: &["xml"],
    looks_like: |text| {
        let sets = ["<taskset", "<testpoint"];
        is_xml(text)
            && sets.iter().any(|tag| text.contains(tag))
            && root(text).is_none_or(|root| root != "system")
    },
    whose: " of SchedCAT",
    takes: Takes {
        unit: true,
        policy: true,
    },
    read: |_, text, options| Ok(read(text, options)?),
};

fn read(text: &str, options: Options) -> Result<Imported, InputError> {
    let document = xml(text)?;
    let set = only_set(document.root_element())?;
    let mut notes = Vec::new();
    let unit = unit(options, &mut notes);
    let policy = policy(options, &mut notes);
    let mut cells = Cells::default();
    let mut names = Names::default();
    let mut unread = Unread::default();
    unread.elements(set, &["task"], &["properties"])?;
    // Tasks that say on which cpus they may run.
    let mut bound = 0;
    let tasks = set.children().filter(|node| node.has_tag_name("task"));
    for (place, node) in tasks.enumerate() {
        let mut resources = node
            .children()
            .filter(|child| child.has_tag_name("resources"));
        // SchedCAT writes an empty one for a task that shares none.
        if resources.any(|resources| resources.children().any(|child| child.is_element())) {
            return Err(fault(
                line(node),
                "the task shares resources, but timecell does not derive blocking from resource models",
                "leave <resources> out and give the blocking in timecell's own format",
            ));
        }
        unread.elements(node, &[], &["resources", "affinity"])?;
        unread.attributes(node, ATTRIBUTES);
        bound += u64::from(node.children().any(|child| child.has_tag_name("affinity")));
        let id = match node.attribute("id") {
            Some(id) => format!("task {id}"),
            None => format!("task {}", place + 1),
        };
        if let Some(jitter) = attribute_time(node, "jitter", unit)?.filter(|time| time.ns() > 0) {
            return Err(fault(
                line(node),
                format!("the task has a jitter of {jitter}, which SchedCAT's files do not have"),
                "give it as `jitter` in timecell's own format",
            ));
        }
        let period = required_time(node, "period", unit)?;
        let wcet = required_time(node, "wcet", unit)?;
        let mut task = CellTask::new(names.unique(&id), wcet, period);
        if let Some(deadline) = attribute_time(node, "deadline", unit)? {
            task.deadline = deadline;
        }
        if let Some(fault) = task.fault() {
            return Err(faulty(line(node), fault));
        }
        cells.count(line(node))?;
        let cell = match node.attribute("partition").map(str::trim) {
            None | Some("-1" | "None" | "") => cells.of("", "all", policy),
            Some(partition) => cells.of(partition, &format!("partition {partition}"), policy),
        };
        cell.tasks.push(task);
    }
    let said = set.children().find(|node| node.has_tag_name("properties"));
    if let Some((properties, said)) = said.and_then(|node| Some((node, node.attribute("count")?)))
        && said.trim().parse() != Ok(cells.tasks)
    {
        return Err(fault(
            line(properties),
            format!(
                "`count` is \"{}\", but the set holds {} tasks",
                excerpt(said),
                cells.tasks
            ),
            "the file may be cut short or edited; if it is not, remove `count`",
        ));
    }
    let set = cells.finish("a SchedCAT file contains <taskset> with one <task> or more")?;
    if bound > 0 {
        notes.push(format!(
            "the <affinity> of {bound} tasks is ignored: a task runs where its partition, or the policy of its cell, allows it"
        ));
    }
    let mut uncovered = Vec::new();
    if bound > 0 {
        uncovered.push(format!("the <affinity> of {bound} tasks is ignored"));
    }
    unread.tell(&mut notes, &mut uncovered);
    Ok(Imported {
        uncovered,
        ..Imported::of(set, notes)
    })
}

/// SchedCAT's attributes of a task; the last three are results and sizes, which are not analysed.
const ATTRIBUTES: &str = "id period wcet deadline partition jitter response_time tardiness wss";

/// The only task set of the file, which may be inside a test point.
fn only_set<'a>(root: Node<'a, 'a>) -> Result<Node<'a, 'a>, InputError> {
    if root.has_tag_name("taskset") {
        return Ok(root);
    }
    let mut sets = root.children().filter(|node| node.has_tag_name("taskset"));
    match (root.has_tag_name("testpoint"), sets.next(), sets.next()) {
        (true, Some(set), None) => Ok(set),
        (true, Some(_), Some(second)) => Err(fault(
            line(second),
            "the file contains more than one task set",
            "put each into its own file",
        )),
        _ => Err(fault(
            line(root),
            format!(
                "<{}> is not a SchedCAT task set",
                excerpt(root.tag_name().name())
            ),
            "the outermost element is <taskset>; for CARTS files use --format carts",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::taskset::{FIXED, Unit};
    use crate::import::taskset::{Format, import};
    use model::InputErrors;
    use model::taskset::Policy;

    fn read(name: &str, text: &str, options: Options) -> Result<Imported, InputErrors> {
        import(Format::named("schedcat"), name, text.as_bytes(), options)
    }

    const GOOD: &str = "<?xml version='1.0'?>\n<taskset><properties count=\"2\" />\n\
        <task id=\"1\" period=\"10000\" wcet=\"1500.0\" partition=\"0\" />\n\
        <task id=\"2\" period=\"20000\" wcet=\"500\" deadline=\"8000\" partition=\"1\" />\n</taskset>";

    fn error(text: &str) -> String {
        let read = read("s.xml", text, Options::default());
        read.expect_err("must be refused").to_string()
    }

    #[test]
    fn an_empty_list_of_resources_is_none_and_an_affinity_is_told() {
        let with = |inside: &str| {
            GOOD.replacen(
                "partition=\"0\" />",
                &format!("partition=\"0\">{inside}</task>"),
                1,
            )
        };
        let notes = |text: &str| {
            let read = read("s.xml", text, Options::default());
            read.expect("good").notes.join("; ")
        };
        let plain = notes(GOOD);
        assert_eq!(notes(&with("<resources />")), plain);
        assert_eq!(notes(&with("<resources> </resources>")), plain);
        let told = notes(&with("<affinity><cpu id=\"0\" /></affinity>"));
        assert!(
            told.contains("the <affinity> of 1 tasks is ignored"),
            "{told}"
        );
    }

    #[test]
    fn what_is_not_read_is_named_and_a_task_never_dropped() {
        let named = GOOD
            .replacen("wcet=\"500\"", "wcet=\"500\" colour=\"3\"", 1)
            .replacen("</taskset>", "<remark/></taskset>", 1);
        let read = read("s.xml", &named, Options::default()).expect("good");
        let notes = read.notes.join("; ");
        assert!(
            notes.contains("`colour`") && notes.contains("<remark>"),
            "{notes}"
        );
        for dropped in [
            "<group><task period=\"10\" wcet=\"9\"/></group></taskset>",
            "<task period=\"99\" wcet=\"1\"><task period=\"10\" wcet=\"9\"/></task></taskset>",
        ] {
            let error = error(&GOOD.replacen("</taskset>", dropped, 1));
            assert!(
                error.contains("s.xml:5:") && error.contains("a task is inside"),
                "{error}"
            );
        }
    }

    #[test]
    fn partitions_become_cells() {
        let options = Options {
            cpus: None,
            unit: Some(Unit::Us),
            policy: Some(FIXED),
        };
        let read = read("s.xml", GOOD, options).expect("good");
        assert!(read.notes.is_empty(), "{:?}", read.notes);
        let [first, second] = read.set.cells.as_slice() else {
            panic!("two cells");
        };
        assert_eq!(first.name, "partition 0");
        assert_eq!(first.policy, FIXED);
        assert_eq!(first.tasks[0].wcet.ns(), 1_500_000);
        assert_eq!(first.tasks[0].deadline.ns(), 10_000_000);
        assert_eq!(second.tasks[0].deadline.ns(), 8_000_000);
    }

    #[test]
    fn what_is_assumed_is_noted() {
        let read = read("s.xml", GOOD, Options::default()).expect("good");
        assert_eq!(read.set.cells[0].policy, Policy::Edf);
        assert!(read.notes.iter().any(|n| n.contains("microseconds")));
        assert!(read.notes.iter().any(|n| n.contains("edf")));
    }

    #[test]
    fn a_test_point_of_one_set_is_read() {
        let inner = GOOD.split_once('\n').expect("two lines").1;
        let point = format!("<testpoint><config a=\"1\"/>{inner}</testpoint>");
        assert_eq!(
            read("s.xml", &point, Options::default())
                .expect("good")
                .set
                .tasks(),
            2
        );
        let two = format!("<testpoint>{inner}\n{inner}</testpoint>");
        assert!(error(&two).contains("more than one task set"));
    }

    #[test]
    fn each_fault_has_its_line() {
        for (from, to, parts) in [
            ("period=\"20000\" ", "", ["s.xml:4:", "no `period`"]),
            ("\"500\"", "\"five\"", ["s.xml:4:", "not a decimal number"]),
            ("\"500\"", "\"9000\"", ["s.xml:4:", "at most the deadline"]),
            ("\"500\"", "\"0\"", ["s.xml:4:", "zero"]),
            ("</taskset>", "", ["s.xml:", "not XML"]),
            ("count=\"2\"", "count=\"3\"", ["s.xml:2:", "holds 2 tasks"]),
            ("\"500\"", "\"500\" jitter=\"9\"", ["s.xml:4:", "jitter"]),
            (
                "partition=\"1\" />",
                "><resources><resource id=\"0\"/></resources></task>",
                ["s.xml:4:", "resources"],
            ),
        ] {
            let error = error(&GOOD.replacen(from, to, 1));
            for part in parts {
                assert!(error.contains(part), "`{part}` is not in: {error}");
            }
        }
        assert!(error("<system/>").contains("--format carts"));
        assert!(error("<taskset/>").contains("no task"));
    }

    #[test]
    fn hostile_xml_ends_soon() {
        let bomb = "<!DOCTYPE a [<!ENTITY b \"x\"><!ENTITY c \"&b;&b;\">]><taskset>&c;</taskset>";
        assert!(error(bomb).contains("not XML"));
        let deep = "<a>".repeat(50_000);
        assert!(error(&deep).contains("not XML"));
        let closed = format!("<taskset>{deep}{}</taskset>", "</a>".repeat(50_000));
        assert!(!error(&closed).is_empty());
    }
}
