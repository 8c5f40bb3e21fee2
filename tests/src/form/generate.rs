//! Random schemas and contents from bytes, so that a property test and a fuzzer can share them and shrink them.

/// Bytes as a source of choices. When they are used up, every choice is the first.
#[derive(Debug)]
pub struct Source<'a> {
    bytes: &'a [u8],
}

impl<'a> Source<'a> {
    /// Takes the bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((first, rest)) => {
                self.bytes = rest;
                *first
            }
            None => 0,
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == chances - 1
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const NAMES: [&str; 6] = ["a", "name", "\u{e9}t\u{e9}", "with space", "\\\"", "required"];
const WORDS: [&str; 8] =
    ["", "a", "b", "Garden", "\u{1f600}", "\u{e9}", "e\u{301}", "a longer text of some words"];

/// Numbers at which floats, signed and unsigned integers, and careless parsers break. Decimals beyond 2^53 are missing:
/// the oracle rounds them.
const NUMBERS: [&str; 34] = [
    "0",
    "-0",
    "0.0",
    "1",
    "1.0",
    "10e-1",
    "2",
    "2.5",
    "3",
    "-1",
    "-1.5",
    "0.1",
    "0.10",
    "1e-1",
    "0.30000000000000004",
    "1e2",
    "100",
    "100.0",
    "99.99",
    "1E+2",
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "1.8446744073709551616e19",
    "1e30",
    "1e-30",
    "1e300",
    "-1e300",
    "123456789012345678901234567890.5",
];

const DATES: [&str; 10] = [
    "2026-07-28",
    "2024-02-29",
    "2023-02-29",
    "1900-02-29",
    "2000-02-29",
    "2026-13-01",
    "2026-00-10",
    "2026-04-31",
    "0000-02-29",
    "2026-7-28",
];
const TIMES: [&str; 14] = [
    "T12:00:00Z",
    "t12:00:00z",
    "T23:59:60Z",
    "T22:59:60Z",
    "T15:59:60.123-08:00",
    "T00:29:60+00:30",
    "T12:00:00",
    "T24:00:00Z",
    "T12:00:00.Z",
    "T12:00:00.5+02:00",
    "T12:00:00+24:00",
    "T12:00:00-23:59",
    " 12:00:00Z",
    "T12:00:00+0200",
];
const URIS: [&str; 26] = [
    "https://example.com/a?b#c",
    "http://[::1]:80/",
    "http://[::1",
    "http://[v1.a:b]/",
    "http://[1::2::3]/",
    "http://[::ffff:1.2.3.4]",
    "http://[::ffff:1.2.3.04]",
    "mailto:a@b",
    "urn:x:y",
    "a:",
    ":a",
    "1a:b",
    "a",
    "//b/c",
    "http://a b",
    "http://a/%4g",
    "http://a/%41",
    "http://a:80b/",
    "http://u:p@h:/",
    "http://u@v@h/",
    "a:b#c#d",
    "a://?q",
    "a:/b//c",
    "http://\u{e9}/",
    "x+y-z.0:p",
    "file:///etc/hosts",
];
const MAILS: [&str; 16] = [
    "ada@example.com",
    "a.b+c@x.y",
    "a..b@x.y",
    ".a@x.y",
    "a.@x.y",
    "@x.y",
    "a@",
    "a",
    "a@b@c",
    "a@-x.y",
    "a@x-.y",
    "a@x..y",
    "a@localhost",
    "a b@x.y",
    "a@x_y.z",
    "!#$%&'*/=?^_`{|}~-@x.y",
];

