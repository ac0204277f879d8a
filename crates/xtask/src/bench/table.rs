//! The table of what was measured, with medians and percentiles.

use std::time::Duration;

/// One line of the table.
#[derive(Debug)]
pub(super) struct Row {
    what: &'static str,
    measured: String,
    direct: String,
    compared: String,
    bar: &'static str,
    held: Option<bool>,
}

impl Row {
    pub(super) fn new(what: &'static str, measured: impl Into<String>) -> Row {
        let empty = String::new;
        Row {
            what,
            measured: measured.into(),
            direct: empty(),
            compared: empty(),
            bar: "",
            held: None,
        }
    }

    /// The same without acpd, and how the two compare.
    pub(super) fn direct(mut self, direct: impl Into<String>, compared: impl Into<String>) -> Row {
        (self.direct, self.compared) = (direct.into(), compared.into());
        self
    }

    /// What is wanted (`docs/architecture.md`), and whether that was reached.
    pub(super) fn bar(mut self, bar: &'static str, held: bool) -> Row {
        (self.bar, self.held) = (bar, Some(held));
        self
    }
}

/// Prints rows below each other.
pub(super) fn print(rows: &[Row]) {
    let cells = |row: &Row| {
        let held = match row.held {
            None => "",
            Some(true) => "ok",
            Some(false) => "MISSED",
        };
        [row.what, &row.measured, &row.direct, &row.compared, row.bar, held].map(str::to_owned)
    };
    let head = ["what", "measured", "direct", "ratio or added", "bar", ""].map(str::to_owned);
    let table: Vec<[String; 6]> = std::iter::once(head).chain(rows.iter().map(cells)).collect();
    print_aligned(&table);
}

/// Prints a table with aligned columns.
pub(super) fn print_aligned<const N: usize>(table: &[[String; N]]) {
    let width =
        |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in table {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        println!("{}", padded.collect::<Vec<_>>().join("  ").trim_end());
    }
}

/// The value below which this part of the values lies.
pub(super) fn percentile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * part).round() as usize).copied().unwrap_or(f64::NAN)
}

/// The one in the middle.
pub(super) fn median(values: &mut [f64]) -> f64 {
    percentile(values, 0.5)
}

/// Milliseconds.
pub(super) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
