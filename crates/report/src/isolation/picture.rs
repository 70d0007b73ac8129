//! The figures of a study of isolation: how many deadlines each arm missed, and what cells received period by period.

use maud::html;
use model::Enforcer;
use record::isolation::{ArmSummary, Attacker, IsolationSummary};

use super::rows::utilisation;
use crate::chart::{
    Axis, Band, Dress, Entry, Mark, document, legend, legend_height, marks, n, title_below,
    title_left, x_axis, y_axis,
};
use crate::figure::{Figure, WIDTH};
use study::reservation;

const LEFT: f64 = 66.0;
const RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 250.0;

/// The figures as SVG files of their own: file name and content.
pub fn isolation_figures(summary: &IsolationSummary) -> Vec<(String, String)> {
    let note = format!("timecell run {}", summary.run);
    (draw(summary).into_iter())
        .map(|figure| {
            let dress = Dress {
                title: &figure.title,
                caption: &figure.caption,
                note: &note,
                size: (WIDTH, figure.height),
            };
            (
                format!("{}.svg", figure.name),
                document(&dress, &figure.body),
            )
        })
        .collect()
}

/// All figures.
pub(super) fn draw(summary: &IsolationSummary) -> Vec<Figure> {
    let mut all: Vec<Figure> = misses(summary).into_iter().collect();
    for &enforcer in Enforcer::OF_BENCH {
        all.extend(received(summary, enforcer));
    }
    all
}

/// The arms that a picture distinguishes, in the order of their looks.
fn kind(arm: &ArmSummary) -> (usize, String) {
    let held = arm.arm.enforcer.map_or("no enforcer", Enforcer::name);
    match (arm.arm.attacker, arm.arm.enforcer) {
        (Attacker::Absent, _) => (0, "victim alone".to_owned()),
        (Attacker::Honest, _) => (1, "attacker honest".to_owned()),
        (Attacker::Overruns, None) => (2, "attacker overruns, no enforcer".to_owned()),
        (Attacker::Overruns, Some(enforcer)) => {
            let all = Enforcer::OF_BENCH.iter();
            let place = all.take_while(|one| **one != enforcer).count();
            (3 + place, format!("attacker overruns, {held}"))
        }
    }
}

/// Share of the victim's deadlines that were missed, by utilisation and load.
fn misses(summary: &IsolationSummary) -> Option<Figure> {
    let mut points: Vec<String> = Vec::new();
    let mut kinds: Vec<(usize, String)> = Vec::new();
    for arm in &summary.arms {
        let point = point(arm);
        if !points.contains(&point) {
            points.push(point);
        }
        if !kinds.contains(&kind(arm)) {
            kinds.push(kind(arm));
        }
    }
    kinds.sort();
    let share =
        |arm: &ArmSummary| arm.victim.missed() as f64 * 100.0 / arm.victim.jobs.max(1) as f64;
    let most = summary.arms.iter().map(share).fold(1.0, f64::max);
    let y = Axis::linear([0.0, most]).between(BOTTOM, TOP);
    let step = (RIGHT - LEFT) / points.len().max(1) as f64;
    let wide = (step * 0.8 / kinds.len().max(1) as f64).min(46.0);
    let x = |place: usize, kind: usize| {
        let middle = LEFT + step * (place as f64 + 0.5);
        middle + wide * (kind as f64 - (kinds.len() as f64 - 1.0) / 2.0)
    };
    let across = Axis::linear([0.0, 1.0]).between(LEFT, RIGHT);
    let entries: Vec<Entry> = kinds
        .iter()
        .map(|(look, name)| Entry { look: *look, name })
        .collect();
    let legend_top = BOTTOM + 62.0;
    (!summary.arms.is_empty()).then(|| Figure {
        name: "isolation-misses".into(),
        title: "Does the victim keep its deadlines?".to_owned(),
        caption: "The share of the victim's deadlines that were missed, in percent. Marks on the zero line are arms without a miss; what \
                  the victim misses alone is the machine's own noise."
            .to_owned(),
        height: legend_top + legend_height(&entries, WIDTH - LEFT),
        body: html! {
            (title_left(8.0, TOP, "deadlines missed in %"))
            (y_axis(&y, Band(LEFT, RIGHT), 1.0))
            path class="rule" d=(format!("M{LEFT} {BOTTOM}H{RIGHT}")) {}
            @for (place, name) in points.iter().enumerate() {
                text class="faint mid" x=(n(LEFT + step * (place as f64 + 0.5))) y=(n(BOTTOM + 17.0)) { (name) }
            }
            (title_below(&across, BOTTOM, "utilisation that both cells declare together"))
            @for arm in &summary.arms {
                @let (look, name) = kind(arm);
                @let place = points.iter().position(|known| *known == point(arm)).unwrap_or(0);
                @let at = kinds.iter().position(|known| known.1 == name).unwrap_or(0);
                path class=(format!("line s{look}"))
                    d=(format!("M{0} {BOTTOM}V{1}", n(x(place, at)), n(y.at(share(arm))))) {}
                path class=(format!("mark s{look}"))
                    d=(marks(Mark::of(look), [(x(place, at), y.at(share(arm)))])) {}
            }
            (legend(&entries, LEFT, legend_top, WIDTH - LEFT))
        },
    })
}

fn point(arm: &ArmSummary) -> String {
    let utilisation = utilisation(arm.utilisation_permille);
    match &arm.load {
        None => utilisation,
        Some(load) => format!("{utilisation}, {load}"),
    }
}

/// What the cells of one enforcer received in each period, of what they were granted.
fn received(summary: &IsolationSummary, enforcer: Enforcer) -> Option<Figure> {
    let of: Vec<_> = (summary.received.iter())
        .filter(|one| one.held.enforcer == enforcer)
        .collect();
    let longest = of.iter().map(|one| one.each.permille.len()).max()?;
    let shares = || of.iter().flat_map(|one| &one.each.permille);
    let most = shares().max().copied().unwrap_or(0).max(1_000);
    let x = Axis::linear([1.0, longest.max(2) as f64]).between(LEFT, RIGHT);
    let y = Axis::linear([0.0, f64::from(most) / 10.0]).between(BOTTOM, TOP);
    let names: Vec<String> = of.iter().map(|one| reservation(&one.held)).collect();
    let entries: Vec<Entry> = (names.iter().enumerate())
        .map(|(look, name)| Entry { look, name })
        .collect();
    let legend_top = BOTTOM + 62.0;
    Some(Figure {
        name: format!("isolation-received-{}", enforcer.name()).into(),
        title: format!("What cells received in each period, {}", enforcer.name()),
        caption: "One mark for each period of each cell: what it received, in percent of its budget. The kernel checks budgets in its \
                  tick: a cell that got too much in one period gets less in later ones."
            .to_owned(),
        height: legend_top + legend_height(&entries, WIDTH - LEFT),
        body: html! {
            (title_left(8.0, TOP, "received in % of the budget"))
            (x_axis(&x, Band(TOP, BOTTOM), 1.0))
            (y_axis(&y, Band(LEFT, RIGHT), 1.0))
            (title_below(&x, BOTTOM, "period, trial after trial"))
            @for (look, one) in of.iter().enumerate() {
                @let dots = one.each.permille.iter().zip(1u32..).map(|(share, period)| {
                    (x.at(f64::from(period)), y.at(f64::from(*share) / 10.0))
                });
                path class=(format!("mark s{look}")) d=(marks(Mark::of(look), dots)) {}
            }
            (legend(&entries, LEFT, legend_top, WIDTH - LEFT))
        },
    })
}
