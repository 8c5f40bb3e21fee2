//! What an exchange with a random program must come to, evaluated directly and kept alive between requests.

use std::collections::BTreeMap;

use super::program::{CANCELLED, DECLINED, INVALID, Kind, Program, Question, UNAVAILABLE, sequence_step};

/// An answer as the client gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    Number(i64),
    Decline,
    Cancel,
    /// Content that does not fit (forms only).
    Bad,
}

/// What the client can answer in one request.
#[derive(Clone, Copy, Debug)]
pub struct Able {
    pub sampling: bool,
    pub roots: bool,
}

/// What a request must be answered with.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    Complete(i64),
    /// These keys, in this order.
    Sent(Vec<String>),
    /// `-32021`.
    Missing,
}

/// The state of an open or settled question.
#[derive(Debug)]
struct Asked {
    key: String,
    kind: Kind,
    value: Option<i64>,
}

/// A tree that is being evaluated.
#[derive(Debug)]
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
        value: Option<i64>,
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
            Program::Once(_, child) => Self::Once { value: None, child: Box::new(Self::new(child)) },
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
        }
    }
}

/// An exchange.
#[derive(Debug)]
pub struct Oracle {
    root: Node,
    asked: Vec<Asked>,
    /// Uses of the keys of loops.
    uses: BTreeMap<String, u32>,
    made: i64,
    sent: Vec<usize>,
    bad: BTreeMap<usize, u32>,
    early: Option<BTreeMap<String, Given>>,
}

impl Oracle {
    /// An exchange whose first request brings these answers.
    pub fn new(program: &Program, early: BTreeMap<String, Given>) -> Self {
        Self {
            root: Node::new(program),
            asked: Vec::new(),
            uses: BTreeMap::new(),
            made: 0,
            sent: Vec::new(),
            bad: BTreeMap::new(),
            early: Some(early),
        }
    }

    /// Of what kind the question under a key is.
    pub fn kind(&self, key: &str) -> Kind {
        self.asked.iter().find(|asked| asked.key == key).expect("a key that was asked").kind
    }

    /// What the next request, with these answers, must be answered with.
    pub fn request(&mut self, answers: &BTreeMap<String, Given>, able: Able) -> Expected {
        let mut settled = Vec::new();
        for number in std::mem::take(&mut self.sent) {
            let given = answers.get(&self.asked[number].key).cloned();
            self.settle(number, given.as_ref(), &mut settled);
        }
        loop {
            let mut root = std::mem::replace(&mut self.root, Node::Join(Vec::new()));
            let value = self.poll(&mut root, &settled);
            self.root = root;
            if let Some(value) = value {
                return Expected::Complete(value);
            }
            settled.clear();
            let open: Vec<usize> =
                (0..self.asked.len()).filter(|&number| self.asked[number].value.is_none()).collect();
            let lacks = |kind: Kind| match kind {
                Kind::Form | Kind::Solicited => false,
                Kind::OptionalSampling => !able.sampling,
                Kind::OptionalRoots | Kind::RequiredRoots => !able.roots,
            };
            if open.iter().any(|&number| self.asked[number].kind == Kind::RequiredRoots && !able.roots) {
                return Expected::Missing;
            }
            let unavailable: Vec<usize> =
                open.iter().copied().filter(|&number| lacks(self.asked[number].kind)).collect();
            if !unavailable.is_empty() {
                for &number in &unavailable {
                    self.asked[number].value = Some(UNAVAILABLE);
                }
                settled = unavailable;
                continue;
            }
            if let Some(early) = self.early.take() {
                for &number in &open {
                    if self.asked[number].kind != Kind::Solicited {
                        let given = early.get(&self.asked[number].key).cloned();
                        self.settle(number, given.as_ref(), &mut settled);
                    }
                }
                if !settled.is_empty() {
                    continue;
                }
            }
            self.sent.clone_from(&open);
            return Expected::Sent(open.iter().map(|&number| self.asked[number].key.clone()).collect());
        }
    }

    fn settle(&mut self, number: usize, given: Option<&Given>, settled: &mut Vec<usize>) {
        let value = match given {
            None => return,
            Some(Given::Number(value)) => *value,
            Some(Given::Decline) => DECLINED,
            Some(Given::Cancel) => CANCELLED,
            Some(Given::Bad) => {
                let bad = self.bad.entry(number).or_insert(0);
                *bad += 1;
                if *bad < 3 {
                    return;
                }
                INVALID
            }
        };
        self.asked[number].value = Some(value);
        settled.push(number);
    }

    fn ask(&mut self, question: &Question) -> usize {
        let uses = self.uses.entry(question.key.clone()).or_insert(0);
        let key = if *uses == 0 { question.key.clone() } else { format!("{}#{uses}", question.key) };
        *uses += 1;
        self.asked.push(Asked { key, kind: question.kind, value: None });
        self.asked.len() - 1
    }

    /// Evaluates a node as far as it gets; its value when it is done. `settled`: the questions that have just
    /// got their answers, in the order of their asking.
    fn poll(&mut self, node: &mut Node, settled: &[usize]) -> Option<i64> {
        match node {
            Node::Ask(question, asked) => match asked {
                Some(number) => self.asked[*number].value,
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
                let value = self.asked[number].value?;
                if value % 3 != 0 || *turns > 3 {
                    return Some(value + *turns);
                }
                *asked = None;
            },
            Node::Once { value, child } => {
                let value = *value.get_or_insert_with(|| {
                    self.made += 1;
                    self.made - 1
                });
                Some(sequence_step(value, self.poll(child, settled)?))
            }
        }
    }
}
