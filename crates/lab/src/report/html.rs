//! The parts of the page, top to bottom.

use super::svg::escape;
use super::{bars, latency};
use crate::comparison::{Comparison, Verdict};
use crate::experiment::{Case, Load};
use crate::metric::Metric;
use crate::plan::{Cell, Group, Plan};
use crate::run::RunRecord;
use crate::summary::{CellSummary, Summary, by_cell, latencies};
use crate::table::{groups, labels, rows};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Colours that stay apart for most colour-blind readers and in print.
const COLOURS: [&str; 7] = ["#7b8794", "#2563eb", "#0f9b8e", "#d97706", "#b0246a", "#7c3aed", "#55771a"];

const STYLE: &str = include_str!("style.css");

/// The whole page.
pub(crate) fn render(
    plan: &Plan,
    summary: &Summary,
    records: &[RunRecord],
    settings: &[(String, String)],
) -> String {
    let page = Page { plan, summary, records };
    let mut html = String::new();
    page.header(&mut html);
    page.headline(&mut html);
    for load in [Load::EqualRate, Load::Saturated] {
        for metric in Metric::CPU {
            page.bars(&mut html, load, metric);
        }
    }
    page.latency(&mut html);
    page.tables(&mut html);
    page.comparisons(&mut html);
    page.invalid(&mut html);
    page.reproduce(&mut html);
    page.settings(&mut html, settings);
    page.machine(&mut html);
    let name = escape(&plan.experiment.name);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>{name} - Weir</title><style>\n{STYLE}</style></head>\n\
         <body><main>\n{html}</main></body></html>\n"
    )
}

struct Page<'a> {
    plan: &'a Plan,
    summary: &'a Summary,
    records: &'a [RunRecord],
}

