//! The figures of a study of isolation: how many deadlines each arm missed, and cells' supply period by period.

use model::Enforcer;
use record::isolation::{ArmSummary, Attacker, IsolationSummary};

use super::rows::utilisation;
use crate::chart::Axis;
use crate::figure::plot::{Plot, Side};
use crate::figure::{Figure, documents};
use study::reservation;

/// The figures as SVG files of their own: file name and content.
pub fn isolation_figures(summary: &IsolationSummary) -> Vec<(String, String)> {
    let note = format!("timecell run {}", summary.run);
    documents(draw(summary), &note)
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
    let wide = 0.8 / kinds.len().max(1) as f64;
    let y = Side::plain(Axis::linear([0.0, most]), "deadlines missed in %");
    let x = Side::places(
        points.clone(),
        "utilisation that both cells declare together",
    );
    let mut plot = Plot::new(x, y, 220.0);
    for arm in &summary.arms {
        let (look, name) = kind(arm);
        let place = points
            .iter()
            .position(|known| *known == point(arm))
            .unwrap_or(0);
        let at = kinds.iter().position(|known| known.1 == name).unwrap_or(0);
        let x = place as f64 + 0.5 + wide * (at as f64 - (kinds.len() as f64 - 1.0) / 2.0);
        plot.line(look, [(x, 0.0), (x, share(arm))]);
        plot.marks(look, [(x, share(arm))]);
    }
    for (look, name) in kinds {
        plot.name(look, name);
    }
    let caption = "The share of the victim's deadlines that were missed, in percent. Marks on the zero line are arms without a miss; what the \
                   victim misses alone is the machine's own noise.";
    (!points.is_empty()).then(|| {
        plot.figure(
            "isolation-misses",
            "Does the victim keep its deadlines?",
            caption,
        )
    })
}

fn point(arm: &ArmSummary) -> String {
    let utilisation = utilisation(arm.utilisation_permille);
    match &arm.load {
        None => utilisation,
        Some(load) => format!("{utilisation}, {load}"),
    }
}

/// Supply of one enforcer's cells in each period, as a share of the grant.
fn received(summary: &IsolationSummary, enforcer: Enforcer) -> Option<Figure> {
    let of: Vec<_> = (summary.received.iter())
        .filter(|one| one.held.enforcer == enforcer)
        .collect();
    let longest = of.iter().map(|one| one.each.permille.len()).max()?;
    let shares = || of.iter().flat_map(|one| &one.each.permille);
    let most = shares().max().copied().unwrap_or(0).max(1_000);
    let x = Side::plain(
        Axis::linear([1.0, longest.max(2) as f64]),
        "period, trial after trial",
    );
    let y = Side::plain(
        Axis::linear([0.0, f64::from(most) / 10.0]),
        "received in % of the budget",
    );
    let mut plot = Plot::new(x, y, 220.0);
    for (look, one) in of.iter().enumerate() {
        let each = one.each.permille.iter().zip(1u32..);
        plot.marks(
            look,
            each.map(|(share, period)| (f64::from(period), f64::from(*share) / 10.0)),
        );
        plot.name(look, reservation(&one.held));
    }
    let caption = "One mark for each period of each cell: what it received, in percent of its budget. The kernel checks budgets in its tick: \
                   a cell that got too much in one period gets less in later ones.";
    let title = format!("What cells received in each period, {}", enforcer.name());
    Some(plot.figure(
        format!("isolation-received-{}", enforcer.name()),
        title,
        caption,
    ))
}
