//! Task sets in the formats of other tools: whole, cut short, and of the wrong kind.

use super::*;
use proptest::prelude::*;

#[test]
fn numbers_are_exact() {
    assert_eq!(time("1000.0", "us").map(Duration::ns), Ok(1_000_000));
    assert_eq!(time(" 12. ", "ms").map(Duration::ns), Ok(12_000_000));
    assert_eq!(time("0.5", "us").map(Duration::ns), Ok(500));
    for (number, part) in [
        ("-3", "negative"),
        ("1e3", "not a decimal number"),
        ("", "not a decimal number"),
        ("1,5", "decimal comma; write 1.5"),
        ("1,5,2", "not a decimal number"),
        ("3ms", "not a decimal number"),
        ("1.2.3", "not a duration"),
        ("99999999999999999999999", "too long"),
        ("0.0001", "finer than a nanosecond"),
    ] {
        let error = time(number, "us").expect_err(number);
        assert!(error.contains(part), "{number}: {error}");
    }
}

#[test]
fn names_become_unique_and_harmless() {
    let mut names = Names::default();
    assert_eq!(names.unique("a"), "a");
    assert_eq!(names.unique("a"), "a-2");
    assert_eq!(names.unique("a\n"), "a-3");
    assert_eq!(names.unique("\u{1b}[31m"), "?[31m");
    assert_eq!(names.unique(""), "?");
    assert_eq!(names.unique(&"x".repeat(100)).len(), 64);
    assert!(names.unique(&"x".repeat(100)).len() <= 64);
}

#[test]
fn the_format_is_announced_by_the_file() {
    assert_eq!(Format::of("a.toml", ""), Format::named("toml"));
    assert_eq!(Format::of("a.JSON", ""), Format::named("rt-app"));
    assert_eq!(Format::of("a.xml", "<system/>"), Format::named("carts"));
    assert_eq!(Format::of("a.xml", "<taskset/>"), Format::named("schedcat"));
    assert_eq!(Format::of("a.txt", "<taskset/>"), None);
    assert_eq!(Format::of("a.xml", "<taskset"), Format::named("schedcat"));
    assert_eq!(Format::of("a.xml", "<system><x/>"), Format::named("carts"));
    assert_eq!(Format::of("a.csv.gz", ""), Format::named("csv"));
    let cut = import(None, "a.xml", b"<system><x/>", Options::default());
    let error = cut.expect_err("must be refused").to_string();
    assert!(
        error.contains("not XML") && error.contains("cut short"),
        "{error}"
    );
}

#[test]
fn a_file_of_another_program_is_named() {
    let error =
        read("ctl.yaml", b"services:\n  ctl:\n    image: a\n").expect_err("must be refused");
    assert!(
        error.contains("it is a compose file, not a task set"),
        "{error}"
    );
    let error = read("set.txt", b"<taskset/>").expect_err("must be refused");
    assert!(error.contains("add --format"), "{error}");
}

fn read(name: &str, bytes: &[u8]) -> Result<Imported, String> {
    import(None, name, bytes, Options::default()).map_err(|error| error.to_string())
}

const TABLE: &str = "name,wcet_us,period_us\na,4000,10000\nb,10000,60000\n";

#[test]
fn a_file_cut_within_its_last_number_is_refused() {
    read("t.csv", TABLE.as_bytes()).expect("whole");
    read("t.csv", TABLE.replace('\n', "\r\n").as_bytes()).expect("CR LF");
    for lost in 1..5 {
        let cut = &TABLE[..TABLE.len() - lost];
        let error = read("t.csv", cut.as_bytes()).expect_err(cut);
        assert!(error.starts_with("t.csv:3: cut short"), "{error}");
    }
    let set = "schema = 1\n[[cell]]\nname = \"c\"\n[[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"9ms\"";
    read("t.toml", set.as_bytes()).expect("a quote ends it");
    let priority = format!("{set}\npriority = 15");
    let error = read("t.toml", priority.as_bytes()).expect_err("may be 150");
    assert!(error.starts_with("t.toml:8: cut short"), "{error}");
    read("t.toml", format!("{priority}\n").as_bytes()).expect("whole");
    read("t.toml", format!("{priority} # of 99").as_bytes()).expect("a comment");
}

