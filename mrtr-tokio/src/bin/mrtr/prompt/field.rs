//! A form's fields, one after the other, each checked as it is typed.

use inquire::{
    MultiSelect, Select, Text,
    list_option::ListOption,
    validator::{StringValidator, Validation},
};
use mrtr_core::{
    Limits,
    form::{Choice, Field, FieldKind, Options, Schema},
    jsonrpc::{Json, JsonKind},
};

use super::Broken;
use crate::{answers::quoted, show};

/// Field by field; the content as JSON text.
pub(super) fn fill_in(schema: &Schema) -> Result<String, Broken> {
    let mut members = Vec::new();
    for field in schema.fields() {
        if let Some(value) = fill_in_field(field)? {
            members.push(format!("{}:{value}", quoted(field.name())));
        }
    }
    let content = format!("{{{}}}", members.join(","));
    // Nothing that was checked at its field can fail here.
    let parsed =
        Json::parse(&content, &Limits::default()).map_err(|error| Broken::NotShown(error.to_string()))?;
    let cleaned = schema.validate(parsed).map_err(|invalid| Broken::NotShown(invalid.to_string()))?;
    Ok(cleaned.into_string())
}

/// The value as JSON text; nothing for an optional field that is left out.
fn fill_in_field(field: &Field) -> Result<Option<String>, Broken> {
    let label = show::line(field.label(), 200);
    let help = help(field);
    match field.kind() {
        FieldKind::String(rules) => {
            let initial = rules.default.clone().unwrap_or_default();
            let text = Text::new(&label)
                .with_help_message(&help)
                .with_initial_value(&initial)
                .with_validator(checked(field, quoted))
                .prompt()?;
            Ok((field.is_required() || !text.is_empty()).then(|| quoted(&text)))
        }
        FieldKind::Number(rules) => {
            let initial = rules.default.as_ref().map(|number| number.as_str().to_owned()).unwrap_or_default();
            let text = Text::new(&label)
                .with_help_message(&help)
                .with_initial_value(&initial)
                .with_validator(checked(field, |text| text.trim().into()))
                .prompt()?;
            let text = text.trim();
            Ok((!text.is_empty()).then(|| text.into()))
        }
        FieldKind::Boolean(rules) => {
            let all = [Some(true), Some(false), None];
            let options = all.iter().filter(|value| value.is_some() || !field.is_required());
            let options: Vec<Truth> = options.map(|value| Truth(*value)).collect();
            let start = options.iter().position(|truth| rules.default.is_some() && truth.0 == rules.default);
            let chosen = Select::new(&label, options)
                .with_help_message(&help)
                .with_starting_cursor(start.unwrap_or_default())
                .without_filtering()
                .prompt()?;
            Ok(chosen.0.map(|truth| truth.to_string()))
        }
        FieldKind::Select(rules) => {
            let mut options = picks(&rules.options);
            if !field.is_required() {
                options.push(Pick { value: None, label: String::from("(leave out)") });
            }
            let start = options.iter().position(|pick| pick.value.is_some() && pick.value == rules.default);
            let chosen = Select::new(&label, options)
                .with_help_message(&help)
                .with_starting_cursor(start.unwrap_or_default())
                .prompt()?;
            Ok(chosen.value.map(|value| quoted(&value)))
        }
        FieldKind::MultiSelect(rules) => {
            let options = picks(&rules.options);
            let default = rules.default.as_deref().unwrap_or_default();
            let chosen: Vec<usize> = (0..options.len())
                .filter(|at| {
                    options
                        .get(*at)
                        .and_then(|pick| pick.value.as_ref())
                        .is_some_and(|value| default.contains(value))
                })
                .collect();
            let owned = field.clone();
            let picked = MultiSelect::new(&label, options)
                .with_help_message(&help)
                .with_default(&chosen)
                .with_validator(move |picked: &[ListOption<&Pick>]| {
                    let values = picked.iter().filter_map(|option| option.value.value.as_deref());
                    Ok(judged(&owned, &array(values), picked.is_empty() && !owned.is_required()))
                })
                .prompt()?;
            let values: Vec<String> = picked.into_iter().filter_map(|pick| pick.value).collect();
            Ok((field.is_required() || !values.is_empty()).then(|| array(values.iter().map(String::as_str))))
        }
    }
}

#[derive(Clone, Copy)]
struct Truth(Option<bool>);

impl std::fmt::Display for Truth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Some(true) => "Yes",
            Some(false) => "No",
            None => "(leave out)",
        })
    }
}

#[derive(Clone)]
struct Pick {
    value: Option<String>,
    label: String,
}

impl std::fmt::Display for Pick {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.label)
    }
}

fn picks(options: &Options) -> Vec<Pick> {
    let pick =
        |choice: &Choice| Pick { value: Some(choice.value.clone()), label: show::line(choice.label(), 200) };
    options.choices().iter().map(pick).collect()
}

fn array<'a>(values: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", values.map(quoted).collect::<Vec<_>>().join(","))
}

/// Checks what is typed against the field's own rules.
fn checked(field: &Field, json: impl Fn(&str) -> String + Clone + 'static) -> impl StringValidator + 'static {
    let field = field.clone();
    move |text: &str| {
        let text_field = matches!(field.kind(), FieldKind::String(_));
        let left_out =
            if text_field { text.is_empty() } else { text.trim().is_empty() } && !field.is_required();
        Ok(judged(&field, &json(text), left_out))
    }
}

fn judged(field: &Field, json: &str, left_out: bool) -> Validation {
    if left_out {
        return Validation::Valid;
    }
    let number = matches!(field.kind(), FieldKind::Number(_));
    match Json::parse(json, &Limits::default()) {
        Ok(value) if number && value.kind() != JsonKind::Number => Validation::Invalid("not a number".into()),
        Ok(value) => match field.check(value) {
            Ok(()) => Validation::Valid,
            Err(problem) => Validation::Invalid(problem.into()),
        },
        Err(_) if number => Validation::Invalid("not a number".into()),
        Err(refusal) => Validation::Invalid(refusal.into()),
    }
}

fn help(field: &Field) -> String {
    let mut parts = Vec::new();
    if let Some(description) = field.description() {
        parts.push(show::line(description, 200));
    }
    if !field.is_required()
        && matches!(field.kind(), FieldKind::String(_) | FieldKind::Number(_) | FieldKind::MultiSelect(_))
    {
        parts.push(String::from("empty: left out"));
    }
    if matches!(field.kind(), FieldKind::MultiSelect(_)) {
        parts.push(String::from("space picks, enter ends"));
    }
    parts.push(String::from("Esc: decline or dismiss"));
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_values_are_judged_by_the_field() {
        let json = r#"{"type":"object","properties":{"n":{"type":"integer","minimum":1},"s":{"type":"string","minLength":2}},"required":["n"]}"#;
        let schema = Schema::read(Json::parse(json, &Limits::default()).unwrap()).unwrap();
        let (n, s) = (schema.field("n").unwrap(), schema.field("s").unwrap());
        assert_eq!(judged(n, "3", false), Validation::Valid);
        for wrong in ["0", "three", "", "1.5", "\"3\"", "1e99999999999"] {
            assert_ne!(judged(n, wrong, false), Validation::Valid, "{wrong}");
        }
        assert_ne!(judged(s, "\"a\"", false), Validation::Valid);
        assert_eq!(judged(s, "\"\"", true), Validation::Valid);
    }
}
