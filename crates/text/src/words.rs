//! Words and numbers as all tables and sentences print them.

use std::collections::HashMap;
use std::fmt::Display;

use record::summary::NotMeasured;
use stats::{Comparison, Quantile, Ratio, Share, Verdict};

/// Puts commas between the thousands of a decimal number.
pub fn grouped(number: impl Display) -> String {
    let number = number.to_string();
    let (sign, rest) = number
        .strip_prefix('-')
        .map_or(("", number.as_str()), |rest| ("-", rest));
    let (whole, fraction) = rest.find('.').map_or((rest, ""), |dot| rest.split_at(dot));
    let mut out = String::from(sign);
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// A count with commas.
pub fn count(n: u64) -> String {
    grouped(n)
}

/// The count of a cell's lost jobs: its largest times may be among theirs.
pub fn lost(cell: &record::summary::CellSummary) -> u64 {
    cell.lost.saturating_add(cell.unexplained)
}

/// `1 round`, `3 rounds`.
pub fn plural(n: u64, one: &str) -> String {
    format!("{} {one}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A ratio with three decimals, or with three digits if it is far from 1.
pub fn ratio(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{v:.2e}"),
        v if v >= 100.0 => grouped(format!("{v:.1}")),
        v if v >= 10.0 => format!("{v:.2}"),
        v if v < 0.001 => format!("{v:.2e}"),
        v => format!("{v:.3}"),
    }
}

/// `1.003 (0.998..1.009)`, or only the value if there is no interval.
pub fn interval(r: &Ratio) -> String {
    match (r.low, r.high) {
        (Some(low), Some(high)) => {
            format!("{} ({}..{})", ratio(r.value), ratio(low), ratio(high))
        }
        _ => ratio(r.value),
    }
}

/// From 9.95 on, two digits of a number are those of 10.
const ROUNDED: f64 = 1.005;

/// A share in percent with two digits, however small: `0.0031 %`, `1.2 %`, `24 %`.
pub fn part(share: f64) -> String {
    let percent = 100.0 * share;
    let decimals = if percent > 0.0 {
        (1.0 - (percent * ROUNDED).log10().floor()).clamp(0.0, 7.0) as usize
    } else {
        0
    };
    format!("{percent:.decimals$} %")
}

/// `20 % (18..23 %)`, or only the share if there is no interval.
pub fn share_of_jobs(share: f64, ends: Option<(f64, f64)>) -> String {
    let interval = ends.map_or_else(String::new, |ends| format!(" ({})", between(ends)));
    format!("{}{interval}", part(share))
}

/// `0.021..0.12 %`; `None` if there is no interval.
pub fn ends(share: &Share) -> Option<String> {
    share.low.zip(share.high).map(between)
}

fn between((low, high): (f64, f64)) -> String {
    format!("{}..{}", part(low).trim_end_matches(" %"), part(high))
}

/// Minimum number of rounds for a ratio: of two, one may be the exception.
pub const FEWEST_ROUNDS: u32 = 3;

/// A ratio with its interval and a trailing space; empty if there are too few rounds.
pub fn times(r: &Ratio, rounds: u32) -> String {
    match rounds < FEWEST_ROUNDS {
        true => String::new(),
        false => format!("{} ", interval(r)),
    }
}

/// The verdict on a ratio from `rounds` rounds; none if they are too few.
pub fn judged(r: &Ratio, rounds: u32) -> Verdict {
    match rounds < FEWEST_ROUNDS {
        true => Verdict::Undecided,
        false => r.verdict,
    }
}

/// The verdict on a ratio of times: `slower`, `faster`, `within noise`, or why there is none.
pub fn verdict(r: &Ratio, rounds: u32) -> &'static str {
    match r.verdict {
        _ if rounds < 2 => "undecided: one round",
        _ if rounds < FEWEST_ROUNDS => "undecided: two rounds",
        Verdict::TooWide => "undecided: more rounds",
        Verdict::WithinNoise => "within noise",
        Verdict::Larger => "slower",
        Verdict::Smaller => "faster",
        Verdict::Undecided => "undecided: no interval",
    }
}

/// Ratio of medians, interval and verdict.
pub fn comparison(c: &Comparison) -> String {
    let medians = &c.ratio_of_medians;
    times(medians, c.rounds) + verdict(medians, c.rounds)
}

/// ` over 9 of 10 rounds` if the ratio of p99 rests on fewer rounds than that of medians; else empty.
pub fn fewer_rounds_of_p99(c: &Comparison) -> String {
    match c.rounds_of_p99 {
        some if some > 0 && some < c.rounds => {
            format!(
                " over {} of {}",
                count(some.into()),
                plural(c.rounds.into(), "round")
            )
        }
        _ => String::new(),
    }
}

/// The text in place of a quantile for which the sample is too small.
pub fn needs(q: &Quantile) -> String {
    format!("needs {}", count(q.needed_count))
}

/// The sentence on a resumption and the gap before it.
pub fn resumed(gap: &record::run::Resumption) -> String {
    let differences = match gap.differences.as_slice() {
        [] => String::new(),
        some => format!("; {}", some.join("; ")),
    };
    let trial = gap
        .cut_off_trial
        .map(|number| format!(" in trial {number}"))
        .unwrap_or_default();
    format!(
        "The run was resumed at {} after it had ended{trial} ({}): nothing was measured from {} until then{differences}.",
        gap.resumed, gap.ended, gap.last_record
    )
}

/// A reason, with its fix in parentheses where there is one.
pub fn with_fix(reason: &str, fix: &str) -> String {
    match fix {
        "" => reason.to_owned(),
        fix => format!("{reason} ({fix})"),
    }
}

/// Why something was not measured, and how to get it, after its name.
pub fn not_measured(absent: &NotMeasured) -> String {
    let why = with_fix(&absent.reason, &absent.fix);
    format!("{}: not measured: {why}", absent.trial)
}

/// Replaces characters that a terminal would interpret and XML would refuse: control characters become `?`.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => ' ',
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => '?',
            c => c,
        })
        .collect()
}

