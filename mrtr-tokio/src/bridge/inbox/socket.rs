//! A socket in the file system that only its owner can open.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _},
    path::Path,
};

use mrtr_core::framing::LineDecoder;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
};

use super::{Bridge, ask};

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

/// Serves whoever connects, for as long as it is polled. Only the owner of the socket can, so nobody is shut out by others:
/// connections are not bounded, and one that says nothing is left alone.
pub(in crate::bridge) async fn serve(bridge: &Bridge, listener: UnixListener) {
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
            let Some(mut reply) = ask(bridge, line.to_vec(), &by).await else { return Ok(()) };
            reply.push('\n');
            stream.write_all(reply.as_bytes()).await?;
        }
    }
}
