//! The inbox's door: a socket in the file system that only its owner can open, for whoever answers questions that hosts
//! cannot show.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _},
    path::Path,
};

use mrtr_core::{
    Limits, Timestamp,
    bridge::{Bridge as Core, InboxAnswer, InboxId},
    framing::LineDecoder,
    jsonrpc::Json,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
    sync::oneshot,
};

use super::{Bridge, driver::In};

/// Opens a socket at this path that only its owner can use. What a bridge that has died left there is replaced.
///
/// # Errors
///
/// If something else is there, or a bridge that lives, or it cannot be made.
pub fn bind_inbox(path: &Path) -> io::Result<UnixListener> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Err(io::ErrorKind::AlreadyExists.into()),
        Ok(_) if std::os::unix::net::UnixStream::connect(path).is_ok() => {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        Ok(_) | Err(_) => {}
    }
    // Nobody else may open it at any moment: it is made where nobody else can look, and moved.
    let mut folder = path.as_os_str().to_owned();
    folder.push(format!(".{}", std::process::id()));
    let folder = Path::new(&folder);
    fs::DirBuilder::new().mode(0o700).create(folder)?;
    let made = folder.join("s");
    let listener = UnixListener::bind(&made).and_then(|listener| {
        fs::set_permissions(&made, fs::Permissions::from_mode(0o600))?;
        fs::rename(&made, path)?;
        Ok(listener)
    });
    let _ = fs::remove_file(&made);
    let _ = fs::remove_dir(folder);
    listener
}

/// Serves whoever connects, for as long as it is polled.
pub(super) async fn serve(bridge: &Bridge, listener: UnixListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let bridge = bridge.clone();
                tokio::spawn(async move {
                    if let Err(error) = visitor(&bridge, stream).await {
                        tracing::debug!(%error, "a visitor of the inbox has left");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a visitor of the inbox could not be let in");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

async fn visitor(bridge: &Bridge, mut stream: UnixStream) -> io::Result<()> {
    let by = format!("uid {}", stream.peer_cred()?.uid());
    let mut decoder = LineDecoder::new(bridge.limits().message_bytes);
    let mut buffer = vec![0; 16 << 10];
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        decoder.push(buffer.get(..read).unwrap_or_default());
        while let Some(line) = decoder.next() {
            let Ok(line) = line else { return Ok(()) };
            let (done, reply) = oneshot::channel();
            bridge.tell(In::Inbox { line: line.to_vec(), by: by.clone(), done });
            let Ok(mut reply) = reply.await else { return Ok(()) };
            reply.push('\n');
            stream.write_all(reply.as_bytes()).await?;
        }
    }
}

/// The reply to a line.
pub(super) fn reply(bridge: &mut Core, line: &[u8], by: &str, now: Timestamp) -> String {
    let done = handle(bridge, line, by, now).unwrap_or_else(|error| json!({"error": error}));
    done.to_string()
}

fn handle(bridge: &mut Core, line: &[u8], by: &str, now: Timestamp) -> Result<Value, String> {
    let text = std::str::from_utf8(line).map_err(|_| "not UTF-8")?;
    let request = Json::parse(text.trim(), &Limits::default()).map_err(|_| "not JSON")?;
    let op = request.get("op").and_then(Json::as_string);
    let id = || {
        let id = request.get("id").and_then(|id| id.as_str().parse().ok());
        id.map(InboxId).ok_or_else(|| String::from("`id` is missing or no number"))
    };
    let done = |answer: InboxAnswer| {
        tracing::info!(id = answer.id.0, by = %answer.by, accepted = answer.accepted, "a question in the inbox was answered");
        json!({"answered": answer.id.0, "accepted": answer.accepted})
    };
    match op.as_deref() {
        Some("list") => Ok(json!({"entries": entries(bridge)})),
        Some("answer") => {
            let answer = request.get("answer").ok_or("`answer` is missing")?;
            bridge.answer_inbox(id()?, by, answer, now).map(done).map_err(|error| error.to_string())
        }
        Some("decline") => bridge.decline_inbox(id()?, by, now).map(done).map_err(|error| error.to_string()),
        _ => Err(String::from("`op` is not list, answer or decline")),
    }
}

fn entries(bridge: &Core) -> Vec<Value> {
    let entry = |entry: mrtr_core::bridge::InboxEntry<'_>| {
        let principal = match entry.principal {
            mrtr_core::seal::Principal::Anonymous => Value::Null,
            mrtr_core::seal::Principal::Authenticated(name) => String::from_utf8_lossy(name).into(),
        };
        json!({
            "id": entry.id.0,
            "principal": principal,
            "upstream": entry.upstream,
            "target": entry.target,
            "kind": entry.kind.to_string(),
            "created": entry.created.as_unix_millis(),
            "expires": entry.expires.as_unix_millis(),
            "question": serde_json::from_str::<Value>(entry.question).unwrap_or_default(),
        })
    };
    bridge.inbox().map(entry).collect()
}
