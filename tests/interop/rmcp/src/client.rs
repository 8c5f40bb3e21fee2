//! Calls `plan`, answers what it knows, and is content only with the right text after exactly two questions.

use std::{
    process::{ExitCode, Stdio},
    sync::{Arc, Mutex},
};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
        ElicitationAction, Implementation, ProtocolVersion,
    },
    service::{RequestContext, RunningService},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};

use crate::Fallible;

pub async fn over_http(url: &str) -> Fallible<ExitCode> {
    let traveller = Traveller::default();
    let asked = Arc::clone(&traveller.asked);
    let transport = StreamableHttpClientTransport::from_uri(url.to_owned());
    call(traveller.serve_with_lifecycle(transport, modern()).await?, asked).await
}

pub async fn over_stdio(program: &str, arguments: &[&str]) -> Fallible<ExitCode> {
    let traveller = Traveller::default();
    let asked = Arc::clone(&traveller.asked);
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stderr(Stdio::inherit());
    call(traveller.serve_with_lifecycle(TokioChildProcess::new(command)?, modern()).await?, asked).await
}

/// Without this the SDK opens with `initialize`, and the peer is never asked in the modern way.
fn modern() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

async fn call(
    running: RunningService<RoleClient, Traveller>,
    asked: Arc<Mutex<Vec<String>>>,
) -> Fallible<ExitCode> {
    let arguments = json!({"city": "Lisbon"}).as_object().cloned().unwrap_or_default();
    let result = running.call_tool(CallToolRequestParams::new("plan").with_arguments(arguments)).await?;
    let text = result.content.first().and_then(|block| Some(block.as_text()?.text.clone()));
    let questions = asked.lock().map_err(|_| "poisoned")?.clone();
    let version = running.peer_info().map(|info| info.protocol_version.to_string());
    println!("{}", json!({"text": text, "questions": questions, "version": version}));
    let content = text.as_deref() == Some("Lisbon, 3 days, slow") && questions == ["days", "pace"];
    running.cancel().await?;
    Ok(if content { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[derive(Clone, Default)]
struct Traveller {
    asked: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for Traveller {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("rmcp-peer", "0"))
            .with_protocol_version(ProtocolVersion::V_2026_07_28)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request =
            serde_json::to_value(request).map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
        let (name, answer) = answer_to(&request);
        if let Ok(mut asked) = self.asked.lock() {
            asked.push(name.to_owned());
        }
        Ok(match answer {
            Some(answer) => ElicitResult::new(ElicitationAction::Accept).with_content(answer),
            None => ElicitResult::new(ElicitationAction::Decline),
        })
    }
}

/// The pace is told only to a server that has understood the first answer.
fn answer_to(request: &Value) -> (&'static str, Option<Value>) {
    let wants = |name: &str| request["requestedSchema"]["properties"].get(name).is_some();
    let names_the_days = request["message"].as_str().is_some_and(|message| message.contains('3'));
    if wants("days") {
        ("days", Some(json!({"days": 3})))
    } else if wants("pace") {
        ("pace", names_the_days.then(|| json!({"pace": "slow"})))
    } else {
        ("unknown", None)
    }
}
