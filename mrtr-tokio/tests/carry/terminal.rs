//! `mrtr call` and `mrtr demo` at a terminal.

use std::process::Command;

use mrtr_core::{
    Limits,
    catalog::Tool,
    form::{Elicited, Field, Form},
    handler::{Ctx, RpcError, Service, ToolResult},
    server::{Config, Server},
    wire::Implementation,
};
use mrtr_tokio::{
    keys::KeySource,
    server::{Anonymous, Endpoint, LegacyConfig},
};

use crate::{
    pty::{BACKSPACE, CTRL_C, DOWN, ENTER, ESC, Terminal, UP},
    support::{Running, service},
};

fn mrtr(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mrtr"));
    // Without a display, so that no browser is ever started by a test.
    command.args(args).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    command
}

#[test]
fn a_person_answers_what_a_tool_asks() {
    let mut terminal = Terminal::start(mrtr(&["demo", "plan"]));
    terminal.until("mrtr-examples asks:");
    terminal.until("How many days will you spend in Lisbon?");
    terminal.until("Days");
    // Checked at the field, with the reason.
    terminal.press("31\r");
    terminal.until("30");
    terminal.press(BACKSPACE);
    terminal.press(ENTER);
    terminal.until("At what pace would you like to see Lisbon in 3 days?");
    terminal.until("Normal: mornings and afternoons");
    // The default is under the cursor; the one below it is chosen.
    terminal.press(DOWN);
    terminal.press(ENTER);
    let (out, shown, status) = terminal.end();
    assert_eq!((out.as_str(), status.code()), ("Lisbon, 3 days, fast\n", Some(0)), "{shown}");
}

#[test]
fn what_is_not_meant_as_a_yes_is_none() {
    // The cursor is on the no.
    let mut terminal = Terminal::start(mrtr(&["demo", "delete_files"]));
    terminal.until("Your answer");
    terminal.press(ENTER);
    assert_eq!(terminal.end().0, "Nothing was deleted.\n");
    let mut terminal = Terminal::start(mrtr(&["demo", "delete_files"]));
    terminal.until("Your answer");
    terminal.press(UP);
    terminal.press(ENTER);
    assert_eq!(terminal.end().0, "Deleted 3 files.\n");
    // Esc offers what can be done.
    let mut terminal = Terminal::start(mrtr(&["demo", "plan"]));
    terminal.until("Days");
    terminal.press(ESC);
    terminal.until("What now?");
    terminal.press(DOWN);
    terminal.press(ENTER);
    assert_eq!(terminal.end().0, "Nothing was planned.\n");
}

#[test]
fn questions_of_one_round_are_asked_one_by_one() {
    let mut terminal = Terminal::start(mrtr(&["demo", "greet_two"]));
    let before = terminal.until("the first guest?");
    assert!(!before.contains("second"), "{before}");
    terminal.until("Name");
    terminal.press("Ada\r");
    terminal.until("the second guest?");
    terminal.until("Name");
    terminal.press("Eve\r");
    assert_eq!(terminal.end().0, "Hello, Ada and Eve!\n");
}

#[test]
fn ctrl_c_at_a_question_gives_the_call_up_g_31() {
    let mut terminal = Terminal::start(mrtr(&["demo", "greet_two", "--trace"]));
    terminal.until("the first guest?");
    terminal.until("Name");
    terminal.press(CTRL_C);
    let (out, shown, status) = terminal.end();
    assert_eq!((out.as_str(), status.code()), ("", Some(130)), "{shown}");
    // The other question is not put any more, and nothing was sent (R-190).
    assert!(!shown.contains("second guest?") && !shown.contains("→ 2"), "{shown}");
    assert!(shown.contains("mrtr: given up"), "{shown}");
}

/// Whoever ends the process from elsewhere ends the call, too, and the terminal is as it was.
#[test]
fn sigterm_at_a_question_gives_the_call_up_g_31() {
    let mut terminal = Terminal::start(mrtr(&["demo", "plan"]));
    terminal.until("Days");
    terminal.signal(rustix::process::Signal::TERM);
    let (out, shown, status) = terminal.end();
    assert_eq!((out.as_str(), status.code()), ("", Some(130)), "{shown}");
    assert!(shown.contains("mrtr: given up"), "{shown}");
}

