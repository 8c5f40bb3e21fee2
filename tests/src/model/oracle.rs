//! What an exchange with a random program must come to, evaluated directly and kept alive between requests.

use std::collections::BTreeMap;

use mrtr_core::tape::AfterEffects;

use super::program::{
    CANCELLED, DECLINED, INVALID, Kind, Program, Question, REFUSED, UNAVAILABLE, sequence_step,
};

/// An answer as the client gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    Number(i64),
    Decline,
    Cancel,
    /// Content that does not fit (forms with fields only).
    Bad,
    /// An error instead of an answer: legacy clients only.
    Refused,
}

/// What the client can answer in one request.
#[derive(Clone, Copy, Debug)]
pub struct Able {
    pub sampling: bool,
    pub roots: bool,
    pub url: bool,
}

/// What a request must be answered with.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    Complete(i64),
    /// These keys, in this order; none for a checkpoint alone.
    Sent(Vec<String>),
    /// `-32021`.
    Missing,
    /// The third divergence.
    Unstable,
    /// Once-values were made on the path that is left.
    Effects,
}

/// The state of an open or settled question, or of a checkpoint.
#[derive(Clone, Debug)]
struct Asked {
    key: String,
    /// `None` for a checkpoint.
    kind: Option<Kind>,
    value: Option<i64>,
}

/// What became of a question in a round.
#[derive(Clone, Copy, Debug)]
enum Said {
    Value(i64),
    Bad,
    /// A url was consented to.
    Consent,
}

/// What a round was, for the case that a question in it turns out to be another.
#[derive(Clone, Debug)]
struct Round {
    /// All as it was when the round ended, nothing settled yet.
    before: State,
    open: Vec<usize>,
    said: BTreeMap<usize, Said>,
    silent: bool,
    /// What its shaky questions were about.
    version: u64,
}

/// A tree that is being evaluated.
#[derive(Clone, Debug)]
enum Node {
    /// A question: its number once asked.
    Ask(Question, Option<usize>),
    Sequence {
        rest: Vec<Node>,
        total: i64,
    },
    Join(Vec<Result<i64, Node>>),
    Unordered {
        running: Vec<Option<Node>>,
        total: i64,
        begun: bool,
    },
    Race {
        first: Box<Node>,
        second: Box<Node>,
        won: Option<i64>,
    },
    Loop {
        question: Question,
        turns: i64,
        asked: Option<usize>,
    },
    Once {
        name: String,
        value: Option<i64>,
        child: Box<Node>,
    },
    Checkpoint {
        asked: Option<usize>,
        child: Box<Node>,
    },
}

impl Node {
    fn new(program: &Program) -> Self {
        let nodes = |children: &[Program]| children.iter().map(Self::new).collect::<Vec<_>>();
        match program {
            Program::Ask(question) => Self::Ask(question.clone(), None),
            Program::Sequence(children) => {
                let mut rest = nodes(children);
                rest.reverse();
                Self::Sequence { rest, total: 0 }
            }
            Program::Join(children) => Self::Join(nodes(children).into_iter().map(Err).collect()),
            Program::Unordered(children) => Self::Unordered {
                running: nodes(children).into_iter().map(Some).collect(),
                total: 2,
                begun: false,
            },
            Program::Race(question, child) => Self::Race {
                first: Box::new(Self::Ask(question.clone(), None)),
                second: Box::new(Self::new(child)),
                won: None,
            },
            Program::Loop(question) => Self::Loop { question: question.clone(), turns: 0, asked: None },
            Program::Once(name, child) => {
                Self::Once { name: name.clone(), value: None, child: Box::new(Self::new(child)) }
            }
            Program::Checkpoint(child) => Self::Checkpoint { asked: None, child: Box::new(Self::new(child)) },
        }
    }

