//! Forms built by hand: R-112…R-123, B-31, B-75, W-18, W-22.

use mrtr_core::form::{
    Draft, FIELDS_MAX, Field, FieldProblem, Form, FormError, Format, NAME_CHARS_MAX, Number, OPTIONS_MAX,
    Problem, Schema,
};

use super::json;

/// All nine shapes, byte for byte.
#[test]
fn writes_the_nine_shapes() {
    let form = Form::builder("Say \"when\"\n")
        .field(
            Field::string("text")
                .title("T")
                .description("D")
                .min_length(1)
                .max_length(9)
                .format(Format::Email)
                .default("a@b")
                .required(),
        )
        .field(Field::number("number").minimum(0.5).maximum(1.0).default(0.75_f32))
        .field(Field::integer("whole").minimum(-1).maximum(u64::MAX).default(3_u8).required())
        .field(Field::boolean("bool").default(false))
        .field(Field::select("one").choice("a").choice("b").default("b"))
        .field(Field::select("one_titled").option("a", "A").choice("b").default("a"))
        .field(
            Field::multi_select("many").choice("a").choice("b").min_items(1).max_items(2).default(["b", "a"]),
        )
        .field(Field::multi_select("many_titled").option("a", "A").option("b", "B"))
        .field(Field::select("legacy").option("a", "A").choice("b").legacy_names())
        .build()
        .unwrap();
    let requested = concat!(
        r#"{"type":"object","properties":{"#,
        r#""text":{"type":"string","title":"T","description":"D","minLength":1,"maxLength":9,"format":"email","default":"a@b"},"#,
        r#""number":{"type":"number","minimum":0.5,"maximum":1,"default":0.75},"#,
        r#""whole":{"type":"integer","minimum":-1,"maximum":18446744073709551615,"default":3},"#,
        r#""bool":{"type":"boolean","default":false},"#,
        r#""one":{"type":"string","enum":["a","b"],"default":"b"},"#,
        r#""one_titled":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"b"}],"default":"a"},"#,
        r#""many":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b"]},"default":["b","a"]},"#,
        r#""many_titled":{"type":"array","items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}},"#,
        r#""legacy":{"type":"string","enum":["a","b"],"enumNames":["A","b"]}"#,
        r#"},"required":["text","whole"]}"#,
    );
    assert_eq!(form.requested_schema().as_str(), requested);
    assert_eq!(
        form.params(),
        format!(r#"{{"mode":"form","message":"Say \"when\"\n","requestedSchema":{requested}}}"#)
    );
    // What a client reads is what the server validates by.
    let read = Schema::read(form.requested_schema()).unwrap();
    for (built, read) in form.fields().iter().zip(read.fields()) {
        assert_eq!(
            (built.name(), built.title(), built.is_required()),
            (read.name(), read.title(), read.is_required())
        );
        assert_eq!(built.default(), read.default());
    }
    let request = form.to_request();
    assert_eq!(request.message().as_deref(), Some("Say \"when\"\n"));
    assert_eq!(request.requested_schema(), Some(form.requested_schema()));
}

#[test]
fn a_form_may_have_no_fields_and_another_message() {
    let form = Form::builder("Sure?").build().unwrap();
    let params = |message| {
        format!(
            r#"{{"mode":"form","message":"{message}","requestedSchema":{{"type":"object","properties":{{}}}}}}"#
        )
    };
    assert_eq!(form.params(), params("Sure?"));
    let other = form.with_message("Really?");
    assert_eq!(other.params(), params("Really?"));
    assert_eq!(other.requested_schema(), form.requested_schema());
    assert!(other != form && other.with_message("Sure?") == form);
    assert_eq!(format!("{form:?}"), "Form(0 fields, 85 bytes)");
}

#[test]
fn a_form_can_be_put_together_in_a_loop() {
    let fields: Vec<Draft> = vec![Field::string("a").into(), Field::boolean("b").into()];
    let form = fields.into_iter().fold(Form::builder("m"), |form, field| form.field(field)).build().unwrap();
    // A field that was read can be asked again.
    let again =
        form.fields().iter().cloned().fold(Form::builder("m"), |form, field| form.field(field)).build();
    assert_eq!(again.unwrap(), form);
}

fn problem(field: impl Into<Draft>) -> FieldProblem {
    match Form::builder("m").field(field).build().unwrap_err() {
        FormError::Field { field, problem } => {
            assert!(!field.is_empty(), "the field is named");
            problem
        }
        other => panic!("{other}"),
    }
}

#[test]
fn mistakes_are_found_at_the_start() {
    use FieldProblem::{BadName, CrossedBounds, Default, DuplicateOption, NoOptions, NotFinite};
    let long = "n".repeat(NAME_CHARS_MAX);
    assert!(Form::builder("m").field(Field::string(long.as_str())).build().is_ok());
    for name in [format!("{long}n").as_str(), "__proto__", "a\nb"] {
        assert_eq!(problem(Field::string(name)), BadName);
    }
    assert_eq!(problem(Field::select("f")), NoOptions);
    assert_eq!(problem(Field::multi_select("f")), NoOptions);
    assert_eq!(problem(Field::select("f").choice("a").option("a", "A")), DuplicateOption);
    assert_eq!(problem(Field::multi_select("f").choice("a").choice("a")), DuplicateOption);
    assert_eq!(problem(Field::string("f").min_length(2).max_length(1)), CrossedBounds);
    assert_eq!(problem(Field::number("f").minimum(0.3).maximum(0.1)), CrossedBounds);
    assert_eq!(problem(Field::multi_select("f").choice("a").min_items(1).max_items(0)), CrossedBounds);
    assert_eq!(problem(Field::multi_select("f").choice("a").min_items(2)), CrossedBounds);
    assert_eq!(problem(Field::number("f").minimum(f64::NAN)), NotFinite);
    assert_eq!(problem(Field::number("f").maximum(f64::INFINITY)), NotFinite);
    assert_eq!(problem(Field::number("f").default(f32::NEG_INFINITY)), NotFinite);
    assert_eq!(problem(Field::string("f").max_length(1).default("ab")), Default(Problem::TooLong { max: 1 }));
    assert_eq!(
        problem(Field::string("f").format(Format::Date).default("x")),
        Default(Problem::Format(Format::Date))
    );
    assert!(matches!(problem(Field::integer("f").default(1.5)), Default(Problem::Type(_))));
    assert_eq!(
        problem(Field::integer("f").maximum(1).default(2)),
        Default(Problem::TooLarge { maximum: Number::from(1) })
    );
    assert_eq!(problem(Field::select("f").choice("a").default("b")), Default(Problem::NotAnOption));
    assert_eq!(problem(Field::multi_select("f").choice("a").default(["b"])), Default(Problem::NotAnOption));
    assert_eq!(
        problem(Field::multi_select("f").choice("a").max_items(1).default(["a", "a"])),
        Default(Problem::TooMany { max: 1 })
    );
    let many = (0..=OPTIONS_MAX).fold(Field::select("f"), |field, at| field.choice(at.to_string()));
    assert_eq!(problem(many), FieldProblem::TooManyOptions { limit: OPTIONS_MAX });

    let error = Form::builder("m").field(Field::string("")).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "field : the name is empty, too long, has control characters or is reserved"
    );
    let error = Form::builder("m").field(Field::string("a")).field(Field::boolean("a")).build().unwrap_err();
    assert_eq!(error.to_string(), "field a: another field has the same name");
    let error = Form::builder("m").field(Field::integer("n").maximum(3).default(4)).build().unwrap_err();
    assert_eq!(error.to_string(), "field n: the default must be at most 3");
    let fields = |count: usize| {
        (0..count).fold(Form::builder("m"), |form, at| form.field(Field::string(at.to_string())))
    };
    assert!(fields(FIELDS_MAX).build().is_ok());
    assert_eq!(fields(FIELDS_MAX + 1).build().unwrap_err(), FormError::TooManyFields { limit: FIELDS_MAX });
}

/// Checking one field is what a prompt does; it is the same judgement as that of the whole.
#[test]
fn a_field_checks_by_itself() {
    let form = Form::builder("m").field(Field::integer("n").maximum(3)).build().unwrap();
    let field = form.schema().field("n").unwrap();
    assert_eq!(field.check(json("3.0")), Ok(()));
    assert_eq!(field.check(json("4")), Err(Problem::TooLarge { maximum: 3.into() }));
}
