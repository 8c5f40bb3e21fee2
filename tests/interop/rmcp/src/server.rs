//! Tool `plan`: asks for the days, then, naming them, for the pace.

use std::sync::Arc;

use rmcp::{
    ErrorData, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest,
        ElicitRequestParams, InputRequest, InputRequests, InputRequiredResult, ListToolsResult,
        PaginatedRequestParams, ProtocolVersion, RequestStateCodec, ServerCapabilities, ServerConfig, Tool,
    },
    service::{RequestContext, RoleServer},
    transport::{
        StreamableHttpServerConfig, StreamableHttpService, stdio,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Fallible;

pub async fn over_stdio() -> Fallible<()> {
    Planner::new()?.serve(stdio()).await?.waiting().await?;
    Ok(())
}

pub async fn over_http() -> Fallible<()> {
    let planner = Planner::new()?;
    let service = StreamableHttpService::new(
        move || Ok(planner.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}

/// What travels in `requestState` from round to round.
#[derive(Serialize, Deserialize)]
struct Trip {
    city: String,
    days: Option<i64>,
}

#[derive(Clone)]
struct Planner {
    codec: RequestStateCodec,
}

impl Planner {
    fn new() -> Fallible<Self> {
        let codec = RequestStateCodec::try_new(b"a fixed key: this peer protects nobody".to_vec())?;
        Ok(Self { codec })
    }

    fn ask(&self, trip: &Trip) -> Result<CallToolResponse, ErrorData> {
        let (key, message, property) = match trip.days {
            None => {
                ("days", format!("How many days in {}?", trip.city), json!({"days": {"type": "integer"}}))
            }
            Some(days) => (
                "pace",
                format!("At which pace do you want to spend {days} days?"),
                json!({"pace": {"type": "string", "enum": ["slow", "fast"]}}),
            ),
        };
        let schema = json!({"type": "object", "properties": property, "required": [key]});
        let form = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message,
            requested_schema: serde_json::from_value(schema).map_err(internal)?,
        };
        let mut asks = InputRequests::new();
        asks.insert(key.to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)));
        let state = self.codec.seal_json(trip).map_err(internal)?;
        Ok(InputRequiredResult::new(Some(asks), Some(state)).into())
    }
}

impl ServerHandler for Planner {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.protocol_version = ProtocolVersion::V_2026_07_28;
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema =
            json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let Value::Object(schema) = schema else { unreachable!("an object was written above") };
        Ok(ListToolsResult::with_all_items(vec![Tool::new(
            "plan",
            "Plans a trip, asking twice",
            Arc::new(schema),
        )]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut trip: Trip = match &request.request_state {
            Some(state) => self
                .codec
                .open_json(state)
                .map_err(|_| ErrorData::invalid_params("requestState refused", None))?,
            None => {
                let city = request.arguments.as_ref().and_then(|arguments| arguments.get("city")?.as_str());
                Trip { city: city.unwrap_or("nowhere").to_owned(), days: None }
            }
        };
        let content =
            |key: &str| request.input_responses.as_ref()?.get(key)?.get("content")?.get(key).cloned();
        if trip.days.is_none() {
            trip.days = content("days").and_then(|days| days.as_i64());
            return self.ask(&trip);
        }
        match (trip.days, content("pace").as_ref().and_then(Value::as_str)) {
            (Some(days), Some(pace)) => {
                let text = format!("{}, {days} days, {pace}", trip.city);
                Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
            }
            _ => self.ask(&trip),
        }
    }
}

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