    /// The lowest number among the questions in it that were settled just now.
    fn first_settled(&self, settled: &[usize]) -> Option<usize> {
        let lowest = |nodes: &mut dyn Iterator<Item = &Self>| {
            nodes.filter_map(|node| node.first_settled(settled)).min()
        };
        match self {
            Self::Ask(_, asked) | Self::Loop { asked, .. } => asked.filter(|number| settled.contains(number)),
            Self::Sequence { rest, .. } => rest.last().and_then(|node| node.first_settled(settled)),
            Self::Join(children) => lowest(&mut children.iter().filter_map(|child| child.as_ref().err())),
            Self::Unordered { running, .. } => lowest(&mut running.iter().flatten()),
            Self::Race { first, second, won: None } => lowest(&mut [&**first, &**second].into_iter()),
            // Whichever is left is awaited alone.
            Self::Race { first, second, .. } => lowest(&mut [&**first, &**second].into_iter()),
            Self::Once { child, .. } => child.first_settled(settled),
            // Once it is passed, its number is never among those that were settled just now.
            Self::Checkpoint { asked, child } => {
                asked.filter(|number| settled.contains(number)).or_else(|| child.first_settled(settled))
            }
        }
    }
}

/// What a run has come to.
#[derive(Clone, Debug)]
struct State {
    root: Node,
    asked: Vec<Asked>,
    /// Uses of the keys of loops.
    uses: BTreeMap<String, u32>,
    bad: BTreeMap<usize, u32>,
}

/// An exchange.
#[derive(Debug)]
pub struct Oracle {
    state: State,
    rounds: Vec<Round>,
    /// Once-values by name, and how many rounds were over when they were made.
    once: BTreeMap<String, (i64, usize)>,
    made: i64,
    looks: BTreeMap<String, u32>,
    early: Option<BTreeMap<String, Given>>,
    effects: AfterEffects,
    divergences: u32,
    /// Requests are held for errands, longer than any takes.
    holds: bool,
}

impl Oracle {
    /// An exchange whose first request brings these answers.
    pub fn new(program: &Program, early: BTreeMap<String, Given>, effects: AfterEffects) -> Self {
        Self {
            state: State {
                root: Node::new(program),
                asked: Vec::new(),
                uses: BTreeMap::new(),
                bad: BTreeMap::new(),
            },
            rounds: Vec::new(),
            once: BTreeMap::new(),
            made: 0,
            looks: BTreeMap::new(),
            early: Some(early),
            effects,
            divergences: 0,
            holds: false,
        }
    }

    /// The same where a request is held for errands for longer than any takes (A10).
    #[must_use]
    pub fn holding(mut self) -> Self {
        self.holds = true;
        self
    }

    /// Of what kind the question under a key is.
    pub fn kind(&self, key: &str) -> Kind {
        let asked = self.state.asked.iter().find(|asked| asked.key == key).expect("a key that was asked");
        asked.kind.expect("a question")
    }

    /// How often it has diverged.
    pub fn divergences(&self) -> u32 {
        self.divergences
    }