/// At most `room` characters; of a longer text, the middle is left out.
fn shortened(text: &str, room: usize) -> String {
    let length = text.chars().count();
    if length <= room || room < 3 {
        return text.to_owned();
    }
    let tail = (room - 1) / 2;
    let head = room - 1 - tail;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    format!("{start}\u{2026}{end}")
}

/// Names of at most `room` characters each, at least 9, of which different ones stay different. The middle of a longer name is left out; of
/// names that would look alike then, the part up to their first difference is left out, and where that is not enough, they are numbered.
pub fn shortened_apart(names: &[&str], room: usize) -> Vec<String> {
    let mut texts: Vec<String> = names.iter().map(|name| shortened(name, room)).collect();
    let mut alike: HashMap<String, Vec<usize>> = HashMap::new();
    for (place, text) in texts.iter().enumerate() {
        alike.entry(text.clone()).or_default().push(place);
    }
    for places in alike.values() {
        let first = names[places[0]];
        let others = places.iter().map(|&place| names[place]);
        let common = |other: &str| {
            let pairs = first.chars().zip(other.chars());
            pairs.take_while(|(one, two)| one == two).count()
        };
        if let Some(from) = others.filter(|other| *other != first).map(common).min() {
            for &place in places {
                texts[place] = shown_from(names[place], from, room);
            }
        }
    }
    let mut taken: HashMap<String, &str> = HashMap::new();
    for (name, text) in names.iter().zip(&mut texts) {
        let mut number = 1;
        while taken.get(text).is_some_and(|by| by != name) {
            number += 1;
            let ending = format!(" {number}");
            *text = shortened(name, room.saturating_sub(ending.len())) + &ending;
        }
        taken.insert(text.clone(), name);
    }
    texts
}

/// At most `room` characters: the beginning, and the text from shortly before character `from`.
fn shown_from(text: &str, from: usize, room: usize) -> String {
    let head = room / 4;
    let start: String = text.chars().take(head).collect();
    let rest: String = text.chars().skip(from.saturating_sub(2)).collect();
    let rest = match rest.chars().count() < room - head {
        true => rest,
        false => rest.chars().take(room - head - 2).collect::<String>() + "\u{2026}",
    };
    format!("{start}\u{2026}{rest}")
}

/// The name `shortened_apart` gives to `name` among `names`, to which it belongs.
pub fn short_among(name: &str, names: &[&str], room: usize) -> String {
    let place = names.iter().position(|other| *other == name);
    let texts = shortened_apart(names, room);
    place.map_or_else(|| shortened(name, room), |place| texts[place].clone())
}

/// The text with a capital first.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

/// The text with a small letter first, for use after a colon.
pub fn uncapital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_lowercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

/// All of them as sentences.
pub fn sentences(all: Vec<String>) -> Vec<String> {
    all.iter().map(|text| sentence(text)).collect()
}

