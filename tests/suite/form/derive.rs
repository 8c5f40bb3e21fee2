//! Forms from Rust types: W-17, B-75.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};

use mrtr_core::form::{FieldProblem, Form, FormError, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::json;

#[derive(JsonSchema, Deserialize, Serialize, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "snake_case")]
enum Room {
    #[default]
    Garden,
    BigHall,
}

/// Which way.
#[derive(JsonSchema, Deserialize, Debug)]
enum Way {
    /// By train
    ///
    /// and then on foot
    Train,
    #[schemars(title = "By car")]
    Car,
    Walk,
}

#[derive(JsonSchema, Deserialize, Debug)]
struct Everything {
    /// Your name
    #[schemars(length(min = 1, max = 80))]
    z_name: String,
    #[schemars(title = "People", range(min = 1, max = 12))]
    people: u32,
    nick: Option<String>,
    flag: bool,
    ratio: f64,
    #[schemars(range(min = 0.5, max = 1.0))]
    share: Option<f32>,
    small: i8,
    middle: u32,
    wide: i64,
    wider: u128,
    letter: char,
    #[schemars(email)]
    email: String,
    #[schemars(url)]
    url: Option<String>,
    room: Room,
    other_room: Option<Room>,
    rooms: Vec<Room>,
    room_set: Option<BTreeSet<Room>>,
    #[schemars(length(min = 1, max = 2))]
    way_list: Vec<Way>,
    way: Way,
    maybe_way: Option<Way>,
    #[serde(default)]
    favourite: Room,
    #[serde(default = "nine")]
    nine: u8,
    #[serde(rename = "re-named")]
    renamed: bool,
}

fn nine() -> u8 {
    9
}

#[test]
fn every_kind_of_field_in_the_order_of_the_type() {
    let form = Form::of::<Everything>("All of it").unwrap();
    let rooms = r#""enum":["garden","big_hall"]"#;
    let ways = r#"[{"const":"Walk","title":"Walk"},{"const":"Train","title":"By train"},{"const":"Car","title":"By car"}]"#;
    let expected = [
        r#""z_name":{"type":"string","description":"Your name","minLength":1,"maxLength":80}"#.to_string(),
        r#""people":{"type":"integer","title":"People","minimum":1,"maximum":12}"#.to_string(),
        r#""nick":{"type":"string"}"#.to_string(),
        r#""flag":{"type":"boolean"}"#.to_string(),
        r#""ratio":{"type":"number"}"#.to_string(),
        r#""share":{"type":"number","minimum":0.5,"maximum":1}"#.to_string(),
        r#""small":{"type":"integer","minimum":-128,"maximum":127}"#.to_string(),
        r#""middle":{"type":"integer","minimum":0,"maximum":4294967295}"#.to_string(),
        r#""wide":{"type":"integer"}"#.to_string(),
        r#""wider":{"type":"integer","minimum":0}"#.to_string(),
        r#""letter":{"type":"string","minLength":1,"maxLength":1}"#.to_string(),
        r#""email":{"type":"string","format":"email"}"#.to_string(),
        r#""url":{"type":"string","format":"uri"}"#.to_string(),
        format!(r#""room":{{"type":"string",{rooms}}}"#),
        format!(r#""other_room":{{"type":"string",{rooms}}}"#),
        format!(r#""rooms":{{"type":"array","items":{{"type":"string",{rooms}}}}}"#),
        format!(r#""room_set":{{"type":"array","items":{{"type":"string",{rooms}}}}}"#),
        format!(r#""way_list":{{"type":"array","minItems":1,"maxItems":2,"items":{{"anyOf":{ways}}}}}"#),
        format!(r#""way":{{"type":"string","description":"Which way.","oneOf":{ways}}}"#),
        format!(r#""maybe_way":{{"type":"string","description":"Which way.","oneOf":{ways}}}"#),
        format!(r#""favourite":{{"type":"string",{rooms},"default":"garden"}}"#),
        r#""nine":{"type":"integer","minimum":0,"maximum":255,"default":9}"#.to_string(),
        r#""re-named":{"type":"boolean"}"#.to_string(),
    ];
    let required = concat!(
        r#"["z_name","people","flag","ratio","small","middle","wide","wider","letter","email","room","rooms","way_list","way","#,
        r#""re-named"]"#
    );
    assert_eq!(
        form.requested_schema().as_str(),
        format!(r#"{{"type":"object","properties":{{{}}},"required":{required}}}"#, expected.join(","))
    );
}

/// What validates decodes, absent options and defaults included; whole numbers however they are spelled.
#[test]
fn what_validates_decodes() {
    let form = Form::of::<Everything>("All of it").unwrap();
    let content = json(
        r#"{"z_name":"Ada","people":2.0,"flag":true,"ratio":1,"small":-1e2,"middle":0,"wide":-5,"wider":0,"letter":"x",
            "email":"a@b","room":"big_hall","rooms":["garden","garden"],"way_list":["Walk"],"way":"Train","re-named":false,
            "more":null}"#,
    );
    let decoded = form.schema().validate(content).unwrap().decode::<Everything>().unwrap();
    assert_eq!((decoded.people, decoded.small, decoded.nine, decoded.nick), (2, -100, 9, None));
    assert_eq!((decoded.room, decoded.favourite, decoded.rooms.len()), (Room::BigHall, Room::Garden, 2));
}

fn refused<T: JsonSchema>() -> (String, String) {
    match Form::of::<T>("m").unwrap_err() {
        FormError::Field { field, problem: FieldProblem::NotExpressible(what) } => (field, what.to_string()),
        other => panic!("{other}"),
    }
}

#[test]
fn a_type_that_is_no_form_fails_with_the_name_of_the_field() {
    #[derive(JsonSchema)]
    struct Inner {
        x: u8,
    }
    #[derive(JsonSchema)]
    struct Nested {
        fine: u8,
        inner: Inner,
    }
    assert_eq!(refused::<Nested>(), ("inner".into(), "a nested struct or map".into()));
    #[derive(JsonSchema)]
    struct OptionalNested {
        inner: Option<Inner>,
    }
    assert_eq!(refused::<OptionalNested>().0, "inner");
    #[derive(JsonSchema)]
    struct Mapped {
        map: BTreeMap<String, String>,
    }
    assert_eq!(refused::<Mapped>(), ("map".into(), "a nested struct or map".into()));
    #[derive(JsonSchema)]
    struct Words {
        words: Vec<String>,
    }
    assert_eq!(
        refused::<Words>(),
        ("words".into(), "a list of anything but an enum of unit variants".into())
    );
    #[derive(JsonSchema)]
    struct Numbers {
        numbers: Vec<u8>,
    }
    assert_eq!(refused::<Numbers>().0, "numbers");
    #[derive(JsonSchema)]
    struct Pair {
        pair: (u8, u8),
    }
    assert_eq!(refused::<Pair>(), ("pair".into(), "prefixItems".into()));
    #[derive(JsonSchema)]
    enum Data {
        A,
        B(u8),
    }
    #[derive(JsonSchema)]
    struct WithData {
        data: Data,
    }
    assert_eq!(refused::<WithData>(), ("data".into(), "an enum whose variants are not all text".into()));
    #[derive(JsonSchema)]
    struct Unit {
        unit: (),
    }
    assert_eq!(refused::<Unit>(), ("unit".into(), "the unit type".into()));
    #[derive(JsonSchema)]
    struct Anything {
        any: serde_json::Value,
    }
    assert_eq!(refused::<Anything>(), ("any".into(), "a value of several types".into()));
    #[derive(JsonSchema)]
    struct Pattern {
        #[schemars(regex(pattern = "^a"))]
        text: String,
    }
    assert_eq!(refused::<Pattern>(), ("text".into(), "pattern".into()));
    #[derive(JsonSchema)]
    struct Multiple {
        #[schemars(extend("multipleOf" = 5))]
        number: u8,
    }
    assert_eq!(refused::<Multiple>(), ("number".into(), "multipleOf".into()));
    #[derive(JsonSchema)]
    struct Recursive {
        again: Option<Box<Recursive>>,
    }
    assert_eq!(refused::<Recursive>().0, "again");

    let error = Form::of::<Words>("m").unwrap_err().to_string();
    assert_eq!(error, "field words: a form cannot express a list of anything but an enum of unit variants");
}

#[test]
fn a_type_that_is_no_struct_fails() {
    #[derive(JsonSchema)]
    struct Tuple(u8, u8);
    #[derive(JsonSchema)]
    struct Newtype(String);
    #[derive(JsonSchema)]
    enum Either {
        A { x: u8 },
        B { y: u8 },
    }
    for error in [
        Form::of::<Tuple>("m"),
        Form::of::<Newtype>("m"),
        Form::of::<Either>("m"),
        Form::of::<String>("m"),
        Form::of::<()>("m"),
        Form::of::<Vec<Room>>("m"),
        Form::of::<Option<Room>>("m"),
        Form::of::<BTreeMap<String, String>>("m"),
        Form::of::<serde_json::Value>("m"),
    ]
    .map(Result::unwrap_err)
    {
        assert_eq!(error, FormError::NotAStruct);
    }
    #[derive(JsonSchema)]
    struct Empty {}
    assert_eq!(Form::of::<Empty>("m").unwrap().fields().len(), 0);
}

#[test]
fn the_type_s_own_mistakes_are_found_too() {
    #[derive(JsonSchema)]
    struct Low {
        #[serde(default = "nine")]
        #[schemars(range(max = 5))]
        number: u8,
    }
    let error = Form::of::<Low>("m").unwrap_err();
    let problem = FieldProblem::Default(Problem::TooLarge { maximum: 5.into() });
    assert_eq!(error, FormError::Field { field: "number".into(), problem });
    #[derive(JsonSchema)]
    struct Crossed {
        #[schemars(length(min = 5, max = 1))]
        text: String,
    }
    let error = Form::of::<Crossed>("m").unwrap_err();
    assert_eq!(error, FormError::Field { field: "text".into(), problem: FieldProblem::CrossedBounds });
}
