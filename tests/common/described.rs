//! The JSON Schema of the gateway's configuration.

use jsonschema::Validator;
use std::sync::LazyLock;

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let schema = serde_json::from_str(&weir_gateway::schema()).unwrap();
    jsonschema::draft7::new(&schema).unwrap()
});

/// Checks that the schema accepts a configuration that the gateway serves with.
pub fn assert_described(config: &str) {
    let value = serde_json::to_value(toml::from_str::<toml::Table>(config).unwrap()).unwrap();
    if let Err(error) = SCHEMA.validate(&value) {
        panic!("`weir check --schema` rejects {}: {error}\n{config}", error.instance_path());
    }
}
