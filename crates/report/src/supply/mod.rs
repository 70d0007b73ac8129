//! Supply studies: their table, page and pictures. Crate `analysis` computes the least received in windows, and the lines below it.

mod findings;
mod page;
mod picture;
mod reaction;
mod rows;
mod table;
mod tried;

pub use page::supply_html;
pub use picture::supply_figures;
pub use table::supply_table;

use record::supply::SupplyPoint;

use text::units::{percent, time};

/// A line below the supply: `29.1 % after 86.2 ms`.
fn line(point: &SupplyPoint) -> String {
    let rate = point.supplied as f64 / point.per.max(1) as f64;
    format!("{} after {}", percent(rate), time(point.delay_ns as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_lines_have_three_digits() {
        assert_eq!(
            [0.3, 0.0999, 0.09, 1.0].map(percent),
            ["30.0 %", "9.99 %", "9.00 %", "100 %"]
        );
        let point = SupplyPoint {
            supplied: 291_000,
            per: 1_000_000,
            delay_ns: 86_200_000,
        };
        assert_eq!(line(&point), "29.1 % after 86.2 ms");
    }
}
