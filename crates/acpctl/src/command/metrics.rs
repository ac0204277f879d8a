//! `acpctl metrics`: figures and counters of the daemon.

use acpd_api::{Empty, Metrics as Figures, method};
use clap::Args;

use crate::args::Json;
use crate::error::Result;
use crate::prometheus;
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
Counters restart with the daemon. docs/recipes.md shows a timer for node_exporter.";
    "acpctl --no-spawn metrics > acpd.prom.tmp && mv acpd.prom.tmp acpd.prom" =>
        "Write a file for the textfile collector of node_exporter",
    "acpctl metrics --json" => "Print JSON",
))]
pub(super) struct Metrics {
    #[command(flatten)]
    json: Json,
}

pub(super) fn metrics(Metrics { json }: Metrics, ui: &mut Ui) -> Result {
    let metrics: Figures = ui.door().connect()?.call(method::METRICS, &Empty {})?;
    ui.show(json.json, &metrics, prometheus::text(&metrics))
}