    /// What the next request, with these answers, must be answered with. `version`: what shaky questions are about by now.
    pub fn request(&mut self, answers: &BTreeMap<String, Given>, able: Able, version: u64) -> Expected {
        let in_hand = |state: &State, open: &[usize]| -> BTreeMap<usize, Said> {
            let given = open.iter().filter_map(|&number| {
                let asked = &state.asked[number];
                Some((number, said(asked.kind?, answers.get(&asked.key)?)))
            });
            given.collect()
        };
        let mut settled = Vec::new();
        let mut due = Vec::new();
        let changed = self.rounds.iter().position(|round| round.version != version && round.is_shaky());
        if let Some(index) = changed {
            // Everything before the question that is another one stands; of its round, what is still the same question.
            self.divergences += 1;
            if self.divergences >= 3 {
                return Expected::Unstable;
            }
            let behind = |made_in: usize| made_in > index;
            match self.effects {
                AfterEffects::Keep => {}
                AfterEffects::Drop => self.once.retain(|_, (_, made_in)| !behind(*made_in)),
                _ if self.once.values().any(|(_, made_in)| behind(*made_in)) => return Expected::Effects,
                _ => {}
            }
            let last = index + 1 == self.rounds.len();
            let mut round = self.rounds[index].clone();
            self.rounds.truncate(index);
            self.state = round.before.clone();
            let fresh = if last { in_hand(&self.state, &round.open) } else { BTreeMap::new() };
            round.said.extend(fresh);
            round.said.retain(|&number, _| round.before.asked[number].kind != Some(Kind::Shaky));
            round.version = version;
            self.end(round, last, &mut settled, &mut due);
        } else if let Some(mut round) = self.rounds.pop() {
            round.said = in_hand(&self.state, &round.open);
            self.end(round, true, &mut settled, &mut due);
        }
        loop {
            let mut root = std::mem::replace(&mut self.state.root, Node::Join(Vec::new()));
            let value = self.poll(&mut root, &settled);
            self.state.root = root;
            if let Some(value) = value {
                return Expected::Complete(value);
            }
            settled.clear();
            let open: Vec<usize> =
                (0..self.state.asked.len()).filter(|&n| self.state.asked[n].value.is_none()).collect();
            let done: Vec<usize> = due.drain(..).filter(|&number| self.looks_done(number)).collect();
            let lacking =
                |state: &State, number: usize| state.asked[number].kind.is_some_and(|kind| lacks(kind, able));
            if !done.is_empty() {
                let done = done.into_iter().map(|number| (number, Said::Value(super::program::DONE)));
                let round = self.round(&open, done.collect(), true, version);
                self.end(round, false, &mut settled, &mut due);
                continue;
            }
            let required = |number: usize| self.state.asked[number].kind == Some(Kind::RequiredRoots);
            if open.iter().any(|&number| required(number) && lacking(&self.state, number)) {
                return Expected::Missing;
            }
            let unavailable = open.iter().filter(|&&number| lacking(&self.state, number));
            let unavailable: BTreeMap<usize, Said> =
                unavailable.map(|&number| (number, Said::Value(UNAVAILABLE))).collect();
            if !unavailable.is_empty() {
                let round = self.round(&open, unavailable, true, version);
                self.end(round, false, &mut settled, &mut due);
                continue;
            }
            if let Some(early) = self.early.take() {
                let taken = open.iter().filter_map(|&number| {
                    let asked = &self.state.asked[number];
                    let kind = asked.kind.filter(|kind| !kind.is_solicited())?;
                    Some((number, said(kind, early.get(&asked.key)?)))
                });
                let taken: BTreeMap<usize, Said> = taken.collect();
                if !taken.is_empty() {
                    let round = self.round(&open, taken, true, version);
                    self.end(round, false, &mut settled, &mut due);
                    continue;
                }
            }
            let asked = open.iter().map(|&number| &self.state.asked[number]);
            let keys = asked.filter(|asked| asked.kind.is_some()).map(|asked| asked.key.clone()).collect();
            let round = self.round(&open, BTreeMap::new(), false, version);
            self.rounds.push(round);
            return Expected::Sent(keys);
        }
    }

    fn round(&self, open: &[usize], said: BTreeMap<usize, Said>, silent: bool, version: u64) -> Round {
        Round { before: self.state.clone(), open: open.to_vec(), said, silent, version }
    }

    /// Ends a round: what was said in it settles its questions. `fresh`: it was said in the request in hand.
    fn end(&mut self, round: Round, fresh: bool, settled: &mut Vec<usize>, due: &mut Vec<usize>) {
        for &number in &round.open {
            let value = match round.said.get(&number) {
                _ if self.state.asked[number].kind.is_none() => (!round.silent).then_some(0),
                None => None,
                Some(Said::Value(value)) => Some(*value),
                Some(Said::Consent) => {
                    if fresh {
                        due.push(number);
                    }
                    // No value, but whoever waits for it has a look.
                    settled.push(number);
                    None
                }
                Some(Said::Bad) => {
                    let bad = self.state.bad.entry(number).or_insert(0);
                    *bad += 1;
                    (*bad >= 3).then_some(INVALID)
                }
            };
            if value.is_some() {
                self.state.asked[number].value = value;
                settled.push(number);
            }
        }
        self.rounds.push(round);
    }

    fn looks_done(&mut self, number: usize) -> bool {
        let asked = &self.state.asked[number];
        let Some(Kind::Errand(needed)) = asked.kind else { return false };
        let looks = self.looks.entry(asked.key.clone()).or_insert(0);
        *looks += 1;
        self.holds || *looks >= needed
    }

    fn ask(&mut self, question: &Question) -> usize {
        let uses = self.state.uses.entry(question.key.clone()).or_insert(0);
        let key = if *uses == 0 { question.key.clone() } else { format!("{}#{uses}", question.key) };
        *uses += 1;
        self.state.asked.push(Asked { key, kind: Some(question.kind), value: None });
        self.state.asked.len() - 1
    }

