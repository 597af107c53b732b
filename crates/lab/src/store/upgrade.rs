//! Upgrades results of schema 1, in which gateways and stacks had plans and runs of their own forms, to the current
//! schema. The rest of the program knows no other.

use crate::planning::planned_run::SCHEMA;
use serde_json::{Map, Value, json};

/// Levels that were fields of gateways' cells, and the factors' keys.
const FIELDS: [(&str, &str); 5] = [
    ("case", "case"),
    ("mode", "mode"),
    ("connections", "connections"),
    ("bytes", "bytes"),
    ("load", "load_model"),
];

/// A plan; `subject` is the instrument's word for its subjects.
pub(crate) fn plan(plan: &mut Value, subject: &str) {
    plan["schema"] = json!(SCHEMA);
    experiment(&mut plan["experiment"], subject);
    if let Some(quick) = plan["quick"].as_bool() {
        plan["experiment"]["quick"] = json!(quick);
    }
    let mut ids = Vec::new();
    let blocks = items(&mut plan["blocks"]).flat_map(|block| items(block).collect::<Vec<_>>());
    for planned in blocks {
        run(planned, subject);
        ids.push(planned["cell"].clone());
    }
    for planned in items(&mut plan["calibration"]) {
        run(planned, subject);
        ids.push(planned["cell"].clone());
    }
    for one in items(&mut plan["cells"]) {
        cell(one, subject);
        // Its name is part of its runs' ids.
        let same = |other: &&Value| ["name", "subject", "levels"].iter().all(|key| other[*key] == one[*key]);
        if let Some(planned) = ids.iter().find(same) {
            one["id"] = planned["id"].clone();
        }
    }
    let places: Vec<Value> = items(&mut plan["cells"]).map(|cell| place(&cell["levels"])).collect();
    for rate in items(&mut plan["rates"]) {
        let of = |key: &str, level: &Value| match key {
            "mode" | "connections" | "bytes" => rate[key] == *level,
            "case" => true,
            "load_model" => level == "equal-rate",
            key => rate["factors"][key] == *level,
        };
        let found = places.iter().find(|place| {
            place.as_object().is_some_and(|place| place.iter().all(|(key, level)| of(key, level)))
        });
        rate["place"] = found.cloned().unwrap_or_else(|| json!({}));
    }
    if let Some(unable) = plan["unable"].as_object() {
        let lines = unable.iter().map(|(cell, why)| format!("{cell}: {}", why.as_str().unwrap_or_default()));
        plan["dropped"] = json!(lines.collect::<Vec<_>>());
    }
    let shared = plan["shared_locks"].as_array().cloned().unwrap_or_default();
    let remark = |cell: Value| Some((cell.as_str()?.to_owned(), json!(SHARED)));
    plan["remarks"] = Value::Object(shared.into_iter().filter_map(remark).collect());
    for key in ["calibration", "rates"] {
        if plan[key].is_null() {
            plan[key] = json!([]);
        }
    }
}

/// The remark on a lock that many threads may hold at once.
pub(crate) const SHARED: &str = "shared by readers: no bound";

/// A run, planned or measured.
pub(crate) fn run(run: &mut Value, subject: &str) {
    if let Some(block) = run["block"].as_u64() {
        run["stage"] = json!({ "block": block });
    }
    cell(&mut run["cell"], subject);
    // `b001-003-NAME`, `cal-003-NAME`.
    let name = run["id"].as_str().and_then(|id| id.splitn(3, '-').nth(2)).unwrap_or_default().to_owned();
    run["cell"]["id"] = json!(name);
    if run.get("seen").is_some() {
        // In schema 1 only the validity shows that a runner failed.
        let validity = run["validity"].as_str().unwrap_or_default();
        run["failure"] = json!(validity.strip_prefix("invalid: "));
    }
    if run.get("schema").is_some() {
        run["schema"] = json!(SCHEMA);
    }
}

fn cell(cell: &mut Value, subject: &str) {
    let mut levels = Map::new();
    if let Some(factors) = cell["factors"].as_object() {
        levels.extend(factors.clone());
    }
    if let Some(scenario) = cell["scenario"].as_object() {
        levels.extend(scenario.clone());
    }
    let fields = FIELDS.iter().filter(|(field, _)| !cell[*field].is_null());
    levels.extend(fields.map(|(field, key)| ((*key).to_owned(), cell[*field].clone())));
    *cell = json!({ "id": "", "name": cell["name"], "subject": cell[subject], "levels": levels });
}

fn experiment(experiment: &mut Value, subject: &str) {
    let Some(of) = experiment.as_object_mut() else { return };
    of.entry("instrument").or_insert_with(|| json!("gateway"));
    for old in ["targets_directory", "engines_directory"] {
        if let Some(directory) = of.remove(old) {
            of.insert("directory".into(), directory);
        }
    }
    let Some(engines) = of.remove("engines") else { return };
    of.insert("factors".into(), json!([{ "key": subject, "levels": engines }]));
    let blocks = of.remove("blocks").unwrap_or_default();
    of.insert("stop".into(), json!({ "blocks": blocks }));
    of.insert("quick".into(), json!(false));
    of.insert("calibration_runs".into(), json!(2));
    of.insert("rate_share".into(), json!(0.5));
}

/// The levels without those of the subject's own settings.
fn place(levels: &Value) -> Value {
    let levels = levels.as_object().into_iter().flatten().filter(|(key, _)| !key.starts_with("settings."));
    Value::Object(levels.map(|(key, level)| (key.clone(), level.clone())).collect())
}

fn items(list: &mut Value) -> impl Iterator<Item = &mut Value> {
    list.as_array_mut().into_iter().flatten()
}
