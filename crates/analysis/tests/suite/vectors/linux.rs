//! Admission by Linux.

use serde_json::Value;
use timecell_analysis::linux::{Bandwidth, DeadlineLimits, DeadlineParams, HcbsTree, RootDomain};
use timecell_analysis::multi::{Fit, Order, partition};
use timecell_analysis::{Ns, Task};

use super::{list, number};

const US: Ns = 1_000;
const MS: Ns = 1_000_000;

cases! {
    how_many_threads: "linux-01";
    parameters: "linux-03";
    hcbs: "linux-04";
}

fn how_many_threads(vector: &Value) {
    let domain = RootDomain::of_cpus(number(&vector["input"]["cpus"]) as usize);
    let thread = DeadlineParams::new(10 * MS, 100 * MS);
    let expected = &vector["expected"];
    assert_eq!(domain.share.ratio(), number(&expected["bw_per_cpu"]));
    assert_eq!(thread.ratio(), number(&expected["task_bw"]));
    let admitted = (0..100)
        .take_while(|&count| domain.admits(&vec![thread; count + 1]).is_ok())
        .count();
    assert_eq!(admitted as u64, number(&expected["admitted"]));
}

fn parameters(vector: &Value) {
    let cases = list(&vector["input"]["cases_ns"]);
    let expected = list(&vector["expected"]["valid"]);
    assert_eq!(cases.len(), expected.len());
    for (case, valid) in cases.iter().zip(expected) {
        let params = DeadlineParams {
            runtime: number(&case["runtime"]),
            deadline: number(&case["deadline"]),
            period: number(&case["period"]),
        };
        let outcome = params.check(0, &DeadlineLimits::default());
        assert_eq!(
            outcome.is_ok(),
            valid.as_bool().unwrap(),
            "{params:?}: {outcome:?}"
        );
    }
}

fn hcbs(vector: &Value) {
    let (input, expected) = (&vector["input"], &vector["expected"]);
    let domain = RootDomain {
        taken: number(&input["total_bw_other"]),
        ..RootDomain::of_cpus(number(&input["cpus"]) as usize)
    };
    let bandwidth = |list: &Value| Bandwidth::new(number(&list[0]) * US, number(&list[1]) * US);
    let root = bandwidth(&input["root"]);
    assert_eq!(root.ratio(), number(&expected["root_ratio"]));
    let tree = HcbsTree::new(vec![domain], root);
    assert_eq!(tree.is_ok(), expected["root_ok"].as_bool().unwrap());
    let mut tree = tree.unwrap();
    for child in list(&input["children_Q_P_us"]) {
        let child = bandwidth(child);
        assert_eq!(child.ratio(), number(&expected["child_ratio"]));
        let added = tree.add(0, child);
        assert_eq!(added.is_ok(), expected["children_ok"].as_bool().unwrap());
    }
    let more = tree.add(0, Bandwidth::new(500 * US, 10_000 * US));
    assert_eq!(
        more.is_ok(),
        expected["add_child_(500,10000)_ok"].as_bool().unwrap()
    );
}

#[test]
fn two_cpus_hold_four_reservations_and_one_root_domain_does_not_promise_them() {
    let servers =
        [(17, 24), (5, 22), (11, 28), (4, 22)].map(|(q, p)| Task::new(q * MS / 2, p * MS / 2));
    let pinned = partition(
        &servers,
        2,
        Fit::First,
        Order::AsGiven,
        &RootDomain::of_cpus(1),
    );
    assert_eq!(pinned.bins, [vec![0, 1], vec![2, 3]]);
    let threads = servers.map(|server| DeadlineParams::new(server.wcet, server.period));
    assert!(RootDomain::of_cpus(2).admits(&threads).is_ok());
}