#[test]
fn a_url_is_shown_whole_and_opened_only_after_a_yes_r_141() {
    // An opener that writes down what it is given.
    let folder = std::env::temp_dir().join(format!("mrtr-browser-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (opener, opened) = (folder.join("xdg-open"), folder.join("opened"));
    let script = format!("#!/bin/sh\nprintf %s \"$1\" > {}.part\nmv {0}.part {0}\n", opened.display());
    std::fs::write(&opener, script.replace("{0}", &opened.display().to_string())).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o700)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let start = || {
        let mut command = mrtr(&["demo", "connect_account"]);
        command.env("PATH", &path).env("DISPLAY", ":0").env_remove("NO_COLOR");
        let mut terminal = Terminal::start(command);
        terminal.until("mrtr-examples asks you to open a page in your browser:");
        terminal.until("Connect your calendar account?");
        let before = terminal.until("It leads to accounts.example.com.");
        let url = before.split_whitespace().find(|word| word.starts_with("https://")).unwrap().to_owned();
        assert!(url.starts_with("https://accounts.example.com/connect/calendar?exchange="), "{url}");
        // The host stands out.
        assert!(terminal.raw.contains("https://\x1b[1;7maccounts.example.com\x1b[0m/connect"));
        terminal.until("Yes: open it in the browser");
        terminal.until("Not now");
        (terminal, url)
    };
    let (mut terminal, _) = start();
    terminal.press(ENTER);
    assert_eq!(terminal.end().0, "No account was connected.\n");
    let (mut terminal, _) = start();
    terminal.press(CTRL_C);
    assert_eq!(terminal.end().2.code(), Some(130));
    assert!(!opened.exists(), "nobody agreed");
    // Two up from the no: open it. One: open it oneself.
    let (mut terminal, _) = start();
    terminal.press(UP);
    terminal.press(ENTER);
    assert_eq!(terminal.end().0, "Your calendar account is connected.\n");
    assert!(!opened.exists(), "the person opens it");
    let (mut terminal, url) = start();
    terminal.press(UP);
    terminal.press(UP);
    terminal.press(ENTER);
    assert_eq!(terminal.end().0, "Your calendar account is connected.\n");
    assert_eq!(std::fs::read_to_string(&opened).unwrap(), url);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_field_has_its_prompt_with_its_default() {
    let sealer = KeySource::Bytes(&[7; 32]).sealer("tests").unwrap();
    let config = Config::new(Implementation::new("te\u{1b}[2Jsts", "1"), sealer);
    let service = Service::new(Server::new(config)).tool(Tool::new("order", "Asks for everything."), order);
    let running = Running::start(Endpoint::new(service.unwrap(), Anonymous::new()), Default::default()).await;
    let url = running.url();
    let shown = tokio::task::spawn_blocking(move || {
        let mut terminal = Terminal::start(mrtr(&["call", &url, "order"]));
        // A name that would drive the terminal does not.
        terminal.until("te\u{fffd}[2Jsts asks:");
        terminal.until("Dish");
        terminal.until("soup");
        terminal.press(ENTER);
        terminal.until("How many");
        terminal.press(BACKSPACE);
        terminal.press("x\r");
        terminal.until("not a number");
        terminal.press(BACKSPACE);
        terminal.press("2\r");
        terminal.until("With bread");
        terminal.press(ENTER);
        terminal.until("Spices");
        terminal.until("Pepper");
        // Salt is picked already; pepper comes to it.
        terminal.press(DOWN);
        terminal.press(" ");
        terminal.press(ENTER);
        terminal.until("Note");
        terminal.press(ENTER);
        terminal.until("Send these answers?");
        terminal.press(ENTER);
        terminal.end()
    });
    let (out, shown, status) = shown.await.unwrap();
    assert_eq!(status.code(), Some(0), "{shown}");
    // As a value: another crate of the build may have serde_json keep the order of members.
    let ordered: serde_json::Value = serde_json::from_str(&out).unwrap();
    let order = serde_json::json!({"bread": true, "count": 2, "dish": "soup", "spices": ["salt", "pepper"]});
    assert_eq!(ordered, order, "{shown}");
}

async fn order(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let form = Form::builder("What will it be?")
        .field(Field::string("dish").title("Dish").default("soup").required())
        .field(Field::integer("count").title("How many").minimum(1).default(1).required())
        .field(Field::boolean("bread").title("With bread").default(true).required())
        .field(
            Field::multi_select("spices")
                .title("Spices")
                .option("salt", "Salt")
                .option("pepper", "Pepper")
                .default(["salt"])
                .required(),
        )
        .field(Field::string("note").title("Note"))
        .build()?;
    Ok(ToolResult::text(match ctx.elicit::<serde_json::Value>("order", &form).await? {
        Elicited::Accept(order) => serde_json::to_string(&order).unwrap(),
        Elicited::Decline | Elicited::Cancel => String::from("nothing"),
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_is_shown_with_its_progress_and_ctrl_c_cancels_it_r_187() {
    let (service, mut seen) = service(Limits::default());
    let running = Running::start(Endpoint::new(service, Anonymous::new()), Default::default()).await;
    let mut terminal = Terminal::start(mrtr(&["call", &running.url(), "wait"]));
    assert_eq!(seen.next().await, "waiting");
    let (out, shown, status) = tokio::task::spawn_blocking(move || {
        // It says `progress: 1`.
        terminal.until("the server is at 1");
        terminal.interrupt();
        terminal.until("cancelling");
        terminal.end()
    })
    .await
    .unwrap();
    assert_eq!((out.as_str(), status.code()), ("", Some(130)), "{shown}");
    assert_eq!(seen.next().await, "dropped");
}

/// A server that says what it is, and then only writes down what it hears.
fn mute(era: &str, log: &std::path::Path) -> String {
    let hello = match era {
        "modern" => {
            r#""resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private""#
        }
        _ => r#""protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"mute","version":"1"}"#,
    };
    let id = r#"sed 's/.*"id":\([0-9]*\).*/\1/'"#;
    format!(
        "printf 'starting\\033[2J\\n' >&2; read line; id=$(printf %s \"$line\" | {id}); \
         printf '%s\\n' '{{\"jsonrpc\":\"2.0\",\"id\":'$id',\"result\":{{{hello}}}}}'; cat > '{}'",
        log.display()
    )
}

#[test]
fn ctrl_c_cancels_on_a_pipe_in_both_eras_r_188() {
    for era in ["modern", "legacy"] {
        let log = std::env::temp_dir().join(format!("mrtr-mute-{era}-{}", std::process::id()));
        let script = mute(era, &log);
        let mut call = vec!["call", "--stdio", "tool", "--trace"];
        if era == "legacy" {
            call.extend(["--era", "legacy"]);
        }
        call.extend(["--", "sh", "-c", &script]);
        let mut terminal = Terminal::start(mrtr(&call));
        // What the server says on its standard error cannot drive the terminal.
        terminal.until("server| starting\u{fffd}[2J");
        terminal.until("tools/call");
        terminal.until("waiting for the server");
        terminal.interrupt();
        terminal.until("cancelling");
        let (out, shown, status) = terminal.end();
        assert_eq!((out.as_str(), status.code()), ("", Some(130)), "{era}: {shown}");
        let heard = std::fs::read_to_string(&log).unwrap();
        let lines: Vec<serde_json::Value> =
            heard.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let called = lines.iter().find(|line| line["method"] == "tools/call").unwrap();
        let cancelled = lines.last().unwrap();
        assert_eq!(cancelled["method"], "notifications/cancelled", "{era}: {heard}");
        assert_eq!(cancelled["params"]["requestId"], called["id"], "{era}");
        std::fs::remove_file(&log).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_before_ctrl_c_is_in_the_saved_call() {
    let sealer = KeySource::Bytes(&[7; 32]).sealer("tests").unwrap();
    let service = mrtr_tokio::example_tools::service(sealer).unwrap();
    let endpoint = Endpoint::builder(service, Anonymous::new()).legacy(LegacyConfig::default()).build();
    let running = Running::start(endpoint, Default::default()).await;
    let file = std::env::temp_dir().join(format!("mrtr-interrupted-{}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    let (url, path) = (running.url(), file.to_str().unwrap().to_owned());
    tokio::task::spawn_blocking(move || {
        let mut terminal = Terminal::start(mrtr(&["call", &url, "greet_two", "--save", &path]));
        terminal.until("the first guest?");
        terminal.until("Name");
        terminal.press("Ada\r");
        terminal.until("the second guest?");
        terminal.until("Name");
        terminal.press(CTRL_C);
        terminal.until("mrtr resume");
        assert_eq!(terminal.end().2.code(), Some(130));
        // The rest is asked the next time.
        let mut terminal = Terminal::start(mrtr(&["resume", &path]));
        let before = terminal.until("the second guest?");
        assert!(!before.contains("the first guest?"), "{before}");
        terminal.until("Name");
        terminal.press("Eve\r");
        assert_eq!(terminal.end().0, "Hello, Ada and Eve!\n");

        // The same prompts for a server of the eras with sessions; there Ctrl-C cancels the call that is held.
        let legacy = ["call", &url, "greet_two", "--era", "legacy"];
        let mut terminal = Terminal::start(mrtr(&legacy));
        terminal.until("mrtr-examples asks:");
        for (guest, name) in [("the first guest?", "Ada\r"), ("the second guest?", "Eve\r")] {
            terminal.until(guest);
            terminal.until("Name");
            terminal.press(name);
        }
        assert_eq!(terminal.end().0, "Hello, Ada and Eve!\n");
        let mut terminal = Terminal::start(mrtr(&legacy));
        terminal.until("Name");
        terminal.press(CTRL_C);
        let (out, shown, status) = terminal.end();
        assert_eq!((out.as_str(), status.code()), ("", Some(130)), "{shown}");
        assert!(!shown.contains("the second guest?"), "{shown}");
    })
    .await
    .unwrap();
    assert!(!file.exists());
}
