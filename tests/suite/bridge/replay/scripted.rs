//! Tools of all shapes, run at whichever process a retry happens to reach (G-48).

use std::collections::BTreeMap;

use super::*;

/// Small numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// G-48: whatever a tool asks, in steps of one or several questions, some of them the same: its last run hears, for each
/// question, the answers that were given to it, in their order, and none twice.
#[test]
fn every_question_hears_its_own_answers_g48() {
    let (mut most, mut twice) = (0, 0);
    for seed in 0..200 {
        let mut dice = Dice(seed);
        let mut worlds = [3, 4, 5].map(|seed| World::seeded(replaying(Transport::Pipe), seed));
        let steps: Vec<Vec<u64>> =
            (0..dice.below(5)).map(|_| (0..=dice.below(3)).map(|_| dice.below(4)).collect()).collect();
        // What was given to each question, in the order of rounds and keys.
        let mut given: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
        let (mut rounds, mut answers, mut last) = (0, 0, None::<(Value, Value)>);
        'runs: loop {
            let world = &mut worlds[usize::try_from(dice.below(3)).unwrap()];
            let run = match &last {
                None => first(world),
                Some((result, answers)) => again(world, result, answers.clone()),
            };
            let mut heard: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
            let mut id = 0;
            for step in &steps {
                let mut open = Vec::new();
                for question in step {
                    id += 1;
                    world.up(run.link, &form(json!(id), &format!("q{question}")));
                    match &world.take()[..] {
                        [] => open.push(*question),
                        [said] => heard.entry(*question).or_default().push(said.json()["result"].take()),
                        more => panic!("{more:?}"),
                    }
                }
                if open.is_empty() {
                    continue;
                }
                let result = run.left(world, open.len());
                rounds += 1;
                let mut replies = json!({});
                for (key, question) in keys(&result).into_iter().zip(open) {
                    // Some are forgotten and asked again.
                    if dice.below(5) > 0 {
                        answers += 1;
                        let answer = match dice.below(4) {
                            0 => json!({"action": "decline"}),
                            _ => accept(&format!("{answers}")),
                        };
                        replies[key] = answer.clone();
                        given.entry(question).or_default().push(answer);
                    }
                }
                world.pass(Duration::from_secs(10));
                world.take();
                last = Some((result, replies));
                if rounds == 16 {
                    break 'runs;
                }
                continue 'runs;
            }
            assert_eq!(heard, given, "seed {seed}");
            run.ends(world);
            break;
        }
        let reruns: u64 = worlds.iter().map(|world| world.bridge.counts().rerun).sum();
        assert!(rounds == 16 || reruns == rounds, "seed {seed}: {reruns} runs after {rounds} rounds");
        most = most.max(rounds);
        twice += usize::from(given.values().any(|answers| answers.len() > 1));
    }
    // The plans were worth it.
    assert!(most > 3 && twice > 50, "{most} rounds, {twice} plans with a question that comes twice");
}
