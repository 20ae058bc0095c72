//! The three charts of a run.

use ratatui::style::Color;
use throng_base::units::{brief_count, brief_micros};
use throng_measure::Operation;

use super::chart::{Chart, Curve, Legend, Scale, round_time};
use super::model::TerminalModel;
use super::pen::{Pen, PenStyle};
use super::rows::{Row, RowLatency};

/// Returns the charts, the first one first.
pub(crate) fn charts(model: &TerminalModel) -> [Chart; 3] {
    [users(model), rates(model), latency(model)]
}

fn users(model: &TerminalModel) -> Chart {
    let of = |value: fn(&Row) -> u64| move |row: &Row| Some(value(row) as f64);
    let last = model.last();
    let legends = vec![
        legend("users", last.map(|row| count(row.users)), INTENDED),
        legend("connected", last.map(|row| count(row.connected)), FIRST),
    ];
    let curves = vec![
        curve(model, INTENDED, of(|row| row.users)),
        curve(model, FIRST, of(|row| row.connected)),
    ];
    chart(model, ["", ""], legends, curves, |most| Scale::linear(most.1))
}

fn rates(model: &TerminalModel) -> Chart {
    let shown = model.operation();
    let mut legends = Vec::new();
    let mut curves = Vec::new();
    let mut add = |operation: Operation, pen: Pen| {
        let of = move |row: &Row| rate(row, row.work.done[operation]);
        let due = move |row: &Row| rate(row, row.work.due(operation)?);
        let last = model.last();
        let text = last.and_then(of).map(brief_count);
        let due_now = last.and_then(due).map(|due| format!(" of {}", brief_count(due)));
        let text = text.map(|text| text + &due_now.unwrap_or_default());
        legends.push(legend(operation.short()[1], text, pen));
        curves.push(curve(model, INTENDED, due));
        curves.push(curve(model, pen, of));
    };
    if shown != Operation::Connect {
        add(Operation::Connect, SECOND);
    }
    add(shown, FIRST);
    chart(model, ["per second", "per s"], legends, curves, |most| Scale::linear(most.1))
}

/// Returns one value of a row's latencies.
type LatencyValue = fn(RowLatency) -> u64;

fn latency(model: &TerminalModel) -> Chart {
    let operation = model.operation();
    let of = |value: LatencyValue| {
        move |row: &Row| row.latency(operation).map(|latency| value(latency) as f64)
    };
    // A second without an answer has no latency: the last known one stays in the legend.
    let last = model.course.all().iter().rev().find_map(|row| row.latency(operation));
    let parts: [(&str, LatencyValue, Pen); 3] = [
        ("max", |latency| latency.max, THIRD),
        ("p99", |latency| latency.p99, SECOND),
        ("p50", |latency| latency.p50, FIRST),
    ];
    let mut legends = Vec::new();
    for (name, value, pen) in parts.iter().rev() {
        legends.push(legend(name, last.map(|latency| brief_micros(value(latency))), *pen));
    }
    let curves = parts.map(|(_, value, pen)| curve(model, pen, of(value)));
    let [name, _] = operation.short();
    let names = [&*format!("{name} latency"), name];
    chart(model, names, legends, curves.into(), |(least, most)| Scale::log(least, most))
}

/// Returns a chart whose scale has room for the least and the largest value.
fn chart(
    model: &TerminalModel,
    names: [&str; 2],
    legends: Vec<Legend>,
    curves: Vec<Curve>,
    scale: impl Fn((f64, f64)) -> Scale,
) -> Chart {
    let values = || curves.iter().flat_map(|curve| &curve.points).filter_map(|(_, value)| *value);
    let least = values().fold(f64::INFINITY, f64::min);
    let most = values().fold(0.0, f64::max);
    let scale = scale((if least.is_finite() { least } else { 0.0 }, most));
    let until_ms = round_time(model.now_ms, model.planned_ms);
    Chart { names: names.map(str::to_owned), legends, curves, until_ms, scale }
}

fn curve(model: &TerminalModel, pen: Pen, value: impl Fn(&Row) -> Option<f64>) -> Curve {
    let points = model.course.all().iter().map(|row| (row.at_ms, value(row))).collect();
    Curve { pen, points }
}

/// Returns a rate of the row, unless the users were leaving.
fn rate(row: &Row, n: u64) -> Option<f64> {
    row.work.per_second(n).filter(|_| !row.is_leaving)
}

fn legend(name: &'static str, value: Option<String>, pen: Pen) -> Legend {
    Legend { name, value: value.unwrap_or_else(|| "-".to_owned()), pen }
}

fn count(n: u64) -> String {
    brief_count(n as f64)
}

/// Colours that differ for the colour-blind too, on a dark and on a light ground.
const FIRST: Pen = Pen { color: Color::Cyan, style: PenStyle::Solid };
const SECOND: Pen = Pen { color: Color::Yellow, style: PenStyle::Dashed };
const THIRD: Pen = Pen { color: Color::Magenta, style: PenStyle::Dotted };
const INTENDED: Pen = Pen { color: Color::Gray, style: PenStyle::Dotted };
