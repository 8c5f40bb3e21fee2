//! The endpoint in an axum application, behind a layer that authenticates.
//!
//! ```text
//! cargo run -p mrtr-tokio --example axum --features tower
//! mrtr call http://127.0.0.1:3000/mcp whoami --header 'Authorization: Bearer ada-token'
//! ```
//!
//! A state that was sealed for Ada is refused when Grace shows it: the layer names the principal, and every state is
//! bound to it.

#![allow(clippy::std_instead_of_core)]

use axum::{
    Router,
    extract::Request,
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
};
use mrtr_core::{
    catalog::Tool,
    handler::{Ctx, RpcError, Service, ToolResult},
    server::{Config, Server},
    wire::{Action, Implementation},
};
use mrtr_tokio::{
    keys::KeySource,
    server::{Endpoint, FromExtension},
};

/// What the auth layer has verified.
#[derive(Clone)]
struct User {
    issuer: &'static str,
    subject: &'static str,
}

/// Stands for the verification of a real token: its signature, its issuer, its audience, its expiry.
fn verify(token: &str) -> Option<User> {
    match token {
        "ada-token" => Some(User { issuer: "https://id.example.com", subject: "ada" }),
        "grace-token" => Some(User { issuer: "https://id.example.com", subject: "grace" }),
        _ => None,
    }
}

async fn authenticate(mut request: Request, next: Next) -> Response {
    let token = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    match token.and_then(verify) {
        Some(user) => {
            request.extensions_mut().insert(user);
            next.run(request).await
        }
        None => (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")]).into_response(),
    }
}

async fn whoami(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let who = String::from_utf8_lossy(ctx.principal().unwrap_or_default()).into_owned();
    match ctx.confirm("tell", format!("Say that you are {who}?")).await? {
        Action::Accept => Ok(ToolResult::text(format!("You are {who}."))),
        Action::Decline | Action::Cancel => Ok(ToolResult::text("You remain unnamed.")),
    }
}

/// The application, and the endpoint in it.
fn app() -> Result<(Router, Endpoint), Box<dyn std::error::Error>> {
    let sealer = KeySource::Ephemeral.sealer("axum-example")?;
    let config = Config::new(Implementation::new("axum-example", "1.0"), sealer);
    let service = Service::new(Server::new(config)).tool(Tool::new("whoami", "Says who you are."), whoami)?;

    // Issuer and subject together name one principal and no other.
    let principals = FromExtension::new(|user: &User| format!("{}|{}", user.issuer, user.subject));
    let endpoint = Endpoint::new(service, principals);
    let app = Router::new().route_service("/mcp", endpoint.clone()).layer(middleware::from_fn(authenticate));
    Ok((app, endpoint))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let (app, endpoint) = app()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app)
        .with_graceful_shutdown(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                // Subscriptions would keep their connections open for ever.
                endpoint.close();
            }
        })
        .await?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use axum::body::{Body, to_bytes};
    use mrtr_core::{
        Limits,
        http::{ParamHeaders, request_headers},
        jsonrpc::admit,
    };
    use serde_json::{Value, json};
    use tower_service::Service as _;

    use super::*;

    /// Sends a call with this token, and with an answer if there is a state; gives the status and the reply.
    async fn call(app: &mut Router, token: &str, state: Option<&Value>) -> (StatusCode, Value) {
        let mut params = json!({"name": "whoami", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        }});
        if let Some(state) = state {
            params["requestState"] = state.clone();
            params["inputResponses"] = json!({"tell": {"action": "accept", "content": {}}});
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let message = admit(body.as_bytes(), &Limits::default()).unwrap();
        let mut request = Request::post("/mcp").header("host", "localhost").header("authorization", token);
        for (name, value) in request_headers(&message, ParamHeaders::NONE).unwrap().iter() {
            request = request.header(name, value);
        }
        let response = app.call(request.body(Body::from(body.clone())).unwrap()).await.unwrap();
        let status = response.status();
        let bytes = to_bytes(response.into_body(), 1 << 16).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    /// R-072: the layer names the principal, and a state is good for that principal alone.
    #[tokio::test]
    async fn the_layer_names_the_principal() {
        let (mut app, _) = app().unwrap();
        assert_eq!(call(&mut app, "Bearer nobody", None).await.0, StatusCode::UNAUTHORIZED);
        let (status, asked) = call(&mut app, "Bearer ada-token", None).await;
        assert_eq!((status, &asked["result"]["resultType"]), (StatusCode::OK, &json!("input_required")));
        let state = Some(&asked["result"]["requestState"]);
        let (_, refused) = call(&mut app, "Bearer grace-token", state).await;
        assert_eq!(refused["error"]["message"], "Invalid or expired requestState");
        let (_, done) = call(&mut app, "Bearer ada-token", state).await;
        assert_eq!(done["result"]["content"][0]["text"], "You are https://id.example.com|ada.");
    }
}
