//! How far handlers came, noted in Redis, where it outlives whoever noted it.

use std::collections::{BTreeMap, BTreeSet};

use redis::aio::MultiplexedConnection;

use crate::plain;

/// How far a handler came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Running,
    Committing,
    Committed,
}

impl Stage {
    const ALL: [Self; 3] = [Self::Running, Self::Committing, Self::Committed];

    fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Committing => "committing",
            Self::Committed => "committed",
        }
    }
}

/// Notes that `life` of a replica came this far with the exchange `name`.
pub(super) async fn note(
    mut redis: MultiplexedConnection,
    name: &str,
    life: usize,
    stage: Stage,
) -> Result<(), redis::RedisError> {
    let mark = format!("{life} {}", stage.name());
    redis::cmd("RPUSH").arg(format!("marks:{name}")).arg(mark).exec_async(&mut redis).await
}

/// The effect that must not happen twice.
pub(super) async fn commit(mut redis: MultiplexedConnection, name: &str) -> Result<(), redis::RedisError> {
    redis::cmd("INCR").arg(format!("commit:{name}")).exec_async(&mut redis).await
}

/// What the marks say when all is over.
pub(super) struct Outcome {
    pub(super) commits: usize,
    /// Exchanges whose effect happened more than once.
    pub(super) double: Vec<String>,
    /// Exchanges of unknown outcome of which no replica was killed while it ran them or committed.
    pub(super) unexplained: Vec<String>,
    /// Handlers that were killed after their last question and before their commit.
    pub(super) killed_running: usize,
    /// Handlers that were killed in their commit.
    pub(super) killed_committing: usize,
}

impl Outcome {
    /// `killed` are lives of replicas that ended with a kill, `unknown` exchanges whose client was told so.
    pub(super) async fn read(killed: &BTreeSet<usize>, unknown: &BTreeSet<String>) -> Self {
        let mut redis = plain().await;
        let mut outcome = Self {
            commits: 0,
            double: Vec::new(),
            unexplained: Vec::new(),
            killed_running: 0,
            killed_committing: 0,
        };
        let keys: Vec<String> = redis::cmd("KEYS").arg("commit:*").query_async(&mut redis).await.unwrap();
        for key in keys {
            let count: u64 = redis::cmd("GET").arg(&key).query_async(&mut redis).await.unwrap();
            outcome.commits += 1;
            if count != 1 {
                outcome.double.push(format!("{key}: {count}"));
            }
        }
        let mut explained = BTreeSet::new();
        let keys: Vec<String> = redis::cmd("KEYS").arg("marks:*").query_async(&mut redis).await.unwrap();
        for key in keys {
            let marks: Vec<String> =
                redis::cmd("LRANGE").arg(&key).arg(0).arg(-1).query_async(&mut redis).await.unwrap();
            for (life, stage) in furthest(&marks) {
                if !killed.contains(&life) {
                    continue;
                }
                explained.insert(key["marks:".len()..].to_owned());
                match stage {
                    Stage::Running => outcome.killed_running += 1,
                    Stage::Committing => outcome.killed_committing += 1,
                    // Killed later, perhaps before it could say that it was done.
                    Stage::Committed => {}
                }
            }
        }
        outcome.unexplained = unknown.difference(&explained).cloned().collect();
        outcome
    }
}

/// How far each life came.
fn furthest(marks: &[String]) -> BTreeMap<usize, Stage> {
    let mut furthest = BTreeMap::new();
    for mark in marks {
        let (life, name) = mark.split_once(' ').unwrap();
        let stage = Stage::ALL.into_iter().find(|stage| stage.name() == name).unwrap();
        let seen = furthest.entry(life.parse().unwrap()).or_insert(stage);
        *seen = stage.max(*seen);
    }
    furthest
}
