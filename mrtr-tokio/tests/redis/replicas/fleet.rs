//! Replicas that are up, and those that were killed.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use tokio::process::Child;

use super::{REPLICAS, replica};

/// Three replicas, each of them in some life of its own.
pub(super) struct Fleet {
    up: Mutex<Vec<Option<Replica>>>,
    lives: AtomicUsize,
    killed: Mutex<BTreeSet<usize>>,
    turn: AtomicUsize,
}

struct Replica {
    life: usize,
    child: Child,
    port: u16,
}

impl Fleet {
    pub(super) async fn start() -> Self {
        let fleet = Self {
            up: Mutex::new((0..REPLICAS).map(|_| None).collect()),
            lives: AtomicUsize::new(0),
            killed: Mutex::default(),
            turn: AtomicUsize::new(0),
        };
        for place in 0..REPLICAS {
            fleet.revive(place).await;
        }
        fleet
    }

    async fn revive(&self, place: usize) {
        let life = self.lives.fetch_add(1, SeqCst);
        let (child, port) = replica::spawn(life).await;
        self.up.lock().unwrap()[place] = Some(Replica { life, child, port });
    }

    /// Kills what is in this place (SIGKILL), and puts another there.
    pub(super) async fn kill(&self, place: usize) {
        let victim = self.up.lock().unwrap()[place].take();
        if let Some(mut victim) = victim {
            self.killed.lock().unwrap().insert(victim.life);
            victim.child.kill().await.unwrap();
            self.revive(place).await;
        }
    }

    /// The port of the next replica that is up, by turns.
    pub(super) fn next(&self) -> Option<u16> {
        let up = self.up.lock().unwrap();
        (0..REPLICAS).find_map(|_| {
            let turn = self.turn.fetch_add(1, SeqCst) % REPLICAS;
            up[turn].as_ref().map(|replica| replica.port)
        })
    }

    /// The lives that ended with a kill.
    pub(super) fn killed(&self) -> BTreeSet<usize> {
        self.killed.lock().unwrap().clone()
    }
}
