//! Measurements of other tools, in every output.

use super::*;
use crate::Style;
use crate::html::Extras;
use record::import::measured::{Options, import};
use study::measured_summary;

fn file(name: &str, text: &str) -> Measured {
    import(None, name, text.as_bytes(), Options::default()).expect(name)
}

/// 997 values of 5 us and 3 beyond 10 us.
fn cut_off() -> Measured {
    file(
        "a.txt",
        "# Histogram\n000005 000997\n000009 000000\n# Min Latencies: 00005\n# Avg Latencies: 00005\n\
         # Max Latencies: 00400\n# Histogram Overflows: 00003\n",
    )
}

#[test]
fn a_quantile_beyond_the_histogram_is_above_it_in_every_output() {
    let files = [cut_off()];
    let table = measured_table(&files, Style::default());
    assert!(table.contains("3 of 10.0 us or more"), "{table}");
    assert!(
        table.contains("needs 2,995") || table.contains("needs 29,956"),
        "{table}"
    );
    let page = measured_html(&files, Extras::default());
    assert!(page.contains("of 10.0 us or more") && page.contains("Not measured by timecell."));
    assert!(page.contains("400.0 us"), "the maximum that the tool kept");
    let summary = &measured_summary(&files).files[0].distributions[0];
    let p99 = summary.quantiles[1].value_ns;
    assert_eq!(
        (summary.quantiles[0].value_ns, p99),
        (Some(5_000), Some(5_000))
    );
    assert_eq!(summary.quantiles[2].needed_count, Some(2_995));
    assert_eq!(summary.max_ns, Some(400_000));
}

#[test]
fn more_values_show_what_lies_above() {
    let mut file = cut_off();
    file.distributions[0].fill([(5_000, 9_970)]);
    file.distributions[0].overflow = Some(Overflow {
        count: Some(30),
        at_least_ns: 10_000,
    });
    assert_eq!(shown(&file.distributions[0], 0.99), Shown::At(5_000));
    assert_eq!(shown(&file.distributions[0], 0.999), Shown::Above(10_000));
    assert!(measured_table(&[file], Style::default()).contains("above 10.0 us"));
}

#[test]
fn many_threads_and_negative_values_are_drawn() {
    let mut many = cut_off();
    let first = many.distributions[0].clone();
    for number in 1..20 {
        let mut d = first.clone();
        d.name = format!("thread {number}");
        d.fill((0..3_000).map(|i| (i * 1_000 - 5_000, 1)));
        many.distributions.push(d);
    }
    let files = [
        many,
        file("h.txt", "Running in process mode with 1\nTime: 0.5\n"),
    ];
    let page = measured_html(&files, Extras::default());
    assert!(page.contains("Of 20 distributions, the 8 with the largest maximum are drawn."));
    assert!(page.contains("Side by side, not compared."));
    assert!(page.len() < 400_000, "{}", page.len());
    assert!(!page.contains("NaN"));
}