#[test]
fn an_error_or_note_never_echoes_a_file() {
    let long = "x\u{1b}[2J".repeat(20_000);
    let json = long.replace('\u{1b}', "\\u001b");
    let xml = "y".repeat(100_000);
    let thread = |more: &str| {
        format!("{{\"tasks\":{{\"{json}\":{{\"policy\":\"SCHED_FIFO\",\"cpus\":[0],{more}}}}}}}")
    };
    let mut refused = 0;
    for (name, text) in [
        ("t.csv", format!("name,wcet_us,period_us\n{long},1,9\n")),
        ("t.csv", format!("name,wcet_us,period_us\na,{long},9\n")),
        ("t.csv", format!("name,wcet_us,period_us,{long}\na,1,9,2\n")),
        (
            "t.csv",
            format!("name,wcet_us,period_us,wcet{long}_us,cell\na,1,9,2,{long}\n"),
        ),
        (
            "t.csv",
            format!("name,wcet_us,period_us,prio\na,1,9,{long}\n"),
        ),
        ("t.csv", format!("{long}\n")),
        ("t.json", thread("\"run\":1")),
        ("t.json", thread("\"instance\":\"no\"")),
        (
            "t.json",
            thread("\"run\":1,\"timer\":{\"ref\":\"t\",\"period\":9}"),
        ),
        ("t.json", thread(&format!("\"priority\":\"{xml}\""))),
        ("t.json", thread(&format!("\"run\":\"{json}\""))),
        ("t.json", format!("{{\"tasks\":{{\"{json}\":7}}}}")),
        ("t.json", format!("{{\"tasks\":\"{json}\"}}")),
        ("t.xml", format!("<{xml}/>")),
        (
            "t.xml",
            format!("<taskset><task {xml}=\"1\"></{xml}></taskset>"),
        ),
        (
            "t.xml",
            format!("<system><component scheduler=\"{xml}\"><task/></component></system>"),
        ),
        (
            "t.xml",
            format!("<taskset><task period=\"{xml}\" wcet=\"1\"/></taskset>"),
        ),
        (
            "t.toml",
            format!("schema = 1\n[[cell]]\nname = \"{json}\"\n"),
        ),
        ("t.toml", format!("schema = 1\n{xml} = 2\n")),
        (&xml[..60], long.clone()),
    ] {
        let said = match read(name, text.as_bytes()) {
            Ok(read) => read.notes,
            Err(error) => {
                refused += 1;
                error.lines().map(str::to_owned).collect()
            }
        };
        for said in said {
            assert!(said.len() < 2_000, "{} bytes: {}", said.len(), &said[..200]);
            assert!(!said.contains(|c: char| c.is_control()), "{said:?}");
        }
    }
    assert_eq!(refused, 17);
}

#[test]
fn what_is_packed_or_encoded_is_read_or_refused_by_name() {
    use std::io::Write;

    let plain = read("t.csv", TABLE.as_bytes()).expect("whole");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(TABLE.as_bytes()).expect("in memory");
    let packed = packed.finish().expect("in memory");
    assert_eq!(read("t.csv.gz", &packed), Ok(plain.clone()));
    assert_eq!(read("t.csv", &packed), Ok(plain.clone()));
    let cut = read("t.csv", &packed[..packed.len() - 9]).expect_err("cut");
    assert!(cut.contains("gzip data is incomplete"), "{cut}");
    let marked = read("t.csv", format!("\u{feff}{TABLE}").as_bytes()).expect("marked");
    assert_eq!(marked.set, plain.set);
    assert!(
        marked.notes[0].contains("byte order mark"),
        "{:?}",
        marked.notes
    );
    let wide: Vec<u8> = TABLE.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let error = read("t.csv", &wide).expect_err("wide");
    assert!(
        error.contains("UTF-16") && error.contains("iconv"),
        "{error}"
    );
    let error = read("t.csv", b"name,wcet_us,period_us\n\xff,1,2\n").expect_err("no text");
    assert_eq!(error, "t.csv:2: not UTF-8 text");
    let error = read("t.csv", b" \n").expect_err("empty");
    assert!(error.contains("the file is empty"), "{error}");
    let large = vec![b'#'; (MOST_MIB as usize + 1) << 20];
    let error = read("t.csv", &large).expect_err("large");
    assert!(error.contains("larger than 64 MiB"), "{error}");
}

#[test]
fn what_a_tool_measured_is_recognised() {
    let cyclictest = "{\"cmdline\": \"cyclictest --json=x\", \"rt_test_version\": \"2.40\", \"num_threads\": 0, \"thread\": {}}";
    let histogram = "# Histogram\n000011 000003\n# Total: 000000003\n";
    for (name, text) in [
        ("c.json", cyclictest),
        ("c.txt", histogram),
        ("c.csv", histogram),
    ] {
        let error = read(name, text.as_bytes()).expect_err(name);
        assert!(error.contains("it looks like cyclictest-"), "{error}");
        assert!(error.ends_with("which `timecell report` reads"), "{error}");
    }
    let error = read("a.json", b"{}").expect_err("no tasks");
    assert!(!error.contains("report"), "{error}");
}

/// Pieces of all four formats, so that random texts get past the first line.
const PIECES: [&str; 34] = [
    "<taskset>",
    "</taskset>",
    "<task ",
    "wcet=\"1\" ",
    "period=\"10\" ",
    "partition=\"-1\" ",
    "/>",
    "<system os_scheduler=\"EDF\">",
    "</system>",
    "<component scheduler=\"DM\">",
    "</component>",
    "p=\"10\" ",
    "d=\"0.5\" ",
    "e=\"2\" ",
    "<!--",
    "-->",
    "{",
    "}",
    "\"tasks\":",
    "\"a\":",
    "\"dl-runtime\":",
    "\"dl-period\":",
    "\"instance\":",
    "100",
    "-7",
    ",",
    "[",
    "]",
    "/*",
    "*/",
    "wcet_us,period_us\n",
    "name,wcet_ms,period_ms,deadline_us\n",
    "1,2",
    "\n",
];

proptest! {
    #[test]
    fn no_text_panics_and_what_is_read_is_a_task_set(
        pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..24),
        noise in "\\PC{0,6}",
        at in 0usize..24,
    ) {
        let mut text = String::new();
        for (place, piece) in pieces.iter().enumerate() {
            if place == at {
                text.push_str(&noise);
            }
            text.push_str(piece);
        }
        for format in Format::all() {
            if let Ok(read) = import(Some(format), "x", text.as_bytes(), Options::default()) {
                let again = TaskSet::parse("x", &read.set.to_toml());
                prop_assert_eq!(again.map_err(|e| e.to_string()), Ok(read.set));
            }
        }
    }
}
