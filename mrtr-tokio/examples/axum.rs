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

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let sealer = KeySource::Ephemeral.sealer("axum-example")?;
    let config = Config::new(Implementation::new("axum-example", "1.0"), sealer);
    let service = Service::new(Server::new(config)).tool(Tool::new("whoami", "Says who you are."), whoami)?;

    // Issuer and subject together name one principal and no other.
    let principals = FromExtension::new(|user: &User| format!("{}|{}", user.issuer, user.subject));
    let endpoint = Endpoint::new(service, principals);
    let closing = endpoint.clone();
    let app = Router::new().route_service("/mcp", endpoint).layer(middleware::from_fn(authenticate));

    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app)
        .with_graceful_shutdown(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                // Subscriptions would keep their connections open for ever.
                closing.close();
            }
        })
        .await?;
    Ok(())
}