/// A schema and a content as JSON texts. The schema is one of our nine shapes per field, sometimes one that cannot be
/// satisfied; the content has its members, each of which may break any rule, and may lack them or have others.
pub fn pair(source: &mut Source<'_>) -> (String, String) {
    let mut properties = Vec::new();
    let mut required = Vec::new();
    let mut content = Vec::new();
    let count = source.below(NAMES.len());
    for name in NAMES.iter().take(count) {
        let (property, value) = field(source);
        properties.push(format!("{}:{property}", quote(name)));
        if source.below(2) == 0 {
            required.push(quote(name));
        }
        if !source.one_in(5) {
            content.push(format!("{}:{value}", quote(name)));
        }
    }
    if source.one_in(4) {
        content.insert(content.len() / 2, r#""unknown":{"x":[null,1e5]}"#.to_string());
    }
    let mut schema = format!(r#"{{"type":"object","properties":{{{}}}"#, properties.join(","));
    if source.one_in(3) {
        schema = schema.replacen('{', r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","#, 1);
    }
    if !required.is_empty() || source.one_in(2) {
        schema.push_str(&format!(r#","required":[{}]"#, required.join(",")));
    }
    schema.push('}');
    (schema, format!("{{{}}}", content.join(",")))
}

/// A property and a value that nearly fits it.
fn field(source: &mut Source<'_>) -> (String, String) {
    let mut words = String::new();
    if source.one_in(3) {
        words.push_str(r#","title":"T\n","description":"D""#);
    }
    if source.one_in(6) {
        words.push_str(r#","x-vendor":{"deep":[1]},"$comment":"c""#);
    }
    let (mut property, value) = match source.below(6) {
        0 => string(source),
        1 => number(source),
        2 => (r#""type":"boolean""#.to_string(), source.pick(&["true", "false"]).to_string()),
        3 => select(source),
        4 => multi_select(source),
        _ => formatted(source),
    };
    property.push_str(&words);
    if source.one_in(4) {
        let default = if source.one_in(3) { stray(source) } else { value.clone() };
        property.push_str(&format!(r#","default":{default}"#));
    }
    let value = if source.one_in(8) { stray(source) } else { value };
    (format!("{{{property}}}"), value)
}

/// A value of any type.
fn stray(source: &mut Source<'_>) -> String {
    match source.below(8) {
        0 => "null".to_string(),
        1 => source.pick(&NUMBERS).to_string(),
        2 => quote(source.pick(&WORDS)),
        3 => "[]".to_string(),
        4 => r#"["a",1]"#.to_string(),
        5 => r#"{"a":"b"}"#.to_string(),
        6 => "true".to_string(),
        _ => r#"["a", "b" , "a"]"#.to_string(),
    }
}

fn string(source: &mut Source<'_>) -> (String, String) {
    let mut property = r#""type":"string""#.to_string();
    for keyword in ["minLength", "maxLength"] {
        if source.below(2) == 0 {
            property.push_str(&format!(
                r#","{keyword}":{}"#,
                source.pick(&["0", "1", "2", "2.0", "3", "27", "28"])
            ));
        }
    }
    (property, quote(source.pick(&WORDS)))
}

fn formatted(source: &mut Source<'_>) -> (String, String) {
    let format = source.pick(&["date", "date-time", "uri", "email"]);
    let text = match format {
        "date" => source.pick(&DATES).to_string(),
        "date-time" => format!("{}{}", source.pick(&DATES), source.pick(&TIMES)),
        "uri" => mutate(source, source_text(&URIS)),
        _ => mutate(source, source_text(&MAILS)),
    };
    (format!(r#""type":"string","format":"{format}""#), quote(&text))
}

fn source_text(from: &'static [&'static str]) -> impl FnOnce(&mut Source<'_>) -> String {
    move |source| source.pick(from).to_string()
}

/// The text, or the text with one character of it doubled, dropped or replaced.
fn mutate(source: &mut Source<'_>, text: impl FnOnce(&mut Source<'_>) -> String) -> String {
    let text = text(source);
    if text.is_empty() || source.below(2) == 0 {
        return text;
    }
    let mut letters: Vec<char> = text.chars().collect();
    let at = source.below(letters.len());
    match source.below(3) {
        0 => letters.insert(at, letters[at]),
        1 => drop(letters.remove(at)),
        _ => letters[at] = source.pick(&['.', '@', ':', '/', '%', '?', '#', '-', '0', 'g', '~', '_']),
    }
    letters.into_iter().collect()
}

fn number(source: &mut Source<'_>) -> (String, String) {
    let mut property = format!(r#""type":"{}""#, source.pick(&["integer", "number"]));
    for keyword in ["minimum", "maximum"] {
        if source.below(2) == 0 {
            property.push_str(&format!(r#","{keyword}":{}"#, source.pick(&NUMBERS)));
        }
    }
    (property, source.pick(&NUMBERS).to_string())
}

/// The keywords that list the options of `values`, and whether they are for items.
fn options(source: &mut Source<'_>, items: bool) -> String {
    let values = &WORDS[..1 + source.below(WORDS.len())];
    let plain: Vec<String> = values.iter().map(|value| quote(value)).collect();
    match (source.below(3), items) {
        (0, true) => format!(r#""type":"string","enum":[{}]"#, plain.join(",")),
        (0, false) => format!(r#""enum":[{}]"#, plain.join(",")),
        (1, false) => format!(r#""enum":[{}],"enumNames":[{}]"#, plain.join(","), plain.join(",")),
        _ => {
            let titled: Vec<String> =
                plain.iter().map(|value| format!(r#"{{"const":{value},"title":"T"}}"#)).collect();
            format!(r#""{}":[{}]"#, if items { "anyOf" } else { "oneOf" }, titled.join(","))
        }
    }
}

fn select(source: &mut Source<'_>) -> (String, String) {
    let options = options(source, false);
    (format!(r#""type":"string",{options}"#), quote(source.pick(&WORDS)))
}

fn multi_select(source: &mut Source<'_>) -> (String, String) {
    let mut property = format!(r#""type":"array","items":{{{}}}"#, options(source, true));
    for keyword in ["minItems", "maxItems"] {
        if source.below(2) == 0 {
            property.push_str(&format!(r#","{keyword}":{}"#, source.pick(&["0", "1", "2", "3.0"])));
        }
    }
    let items: Vec<String> = (0..source.below(4)).map(|_| quote(source.pick(&WORDS))).collect();
    (property, format!("[{}]", items.join(" , ")))
}

fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("text is JSON")
}
