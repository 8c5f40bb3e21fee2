//! Hands each connection to the next replica; what that one leaves unsaid stays unsaid.

use std::{net::SocketAddr, sync::Arc};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};

use super::{REPLICAS, fleet::Fleet};

/// Listens on loopback, at the address, until the test is over.
pub(super) async fn start(fleet: Arc<Fleet>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let fleet = Arc::clone(&fleet);
            tokio::spawn(async move {
                // One that has just been killed refuses, and it is another one's turn.
                for _ in 0..REPLICAS {
                    let Some(port) = fleet.next() else { return };
                    if let Ok(mut replica) = TcpStream::connect(("127.0.0.1", port)).await {
                        // An error is a connection that was cut off; the client sees the same.
                        let _ = copy_bidirectional(&mut client, &mut replica).await;
                        return;
                    }
                }
            });
        }
    });
    address
}
