//! Summaries of rteval.

use super::*;

fn read(text: &str) -> Result<Measured, String> {
    let read = import(None, "f", text.as_bytes(), Options::default());
    read.map_err(|error| error.to_string())
}

/// A summary of rteval, with its cyclictest's content.
fn rteval(cyclictest: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rteval version=\"3.8\">\n<SystemInfo><uname><node>board</node>\
         <kernel is_RT=\"1\">6.6.30-rt30</kernel><arch>x86_64</arch></uname></SystemInfo>\n\
         <Measurements><Profile loads=\"1\" parallel=\"1\">{cyclictest}</Profile></Measurements>\n</rteval>\n"
    )
}

const RTEVAL_CORES: &str = "<cyclictest command_line=\"cyclictest -i100 -qmu -h 3500 -p95\">\
    <system description=\"(2 cores)\"><statistics><samples>6</samples><minimum unit=\"us\">2</minimum></statistics></system>\
    <core id=\"0\" priority=\"95\"><statistics><samples>5</samples><minimum unit=\"us\">2</minimum>\
    <maximum unit=\"us\">9</maximum><mean unit=\"us\">3.8</mean></statistics>\
    <histogram nbuckets=\"3500\"><bucket index=\"2\" value=\"3\"/><bucket index=\"4\" value=\"1\"/><bucket index=\"9\" value=\"1\"/></histogram></core>\
    <core id=\"3\" priority=\"95\"><statistics><samples>1</samples><minimum unit=\"us\">7</minimum>\
    <maximum unit=\"us\">7</maximum><mean unit=\"us\">0.0</mean></statistics>\
    <histogram nbuckets=\"3500\"><bucket index=\"7\" value=\"1\"/></histogram></core></cyclictest>";

#[test]
fn a_summary_of_rteval_gives_the_histogram_of_each_core() {
    let read = read(&rteval(RTEVAL_CORES)).unwrap();
    assert_eq!(read.format.map(Format::name), Some("rteval-xml"));
    assert_eq!(read.machine.as_deref(), Some("Linux 6.6.30-rt30 x86_64"));
    let [first, second] = read.distributions.as_slice() else {
        panic!("{:?}", read.distributions);
    };
    assert_eq!(first.counts, [(2_000, 3), (4_000, 1), (9_000, 1)]);
    assert_eq!((first.cpu, second.cpu), (Some(0), Some(3)));
    assert_eq!(first.quantity, "wake-up latency");
    assert_eq!(first.said.mean_ns, Some(3_800.0));
    assert_eq!(second.said.mean_ns, None, "it writes 0 for one sample");
}

#[test]
fn a_summary_of_rteval_is_read_however_it_is_written() {
    // Two runs, figures in pieces, names of a namespace, and parts foreign to cyclictest.
    let second = RTEVAL_CORES
        .replace("<samples>5<", "<samples><!-- five --><![CDATA[5]]><")
        .replace("\"us\">3.8<", "\"us\">&#x33;.8 <")
        .replace("<core ", "<r:core ")
        .replace("</core>", "</r:core>")
        .replace(
            "command_line=\"cyclictest ",
            "command_line='cyclictest &lt;2&gt; ",
        );
    let second = second.replace("-p95\">", "-p95'>");
    let aborted = "<cyclictest><abort_report><breaktrace measured_latency=\"150\"/></abort_report></cyclictest>";
    let text = rteval(&format!("{RTEVAL_CORES}{second}{aborted}"))
        .replace("<uname>", "<uname><!-- a < b --><samples>none</samples>")
        .replace(">x86_64<", ">x86&amp;64<")
        .replace("</uname>", "</uname><uname><arch>other</arch></uname>");
    let read = read(&text).unwrap();
    assert_eq!(read.machine.as_deref(), Some("Linux 6.6.30-rt30 x86&64"));
    assert_eq!(
        read.command.as_deref(),
        Some("cyclictest <2> -i100 -qmu -h 3500 -p95")
    );
    let names: Vec<&str> = (read.distributions.iter())
        .map(|d| d.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "test 1, cpu 0",
            "test 1, cpu 3",
            "test 2, cpu 0",
            "test 2, cpu 3"
        ]
    );
    let [first, _, again, _] = read.distributions.as_slice() else {
        panic!("{names:?}");
    };
    assert_eq!((&first.counts, first.said), (&again.counts, again.said));
    assert!(
        read.notes
            .iter()
            .any(|note| note.contains("latency of 150 us"))
    );
}

/// Read as a stream: also texts longer than any part that is held, to the last byte.
#[test]
fn a_summary_of_rteval_may_be_long_and_not_cut_short() {
    let text = "x".repeat(32 << 20);
    let whole = rteval(&format!("{RTEVAL_CORES}\n<sysstat>{text}</sysstat>"));
    assert!(whole.len() > 32 << 20);
    assert_eq!(read(&whole).unwrap().distributions.len(), 2);
    let short = rteval(RTEVAL_CORES);
    let ends = short.trim_end().len();
    for cut in 40..ends {
        let error = read(&short[..cut]).expect_err("cut short");
        assert!(
            error.contains("cut short") || error.contains("format is unknown"),
            "{cut}: {error}"
        );
    }
    let error = |more: &str| read(&format!("{short}{more}")).expect_err(more);
    assert_eq!(error("<rteval/>"), "f:6: a second document begins");
    assert_eq!(error("more\n"), "f:7: the XML is cut short or damaged");
}

#[test]
fn what_rteval_leaves_out_or_adds_up_is_refused_with_the_reason() {
    let cut = rteval(RTEVAL_CORES);
    for (text, part) in [
        (cut[..cut.len() - 12].to_owned(), "cut short"),
        (
            rteval("<cyclictest command_line=\"c\"/>"),
            "beyond its histogram",
        ),
        (
            rteval(
                "<timerlat><core id=\"0\"><histogram><bucket index=\"1\" value=\"1\"/></histogram></core></timerlat>",
            ),
            "adds up",
        ),
        (rteval("<sysstat/>"), "without a latency test"),
        (
            rteval(&RTEVAL_CORES.replace("<samples>5", "<samples>4")),
            "cpu 0",
        ),
    ] {
        let error = read(&text).expect_err(part);
        assert!(error.contains(part), "{error}");
    }
    // Older versions kept the statistics where the maximum lay beyond the histogram.
    let hidden = RTEVAL_CORES.replace("\"us\">9<", "\"us\">4000<");
    let read = read(&rteval(&hidden)).unwrap();
    let over = read.distributions[0].overflow.expect("an overflow");
    assert_eq!((over.count, over.at_least_ns), (None, 10_000));
}