/// The text as a sentence: a capital first, a full stop last.
pub fn sentence(text: &str) -> String {
    let stop = if text.is_empty() || text.ends_with(['.', '?', '!', ':']) {
        ""
    } else {
        "."
    };
    capital(text) + stop
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(grouped("-1234567.8912"), "-1,234,567.8912");
        assert_eq!(count(999), "999");
        assert_eq!(plural(5_000, "job"), "5,000 jobs");
        assert_eq!(plural(1, "round"), "1 round");
    }

    #[test]
    fn an_interval_too_wide_to_say_the_same_is_undecided() {
        let with = |said: Verdict, rounds: u32| {
            let ratio = Ratio {
                value: 1.0,
                low: Some(0.5),
                high: Some(2.0),
                confidence: 0.95,
                verdict: said,
            };
            times(&ratio, rounds) + verdict(&ratio, rounds)
        };
        assert_eq!(
            with(Verdict::WithinNoise, 3),
            "1.000 (0.500..2.000) within noise"
        );
        assert!(with(Verdict::TooWide, 3).ends_with(" undecided: more rounds"));
        // With fewer rounds no number is given.
        assert_eq!(with(Verdict::Larger, 2), "undecided: two rounds");
        assert_eq!(with(Verdict::Undecided, 1), "undecided: one round");
    }

    #[test]
    fn what_is_not_measured_names_its_fix_if_there_is_one() {
        let absent = |fix: &str| NotMeasured {
            trial: "crun-4".to_owned(),
            reason: "crun is not installed".to_owned(),
            fix: fix.to_owned(),
        };
        assert_eq!(
            not_measured(&absent("")),
            "crun-4: not measured: crun is not installed"
        );
        assert_eq!(
            not_measured(&absent("apt install crun")),
            "crun-4: not measured: crun is not installed (apt install crun)"
        );
    }

    #[test]
    fn names_that_differ_in_the_middle_show_their_difference() {
        let names = [
            "controller-left-wheel-motor",
            "controller-rear-wheel-motor",
            "arm",
        ];
        let short = shortened_apart(&names, 16);
        assert_eq!(
            short,
            [
                "cont\u{2026}r-left-whe\u{2026}",
                "cont\u{2026}r-rear-whe\u{2026}",
                "arm"
            ]
        );
        // Different at two places of which the room shows one.
        let long = |a: char, b: char| format!("begin-{a}-{}-{b}-end-of-it", "x".repeat(20));
        let names = [long('a', 'a'), long('a', 'b'), long('b', 'a')];
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let short = shortened_apart(&names, 12);
        assert_eq!(short[1], "begin\u{2026}f-it 2");
        assert_eq!(short_among(names[1], &names, 12), short[1]);
    }

    proptest! {
        #[test]
        fn different_names_stay_different_in_any_room(
            names in vec("[ab\u{e4}]{0,3}x{0,30}[ab2]{0,2}x{0,12}[ab\u{2026} ]{0,3}", 1..40),
            room in 9usize..40,
        ) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let short = shortened_apart(&names, room);
            for (at, text) in short.iter().enumerate() {
                prop_assert!(text.chars().count() <= room, "{text}");
                for other in 0..at {
                    prop_assert_eq!(names[at] == names[other], *text == short[other], "{} {}", names[at], names[other]);
                }
            }
        }
    }

    #[test]
    fn parts_keep_two_digits_and_intervals_one_unit() {
        for (share, text) in [
            (0.0, "0 %"),
            (0.000_031, "0.0031 %"),
            (0.012, "1.2 %"),
            (0.0997, "10 %"),
            (0.24, "24 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(part(share), text);
        }
        let share = |low, high| Share {
            value: 0.01,
            low,
            high,
        };
        assert_eq!(ends(&share(Some(0.0), Some(0.051))).unwrap(), "0..5.1 %");
        assert_eq!(ends(&share(None, None)), None);
    }

    #[test]
    fn ratios_keep_three_digits() {
        assert_eq!(ratio(1.0034), "1.003");
        assert_eq!(ratio(12.3456), "12.35");
        assert_eq!(ratio(1234.5), "1,234.5");
        assert_eq!(ratio(0.00001), "1.00e-5");
    }

    #[test]
    fn text_is_made_harmless_and_short() {
        assert_eq!(clean("a\u{1b}[31mb\nc"), "a?[31mb c");
        assert_eq!(shortened("podman-rootless", 9), "podm\u{2026}less");
        assert_eq!(sentence("the disk is full"), "The disk is full.");
    }
}
