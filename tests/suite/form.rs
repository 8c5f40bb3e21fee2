//! Forms: R-111…R-133, R-246, R-247, BT-5, G-16, G-18…G-24, B-31, B-32, B-38, B-39, B-75…B-77, trap 32, W-17, W-18, W-22.

use mrtr_core::{
    Limits,
    form::{Invalid, Schema},
    jsonrpc::Json,
};

mod answer;
mod build;
mod derive;
#[cfg(feature = "differential")]
mod differential;
mod downgrade;
mod format;
mod laws;
mod read;
mod shapes;
mod vectors;

fn json(text: &str) -> Json<'_> {
    Json::parse(text, &Limits::default()).unwrap_or_else(|refusal| panic!("{refusal}: {text}"))
}

fn schema(text: &str) -> Schema {
    Schema::read(json(text)).unwrap_or_else(|fault| panic!("{fault}: {text}"))
}

/// A schema with one optional field, `f`.
fn one(property: &str) -> Schema {
    schema(&format!(r#"{{"type":"object","properties":{{"f":{property}}}}}"#))
}

/// The sentence about `f`, or `Ok` with what is left of the content.
fn judge(schema: &Schema, value: &str) -> Result<String, String> {
    let content = format!(r#"{{"f":{value}}}"#);
    match schema.validate(json(&content)) {
        Ok(cleaned) => Ok(cleaned.into_string()),
        Err(invalid) => Err(sentence(&invalid, "f")),
    }
}

/// The sentence of the only fault, which is about `field`.
fn sentence(invalid: &Invalid, field: &str) -> String {
    assert_eq!(invalid.faults().iter().map(|fault| fault.field.as_str()).collect::<Vec<_>>(), [field]);
    invalid.to_string().strip_prefix(&format!("{field}: ")).expect("it names the field").to_string()
}
