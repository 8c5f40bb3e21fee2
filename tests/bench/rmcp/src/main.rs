//! The exchange of `tests/src/exchange.rs` as rmcp does it: a call, an interim result with one question and a sealed
//! state, the answer, the retry, the result; both roles in one process and one thread, over the SDK's transport for
//! byte streams on a pipe in memory, which is the nearest that it has to bytes in and bytes out.
//!
//! Prints nanoseconds of an exchange (the median of many batches), and how often it allocates.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use rmcp::{
    ClientHandler, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
        ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, Implementation,
        InitializeRequestParams, InitializeResult, InputRequest, InputRequests, InputRequiredResult,
        ProtocolVersion, RequestStateCodec, SealOptions, ServerCapabilities, ServerConfig,
    },
    service::{RequestContext, RoleClient, RoleServer, RunningService, serve_directly},
};
use serde_json::json;

const SEALED_FOR: &[u8] = b"user:alice|tools/call:greet";

struct Greeter {
    codec: RequestStateCodec,
}

impl ServerHandler for Greeter {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.protocol_version = ProtocolVersion::V_2026_07_28;
        info
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let refused = |what: &'static str| ErrorData::invalid_params(what, None);
        let Some(state) = request.request_state.as_deref() else {
            let options = SealOptions::new().associated_data(SEALED_FOR).ttl(Duration::from_secs(600));
            let state = self.codec.seal_json_with(&json!({"step": 1}), &options);
            let mut asks = InputRequests::new();
            asks.insert("answer".into(), question());
            return Ok(InputRequiredResult::new(Some(asks), Some(state.expect("it can be sealed"))).into());
        };
        let state: serde_json::Value =
            self.codec.open_json_with(state, SEALED_FOR).map_err(|_| refused("the state is refused"))?;
        let answer = request.input_responses.as_ref().and_then(|given| given.get("answer"));
        let name =
            answer.and_then(|answer| answer["content"]["name"].as_str()).ok_or(refused("no answer"))?;
        assert_eq!(state["step"], 1);
        Ok(CallToolResult::success(vec![ContentBlock::text(format!("hi {name}"))]).into())
    }
}

fn question() -> InputRequest {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    InputRequest::Elicitation(ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: "What is your name?".into(),
        requested_schema: serde_json::from_value(schema).expect("a valid schema"),
    }))
}

struct Person;

impl ClientHandler for Person {
    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"name": "Ferris"})))
    }
}

fn connect() -> (RunningService<RoleClient, Person>, RunningService<RoleServer, Greeter>) {
    let (server_end, client_end) = tokio::io::duplex(64 * 1024);
    let key = b"0123456789abcdef0123456789abcdef".as_slice();
    let codec = RequestStateCodec::new_with_keyring("k1", [("k1", key)]).expect("a valid key");
    let client = InitializeRequestParams::new(
        ClientCapabilities::builder().enable_elicitation().build(),
        Implementation::new("bench-client", "1"),
    )
    .with_protocol_version(ProtocolVersion::V_2026_07_28);
    let mut server = InitializeResult::new(ServerCapabilities::builder().enable_tools().build());
    server.protocol_version = ProtocolVersion::V_2026_07_28;
    let serving = serve_directly::<RoleServer, _, _, _, _>(Greeter { codec }, server_end, Some(client));
    (serve_directly::<RoleClient, _, _, _, _>(Person, client_end, Some(server.into())), serving)
}

async fn exchange(client: &RunningService<RoleClient, Person>) {
    let arguments = json!({"greeting": "hello"}).as_object().expect("an object").clone();
    let result = client.call_tool(CallToolRequestParams::new("greet").with_arguments(arguments)).await;
    black_box(result.expect("the call completes"));
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (client, _server) = runtime.block_on(async { connect() });
    let run = |count: u32| {
        runtime.block_on(async {
            for _ in 0..count {
                exchange(&client).await;
            }
        });
    };
    run(2_000);
    // Batches of a millisecond or two, as in mrtr's bench: few of them are interrupted.
    const BATCH: u32 = 20;
    let mut each: Vec<f64> = (0..501)
        .map(|_| {
            let start = Instant::now();
            run(BATCH);
            start.elapsed().as_secs_f64() * 1e9 / f64::from(BATCH)
        })
        .collect();
    each.sort_by(f64::total_cmp);
    let allocated = allocation_counter::measure(|| run(BATCH));
    println!("{:.0} {}", each[each.len() / 2], allocated.count_total / u64::from(BATCH));
}