    /// Evaluates a node as far as it gets; its value when it is done. `settled`: the questions that were just
    /// answered, in the order of their asking.
    fn poll(&mut self, node: &mut Node, settled: &[usize]) -> Option<i64> {
        match node {
            Node::Ask(question, asked) => match asked {
                Some(number) => self.state.asked[*number].value,
                None => {
                    *asked = Some(self.ask(question));
                    None
                }
            },
            Node::Sequence { rest, total } => {
                while let Some(child) = rest.last_mut() {
                    *total = sequence_step(*total, self.poll(child, settled)?);
                    rest.pop();
                }
                Some(*total)
            }
            Node::Join(children) => {
                for child in children.iter_mut() {
                    if let Err(node) = child
                        && let Some(value) = self.poll(node, settled)
                    {
                        *child = Ok(value);
                    }
                }
                let values: Option<Vec<i64>> =
                    children.iter().map(|child| child.as_ref().ok().copied()).collect();
                values.map(|values| values.into_iter().fold(1, sequence_step))
            }
            Node::Unordered { running, total, begun } => {
                // At first all in their order; then those that got an answer, in the order of the answers.
                let mut order: Vec<(usize, usize)> = running
                    .iter()
                    .enumerate()
                    .filter_map(|(index, node)| {
                        let node = node.as_ref()?;
                        let rank = if *begun { node.first_settled(settled)? } else { index };
                        Some((rank, index))
                    })
                    .collect();
                order.sort_unstable();
                *begun = true;
                for (_, index) in order {
                    let mut child = running[index].take().expect("runs");
                    match self.poll(&mut child, settled) {
                        Some(value) => *total = sequence_step(*total, value),
                        None => running[index] = Some(child),
                    }
                }
                running.iter().all(Option::is_none).then_some(*total)
            }
            Node::Race { first, second, won } => {
                if won.is_none() {
                    if let Some(value) = self.poll(first, settled) {
                        *won = Some(value + 3);
                    } else if let Some(value) = self.poll(second, settled) {
                        *won = Some(value + 4);
                        std::mem::swap(first, second);
                    }
                }
                let value = (*won)?;
                Some(sequence_step(value, self.poll(second, settled)?))
            }
            Node::Loop { question, turns, asked } => loop {
                let number = match asked {
                    Some(number) => *number,
                    None => {
                        *turns += 1;
                        let number = self.ask(question);
                        *asked = Some(number);
                        number
                    }
                };
                let value = self.state.asked[number].value?;
                if value % 3 != 0 || *turns > 3 {
                    return Some(value + *turns);
                }
                *asked = None;
            },
            Node::Once { name, value, child } => {
                let value = *value.get_or_insert_with(|| {
                    let segment = self.rounds.len();
                    let made = self.once.entry(name.clone()).or_insert_with(|| {
                        self.made += 1;
                        (self.made - 1, segment)
                    });
                    made.0
                });
                Some(sequence_step(value, self.poll(child, settled)?))
            }
            Node::Checkpoint { asked, child } => {
                let number = *asked.get_or_insert_with(|| {
                    self.state.asked.push(Asked { key: String::new(), kind: None, value: None });
                    self.state.asked.len() - 1
                });
                self.state.asked[number].value?;
                self.poll(child, settled)
            }
        }
    }
}

impl Round {
    fn is_shaky(&self) -> bool {
        self.open.iter().any(|&number| self.before.asked[number].kind == Some(Kind::Shaky))
    }
}

fn lacks(kind: Kind, able: Able) -> bool {
    match kind {
        Kind::OptionalSampling => !able.sampling,
        Kind::OptionalRoots | Kind::RequiredRoots => !able.roots,
        Kind::Errand(_) => !able.url,
        Kind::Form | Kind::Solicited | Kind::Confirm | Kind::Kept | Kind::Shaky => false,
    }
}

/// What an answer says to a question of its kind.
fn said(kind: Kind, given: &Given) -> Said {
    match given {
        Given::Number(_) if matches!(kind, Kind::Errand(_)) => Said::Consent,
        Given::Number(number) => Said::Value(kind.value(*number)),
        Given::Decline => Said::Value(DECLINED),
        Given::Cancel => Said::Value(CANCELLED),
        Given::Refused => Said::Value(REFUSED),
        Given::Bad => Said::Bad,
    }
}
