//! What a session says besides answers: progress, logs, changes, pings.

use mrtr_core::{
    catalog::Change,
    handler::{Ctx, ToolResult},
    wire::LogLevel,
};
use mrtr_tests::legacy::{Client, text};
use serde_json::json;

use super::{NEWEST, calls::rich, client, n, number};

/// progress under the token of the call; log messages from the level that the session has set, also
/// while the call runs; none before.
#[test]
fn notifications_follow_token_and_level_r244() {
    let mut client = client(|ctx: Ctx| async move {
        ctx.progress(1.0, Some(4.0), Some("on the way"));
        ctx.log(LogLevel::Error, "first");
        number(&ctx, "a").await?;
        ctx.log(LogLevel::Info, "second");
        ctx.log(LogLevel::Error, "third");
        ctx.progress(0.5, None, None);
        ctx.progress(2.0, None, None);
        Ok(ToolResult::text("done"))
    });
    client.start("tools/call", json!({"name": "t", "_meta": {"progressToken": 7}}));
    let said = client.drain();
    assert_eq!(said.len(), 2);
    assert_eq!(
        said[0]["params"],
        json!({"progressToken": 7, "progress": 1, "total": 4, "message": "on the way"})
    );
    assert_eq!(client.request("logging/setLevel", json!({"level": "warning"}))["result"], json!({}));
    assert_eq!(client.request("logging/setLevel", json!({"level": "loud"}))["error"]["code"], -32602);
    client.answer(&said[1], n(1));
    let said = client.drain();
    assert_eq!(said[0]["params"], json!({"level": "error", "data": "third"}));
    assert_eq!(said[1]["params"], json!({"progressToken": 7, "progress": 2}));
    assert_eq!(text(&said[2]), "done");
}

/// ping both ways.
#[test]
fn ping_both_ways_r244() {
    let mut client = client(|_: Ctx| async { Ok(ToolResult::text("")) });
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    assert!(client.session.ping());
    let ping = client.only();
    assert_eq!((&ping["method"], client.session.unanswered_pings()), (&json!("ping"), 1));
    client.answer(&ping, json!({}));
    assert_eq!(client.session.unanswered_pings(), 0);
}

/// changes, and resources to those who have subscribed to them.
#[test]
fn changes_are_announced_r244() {
    let mut client = Client::new(rich(), NEWEST, json!({}));
    assert!(client.session.changed(&Change::Tools));
    assert!(!client.session.changed(&Change::Resource("r:x".into())));
    assert_eq!(client.request("resources/subscribe", json!({"uri": "r:x"}))["result"], json!({}));
    assert_eq!(client.request("resources/subscribe", json!({"uri": "r:q"}))["error"]["code"], -32002);
    assert!(client.session.changed(&Change::Resource("r:x".into())));
    assert_eq!(client.request("resources/unsubscribe", json!({"uri": "r:x"}))["result"], json!({}));
    assert!(!client.session.changed(&Change::Resource("r:x".into())));
    let said = client.drain();
    assert_eq!(said.len(), 2);
    assert_eq!(said[0]["method"], "notifications/tools/list_changed");
    assert_eq!(
        (&said[1]["method"], &said[1]["params"]),
        (&json!("notifications/resources/updated"), &json!({"uri": "r:x"}))
    );
}
