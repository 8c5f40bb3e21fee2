//! What a legacy host over HTTP gets that has lost a stream and takes it up again.

use std::{collections::BTreeMap, time::Duration};

use mrtr_core::{
    Entropy,
    bridge::{
        EventId, HostId, HostKind, HostSessions, HostStream, Resumed, SessionBounds, SessionFault, Transport,
    },
    http::ReplyClass,
    jsonrpc::RequestId,
    seal::Principal,
    wire::Era,
};
use mrtr_tests::bridge::World;

/// Sessions, and the hosts of two of them.
struct Lost {
    world: World,
    sessions: HostSessions,
    hosts: [HostId; 2],
}

fn lost(bounds: SessionBounds) -> Lost {
    let mut world = World::single(Transport::Http, Era::Modern);
    let mut sessions = HostSessions::new(bounds);
    let hosts = ["alice", "bob"].map(|principal| world.host(HostKind::Session, principal));
    for (host, name) in hosts.iter().zip([b"alice".as_slice(), b"bob"]) {
        let entropy = Entropy::new([u8::try_from(host.0).unwrap(); 32]);
        sessions.name(*host, Principal::Authenticated(name), &entropy, world.now);
    }
    Lost { world, sessions, hosts }
}

fn call(id: i64) -> HostStream {
    HostStream::Request(RequestId::from(id))
}

impl Lost {
    fn begin(&mut self, host: usize, stream: &HostStream) -> EventId {
        self.sessions.begin_stream(self.hosts[host], stream, self.world.now).unwrap()
    }

    fn say(&mut self, host: usize, stream: &HostStream, text: &str) -> EventId {
        self.sessions.say(self.hosts[host], stream, text.as_bytes(), None, self.world.now).unwrap()
    }

    fn end(&mut self, host: usize, stream: &HostStream, text: &str) -> EventId {
        let last = Some(ReplyClass::Result);
        self.sessions.say(self.hosts[host], stream, text.as_bytes(), last, self.world.now).unwrap()
    }

    fn resume(&mut self, host: usize, last: &str) -> Result<Option<Resumed>, SessionFault> {
        self.sessions.resume(self.hosts[host], &[("Last-Event-ID", last)], self.world.now)
    }

    /// The texts that a host gets which has seen this event.
    fn missed(&mut self, host: usize, seen: EventId) -> Vec<String> {
        let resumed = self.resume(host, &seen.to_string()).unwrap().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        resumed.missed.into_iter().map(|missed| text(missed.bytes)).collect()
    }
}

/// what came after the event, of its stream alone and in order, whether or not somebody was there; the
/// response is the last of it.
#[test]
fn a_host_gets_what_it_has_missed_and_nothing_else_r242_r239() {
    let mut lost = lost(SessionBounds::default());
    let (first, second) = (call(1), call(2));
    let start = lost.begin(0, &first);
    lost.begin(0, &second);
    let foreign = lost.begin(1, &first);
    let a = lost.say(0, &first, "a");
    let b = lost.say(0, &second, "b");
    lost.say(1, &first, "of bob");
    lost.say(0, &first, "c");
    let d = lost.end(0, &first, "d");
    assert_eq!(lost.missed(0, start), ["a", "c", "d"]);
    assert_eq!(lost.missed(0, a), ["c", "d"]);
    assert!(lost.missed(0, b).is_empty() && lost.missed(0, d).is_empty());
    let resumed = lost.resume(0, &a.to_string()).unwrap().unwrap();
    assert_eq!((&resumed.stream, resumed.over), (&first, true));
    assert_eq!(
        resumed.missed.iter().map(|missed| missed.last).collect::<Vec<_>>(),
        [None, Some(ReplyClass::Result)]
    );
    let open = lost.resume(0, &b.to_string()).unwrap().unwrap();
    assert_eq!((&open.stream, open.over), (&second, false));
    // An event is of one session: under bob's, alice's number is bob's own stream or none.
    assert_eq!(lost.missed(1, foreign), ["of bob"]);
    // The same id of a later request is another stream.
    let again = lost.begin(0, &first);
    lost.say(0, &first, "e");
    assert_eq!(lost.missed(0, again), ["e"]);
    assert_eq!(lost.missed(0, start), ["a", "c", "d"]);
    let mut line = Vec::new();
    a.write(&mut line);
    assert_eq!(String::from_utf8(line).unwrap(), format!("id: {a}\n"));
    // Without the header it is the stream that belongs to no call; a stream that has not begun has no events.
    let now = lost.world.now;
    assert!(lost.sessions.resume(lost.hosts[0], &[("Accept", "x")], now).unwrap().is_none());
    assert!(lost.sessions.say(lost.hosts[0], &call(9), b"x", None, now).is_none());
}