impl Page<'_> {
    fn header(&self, html: &mut String) {
        let experiment = &self.plan.experiment;
        let (name, about) = (escape(&experiment.name), escape(&experiment.question));
        let _ = write!(html, "<header><h1>{name}</h1><p class=\"about\">{about}</p>\n<ul class=\"labels\">");
        for (index, label) in labels(self.plan, self.summary).iter().enumerate() {
            let class = if index == 0 { " class=\"loud\"" } else { "" };
            let _ = write!(html, "<li{class}>{}</li>", escape(label));
        }
        html.push_str("</ul></header>\n");
    }

    /// The comparisons that the experiment is made for: CPU per request or handshake at one equal rate.
    fn headline(&self, html: &mut String) {
        let wanted = |load: Load, metric: Metric| {
            let all = self.summary.comparisons.iter();
            all.filter(move |one| one.load == load && one.metric == metric).collect::<Vec<_>>()
        };
        for metric in Metric::CPU {
            let (equal, saturated) = (wanted(Load::EqualRate, metric), wanted(Load::Saturated, metric));
            let (found, at) =
                if equal.is_empty() { (saturated, "at saturation") } else { (equal, "at one equal rate") };
            if !found.is_empty() {
                let _ = writeln!(html, "<h2>Verdicts: {} (the gateway's), {at}</h2>", metric.title());
                self.comparison_table(html, &found);
            }
        }
    }

    fn comparison_table(&self, html: &mut String, comparisons: &[&Comparison]) {
        html.push_str(
            "<div class=\"scroll\"><table><tr><th class=\"t\">mode</th><th class=\"t\">target</th><th class=\"t\">against</th>\
             <th>ratio</th><th>interval</th><th>coverage</th><th>p, adjusted</th><th>blocks</th><th class=\"t\">verdict</th></tr>\n",
        );
        for one in comparisons {
            let (class, margin) = (verdict_class(one), self.plan.experiment.margin);
            let interval = match (one.low, one.high) {
                (Some(low), Some(high)) => format!("{low:.3} to {high:.3}"),
                _ => "-".into(),
            };
            let p_value = match one.p_adjusted.or(one.p_value) {
                Some(p_value) if one.low.is_some() => format!("{p_value:.4}"),
                _ => "-".into(),
            };
            let _ = writeln!(
                html,
                "<tr><td class=\"t\">{}</td><td class=\"t\">{}{}</td><td class=\"t\">{}{}</td><td>{}</td><td>{interval}</td>\
                 <td>{}</td><td>{p_value}</td><td>{}</td><td class=\"t wide verdict {class}\">{}</td></tr>",
                one.mode,
                self.dot(&one.target),
                escape(&one.target),
                escape(&one.baseline),
                if one.aa { " (A/A)" } else { "" },
                one.ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.3}")),
                one.coverage.map_or_else(|| "-".into(), |coverage| format!("{:.1} %", coverage * 100.0)),
                one.blocks,
                escape(&one.verdict_text(margin)),
            );
        }
        html.push_str("</table></div>\n");
    }

    fn bars(&self, html: &mut String, load: Load, metric: Metric) {
        let is_shown = |case: Case| Metric::of_load(load, case).contains(&metric);
        let cells: Vec<&CellSummary> =
            self.cells_with_gateway(load).filter(|cell| is_shown(cell.case)).collect();
        if cells.is_empty() {
            return;
        }
        let (at, note) = match load {
            Load::EqualRate => (
                "at one equal rate",
                "All targets of a mode are offered the same rate, below every target's maximum. \
                 Bars are medians over blocks, whiskers the interval of the location over blocks.",
            ),
            Load::Saturated => (
                "at saturation",
                "Each target runs as fast as the closed loop lets it, so the rates differ; the percentage is how much of \
                 its core the target used. Not to be compared with the equal rate.",
            ),
        };
        let title = metric.title();
        let _ = writeln!(html, "<h2>{title} {at}</h2><p class=\"note\">{note}</p><div class=\"grid\">");
        let reach = bars::reach(cells.iter().copied());
        let is_shown = |group: &Group| group.mode.upstream().is_some() && is_shown(group.case);
        for group in groups(self.plan).into_iter().filter(is_shown) {
            let rows = rows(self.plan, self.summary, &group);
            let bars: Vec<bars::Bar<'_>> = rows
                .iter()
                .filter_map(|(_, equal, saturated)| if load == Load::EqualRate { *equal } else { *saturated })
                .map(|cell| bars::Bar {
                    cell,
                    colour: self.colour(&cell.target),
                    again: self.is_again(&cell.target),
                })
                .collect();
            if bars.is_empty() {
                continue;
            }
            let rate = bars.iter().find_map(|bar| bar.cell.rate);
            let title = self.title(&group, rate);
            let _ = writeln!(
                html,
                "<section>{title}{}</section>",
                bars::draw(&group.mode.to_string(), &bars, reach)
            );
        }
        html.push_str("</div>\n");
    }

    fn latency(&self, html: &mut String) {
        let load = if self.plan.experiment.loads().contains(&Load::EqualRate) {
            Load::EqualRate
        } else {
            Load::Saturated
        };
        let cells = by_cell(self.plan, self.records);
        let mut charts = String::new();
        let gateway = |group: &Group| group.mode.upstream().is_some();
        let any_gateway = groups(self.plan).iter().any(gateway);
        for group in groups(self.plan).into_iter().filter(|group| gateway(group) || !any_gateway) {
            let group = Group { load, ..group.clone() };
            // Without a gateway: the least that a client can see on this machine, beside what it sees through one.
            let direct = Group { mode: group.mode.without_gateway(), ..group.clone() };
            let mut rate = None;
            let mut curves = Vec::new();
            let shown = |cell: &Cell| cell.group() == group || cell.group() == direct;
            for (cell, runs) in cells.iter().filter(|(cell, _)| shown(cell)) {
                let valid: Vec<&RunRecord> =
                    runs.iter().copied().filter(|run| run.validity.is_valid()).collect();
                if cell.group() == group {
                    rate = rate.or_else(|| valid.iter().find_map(|run| run.rate));
                }
                if let Some(latencies) = latencies(&valid) {
                    let (colour, again) = (self.colour(&cell.name), self.is_again(&cell.name));
                    curves.push(latency::Curve { name: &cell.name, latencies, colour, again });
                }
            }
            if let Some(chart) = latency::draw(&group.mode.to_string(), &curves) {
                let _ = writeln!(charts, "<section>{}{chart}</section>", self.title(&group, rate));
            }
        }
        if charts.is_empty() {
            return;
        }
        let note = match load {
            Load::EqualRate => {
                "Response times from the planned instant of each request, at the equal rate, all valid runs of a cell \
                 merged. A curve ends where fewer than ten samples lie beyond. Curves without a gateway belong to the mode \
                 with the same client side, at a rate that is equal or lower."
            }
            Load::Saturated => {
                "Response times in a closed loop at saturation: this is the queue of the connections, not what a \
                 service would see."
            }
        };
        let _ = writeln!(
            html,
            "<h2>Latency</h2><p class=\"note\">{note}</p><div class=\"grid\">\n{charts}</div>"
        );
    }

    fn tables(&self, html: &mut String) {
        html.push_str(
            "<h2>Numbers</h2><p class=\"note\">Mean, p99 and CPU at the equal rate (at saturation where the experiment has \
             no equal rate); rate, utilisation, RSS and limit at saturation. CPU is microseconds per request, or per handshake \
             where connections are made for one request or none: the gateway's own, and beside it the test server's and the \
             load engine's.</p>\n",
        );
        for group in groups(self.plan) {
            let rows = rows(self.plan, self.summary, &group);
            let rate = rows.iter().find_map(|(_, equal, _)| equal.and_then(|cell| cell.rate));
            html.push_str(&self.title(&group, rate));
            let _ = writeln!(
                html,
                "<div class=\"scroll\"><table><tr><th class=\"t\">target</th><th class=\"t\">version</th><th>{}s/s</th><th>mean us</th>\
                 <th>p99 us</th><th>errors %</th><th>CPU us<br>equal rate</th><th>CPU us<br>saturated</th><th>utili-<br>sation</th>\
                 <th>origin<br>CPU us</th><th>load<br>CPU us</th><th>RSS MiB</th><th class=\"t\">limit</th><th>valid<br>runs</th></tr>",
                group.case.unit(),
            );
            for (name, equal, saturated) in rows {
                self.row(html, name, equal, saturated);
            }
            html.push_str("</table></div>\n");
        }
    }

    fn row(
        &self,
        html: &mut String,
        name: &str,
        equal: Option<&CellSummary>,
        saturated: Option<&CellSummary>,
    ) {
        let Some(timed) = equal.or(saturated) else { return };
        let errors = [equal, saturated].into_iter().flatten().filter_map(|cell| cell.error_ratio);
        let both = || [equal, saturated].into_iter().flatten();
        let class = if self.plan.baseline.as_deref() == Some(name) { " class=\"baseline\"" } else { "" };
        let _ = writeln!(
            html,
            "<tr{class}><td class=\"t\">{}{}</td><td class=\"t\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"t\">{}</td><td>{}/{}</td></tr>",
            self.dot(name),
            escape(name),
            escape(&timed.version),
            number(saturated.and_then(CellSummary::per_second), 0),
            number(timed.mean_us, 0),
            number(timed.p99_us, 0),
            number(errors.reduce(f64::max).map(|ratio| ratio * 100.0), 2),
            number(equal.and_then(CellSummary::cpu_us), 1),
            number(saturated.and_then(CellSummary::cpu_us), 1),
            number(saturated.and_then(|cell| cell.utilisation), 2),
            number(timed.origin_cpu_us(), 1),
            number(timed.load_cpu_us(), 1),
            number(saturated.or(equal).and_then(|cell| cell.rss_kib).map(|kib| kib / 1024.0), 1),
            saturated.and_then(|cell| cell.limit).map_or_else(|| "-".into(), |limit| limit.to_string()),
            both().map(|cell| cell.blocks).sum::<u32>(),
            both().map(|cell| cell.blocks + cell.invalid_runs).sum::<u32>(),
        );
    }

    fn comparisons(&self, html: &mut String) {
        if self.summary.comparisons.is_empty() {
            return;
        }
        html.push_str("<h2>All comparisons</h2>\n");
        let mut families: BTreeMap<(Load, Metric), Vec<&Comparison>> = BTreeMap::new();
        for comparison in &self.summary.comparisons {
            families.entry((comparison.load, comparison.metric)).or_default().push(comparison);
        }
        for ((load, metric), family) in families {
            let _ = writeln!(html, "<details><summary>{}, {load}</summary>", metric.title());
            self.comparison_table(html, &family);
            html.push_str("</details>\n");
        }
    }

    fn invalid(&self, html: &mut String) {
        let invalid: Vec<&RunRecord> = self.records.iter().filter(|run| !run.validity.is_valid()).collect();
        let _ = writeln!(html, "<h2>Invalid runs</h2>");
        if invalid.is_empty() {
            html.push_str("<p class=\"note\">None.</p>\n");
            return;
        }
        html.push_str("<p class=\"note\">Kept in <code>runs/</code> and in no number above.</p>\n");
        html.push_str("<table><tr><th class=\"t\">run</th><th class=\"t\">why</th></tr>\n");
        for run in invalid {
            let (id, why) = (escape(&run.run.id), escape(&run.validity.to_string()));
            let _ = writeln!(
                html,
                "<tr><td class=\"t\"><code>{id}</code></td><td class=\"t wide\">{why}</td></tr>"
            );
        }
        html.push_str("</table>\n");
    }

    fn reproduce(&self, html: &mut String) {
        html.push_str(
            "<h2>Reproduce a cell</h2><p class=\"note\">One run of a cell, and the commands that its last run was made of.</p>\n",
        );
        for (cell, runs) in by_cell(self.plan, self.records) {
            let rate = self.plan.rate(cell);
            let _ =
                write!(html, "<details><summary><code>{}</code></summary><pre>", escape(&cell.to_string()));
            html.push_str(&escape(&self.command(cell, rate)));
            for process in runs.last().iter().flat_map(|run| &run.observation.processes) {
                let cores = crate::placement::list(&process.cores);
                let _ = write!(html, "\n\n# {} on core {cores}\n", process.role);
                let words: Vec<String> = process.command.iter().map(|word| quote(word)).collect();
                html.push_str(&escape(&words.join(" ")));
            }
            html.push_str("</pre></details>\n");
        }
    }

    fn command(&self, cell: &Cell, rate: Option<f64>) -> String {
        let mut words = vec!["weir run".to_owned(), self.plan.file.display().to_string()];
        words.extend(self.plan.arguments.iter().map(|word| quote(word)));
        let Cell { target, mode, connections, bytes, load, .. } = cell;
        let only = format!("target={target},mode={mode},load={load},connections={connections},bytes={bytes}");
        words.extend(["--only".into(), format!("'{only}'")]);
        if let Some(rate) = rate {
            words.push(format!("--set rate={rate:?}"));
        }
        words.push("--blocks 1".into());
        words.join(" ")
    }

    fn settings(&self, html: &mut String, settings: &[(String, String)]) {
        html.push_str("<h2>Settings of the targets</h2>\n");
        for (name, about) in &self.summary.machine.about {
            let title = self.summary.machine.titles.get(name).map_or(name.as_str(), String::as_str);
            let version = self.summary.machine.versions.get(name).map_or("", String::as_str);
            let (title, version, about) = (escape(title), escape(version), escape(about));
            let _ = writeln!(html, "<h3>{title} <small>{version}</small></h3><p class=\"note\">{about}</p>");
            for (file, text) in settings.iter().filter(|(file, _)| file.split('.').next() == Some(name)) {
                let (file, text) = (escape(file.trim_end_matches(".txt")), escape(text));
                let _ = writeln!(
                    html,
                    "<details><summary><code>{file}</code></summary><pre>{text}</pre></details>"
                );
            }
        }
    }

    fn machine(&self, html: &mut String) {
        let machine = &self.summary.machine;
        let experiment = &self.plan.experiment;
        let Ok(conditions) = experiment.any_conditions() else { return };
        let _ = writeln!(
            html,
            "<h2>Machine and method</h2><table>\
             <tr><td class=\"t\">processor</td><td class=\"t wide\">{} ({} cores usable{}; {})</td></tr>\
             <tr><td class=\"t\">kernel, memory</td><td class=\"t wide\">{}, {:.1} GiB</td></tr>\
             <tr><td class=\"t\">TLS</td><td class=\"t wide\">{} {}, {}, {}, {} tickets</td></tr>\
             <tr><td class=\"t\">run</td><td class=\"t wide\">fresh processes, warm-up {} ms, window {} ms, seed {}</td></tr></table>",
            escape(&machine.cpu),
            machine.cores.len(),
            if machine.is_virtual { ", virtual" } else { "" },
            escape(&machine.cpu_features.join(" ")),
            escape(&machine.kernel),
            machine.memory_kib as f64 / 1_048_576.0,
            conditions.tls.version.name(),
            conditions.tls.suite.name(),
            conditions.tls.group.name(),
            conditions.tls.certificate.signature(),
            conditions.tls.tickets,
            conditions.warmup_ms,
            conditions.window_ms,
            experiment.seed,
        );
        html.push_str(
            "<footer>Ratios are Hodges-Lehmann estimates of the per-block log ratio with exact Wilcoxon signed-rank \
             intervals; p-values are adjusted over the comparisons of one metric under one load (Benjamini and \
             Hochberg). On loopback the kernel charges the receiving side's work to the sender. What this can and \
             cannot tell: docs/METHODOLOGY.md.</footer>\n",
        );
    }

    fn title(&self, group: &Group, rate: Option<f64>) -> String {
        let rate = rate.map_or_else(String::new, |rate| format!(", {rate:.0}/s offered"));
        let mode = group.mode;
        let what = format!("{}, {group}{rate}", mode.describe());
        format!("<h3>{mode} <small>{what}</small></h3>\n")
    }

    fn cells_with_gateway(&self, load: Load) -> impl Iterator<Item = &CellSummary> {
        self.summary.cells.iter().filter(move |cell| cell.load == load && cell.mode.upstream().is_some())
    }

    /// A target's colour is its place in the experiment; the second of the A/A pair has its target's.
    fn colour(&self, name: &str) -> &'static str {
        let targets = self.plan.experiment.targets();
        let cell = self.plan.cells.iter().find(|cell| cell.name == name);
        let place = cell.and_then(|cell| targets.iter().position(|target| *target == cell.target));
        COLOURS[place.unwrap_or(0) % COLOURS.len()]
    }

    fn is_again(&self, name: &str) -> bool {
        self.plan.cells.iter().any(|cell| cell.name == name && cell.target != name)
    }

    fn dot(&self, name: &str) -> String {
        let opacity = if self.is_again(name) { "0.45" } else { "1" };
        format!("<span class=\"dot\" style=\"background:{};opacity:{opacity}\"></span>", self.colour(name))
    }
}

fn verdict_class(comparison: &Comparison) -> &'static str {
    match (comparison.verdict, comparison.ratio) {
        (Verdict::Different, Some(ratio)) if (ratio < 1.0) != comparison.metric.is_rate() => "better",
        (Verdict::Different, _) => "worse",
        (Verdict::Equivalent, _) => "equivalent",
        (Verdict::Undecided, _) => "undecided",
    }
}

/// A word for a shell.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.digits$}"))
}