/// an event that is none, or not yet, or no longer, is 400, and says nothing of other sessions.
#[test]
fn what_is_no_event_of_the_session_is_refused() {
    let mut lost = lost(SessionBounds::default());
    let stream = call(1);
    lost.begin(0, &stream);
    let seen = lost.say(0, &stream, "a");
    for wrong in [
        "",
        "-",
        "0",
        "0-",
        "-0",
        "0-2",
        "0-99",
        "7-0",
        "0-1-1",
        "+0-1",
        "0-+1",
        " 0 - 1",
        "a-b",
        "99999999999999999999-0",
    ] {
        let fault = lost.resume(0, wrong).unwrap_err();
        assert_eq!(fault.class, ReplyClass::InvalidRequest, "{wrong:?}");
        assert!(String::from_utf8(fault.bytes).unwrap().contains("names no event"), "{wrong:?}");
    }
    assert!(lost.resume(1, &seen.to_string()).is_err());
    let now = lost.world.now;
    let twice = [("Last-Event-ID", "0-0"), ("Last-Event-ID", "0-1")];
    assert!(lost.sessions.resume(lost.hosts[0], &twice, now).is_err());
    assert!(lost.sessions.forget(lost.hosts[0]));
    assert!(lost.resume(0, &seen.to_string()).is_err());
}

/// What is kept is bounded: in time, in bytes of a session, in bytes of all.
#[test]
fn what_is_kept_is_bounded() {
    let mut bounds = SessionBounds::default();
    (bounds.kept_bytes, bounds.kept_bytes_in_all) = (10, 16);
    let mut lost = lost(bounds);
    let (one, two) = (call(1), call(2));
    let (start, other) = (lost.begin(0, &one), lost.begin(0, &two));
    for text in ["aaaa", "bbbb", "cccc"] {
        lost.say(0, &one, text);
    }
    assert_eq!(lost.missed(0, start), ["bbbb", "cccc"]);
    // The oldest goes, whatever stream it is of; what is too long goes by and takes everything older with it.
    lost.say(0, &two, "dddd");
    assert_eq!((lost.missed(0, start), lost.missed(0, other)), (vec!["cccc".into()], vec!["dddd".into()]));
    lost.say(0, &two, "far too long for it");
    lost.say(0, &two, "e");
    assert_eq!((lost.missed(0, start).len(), lost.missed(0, other)), (0, vec![String::from("e")]));
    // In all: bob has what alice leaves.
    lost.say(0, &two, "12345678");
    let bob = lost.begin(1, &one);
    lost.say(1, &one, "1234567");
    assert_eq!(lost.missed(1, bob), ["1234567"]);
    lost.say(1, &one, "1");
    assert_eq!(lost.missed(1, bob), ["1"], "7 + 1 + 9 are more than 16");
    assert!(lost.sessions.forget(lost.hosts[0]));
    lost.say(1, &one, "123456789");
    assert_eq!(lost.missed(1, bob), ["1", "123456789"]);
    // In time: what was said, and streams that are over.
    let (ends, goes_on) = (lost.begin(1, &two), lost.begin(1, &call(3)));
    lost.end(1, &two, "z");
    lost.world.now = lost.world.now.saturating_add(Duration::from_secs(60));
    assert_eq!(lost.missed(1, ends), ["z"]);
    lost.world.now = lost.world.now.saturating_add(Duration::from_millis(1));
    assert!(lost.resume(1, &ends.to_string()).is_err());
    assert!(lost.missed(1, goes_on).is_empty());
    lost.say(1, &call(3), "y");
    assert_eq!(lost.missed(1, goes_on), ["y"]);
}

/// whatever is lost and taken up again in whatever order, each stream is heard whole, in order and once.
#[test]
fn random_losses_lose_nothing_and_repeat_nothing() {
    for seed in 0..200_u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let mut lost = lost(SessionBounds::default());
        let mut streams = BTreeMap::new();
        for id in 0..3_i64 {
            let seen = lost.begin(0, &call(id));
            streams.insert(id, (seen, Vec::<String>::new(), Vec::<String>::new(), true));
        }
        for step in 0..120 {
            let id = i64::try_from(random(3)).unwrap();
            let (seen, said, heard, here) = streams.get_mut(&id).unwrap();
            match random(4) {
                0 => *here = false,
                1 => {
                    // Its connection is new: it gets what it has missed, even what it had not missed at all.
                    let resumed = lost.resume(0, &seen.to_string()).unwrap().unwrap();
                    assert_eq!(resumed.stream, call(id));
                    for missed in resumed.missed {
                        heard.push(String::from_utf8(missed.bytes).unwrap());
                        *seen = missed.id;
                    }
                    *here = true;
                }
                _ => {
                    let text = format!("{id}/{step}");
                    let event = lost.say(0, &call(id), &text);
                    said.push(text.clone());
                    if *here {
                        heard.push(text);
                        *seen = event;
                    }
                }
            }
        }
        for (id, (seen, said, mut heard, _)) in streams {
            heard.extend(lost.missed(0, seen));
            assert_eq!(heard, said, "seed {seed}, stream {id}");
        }
    }
}
