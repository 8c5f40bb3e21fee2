//! Sessions with legacy upstreams that legacy hosts have for themselves: how many there may be, and which one goes for
//! another.

use super::{
    Bridge, HostId, HostKind, LinkId, Owner, Transport,
    link::{LinkKind, Session, gone},
    pool::no_session,
};
use crate::{error::RpcError, time::Timestamp};

/// What there is no room for.
#[derive(Clone, Copy)]
enum Lack {
    /// A session with this upstream; of this principal alone, if the others have room.
    Session { upstream: usize, own: bool },
    /// A process of any.
    Process,
}

impl Bridge {
    /// Makes sure that a legacy host may have a session with each of these upstreams for itself. On a pipe it may: whoever
    /// opens one has started this process, or was let in by it one by one. Over HTTP anybody opens any number, and many are
    /// left without a word: where there is no room, one goes that has rested for [`Waits::idle`](super::Waits::idle), the
    /// longest first. Its host's next request begins another.
    ///
    /// # Errors
    ///
    /// There are too many, and none rests.
    pub(super) fn may_have_own(
        &mut self,
        host: HostId,
        upstreams: &[usize],
        now: Timestamp,
    ) -> Result<(), RpcError> {
        if self.hosts.get(&host).map(|entry| entry.kind) != Some(HostKind::Session) {
            return Ok(());
        }
        let owner = self.owner(host);
        while let Some(lack) = self.lacks_own(&owner, upstreams) {
            let Some(rested) = self.rested(&owner, lack, now) else {
                return Err(no_session(self.config.waits.session));
            };
            self.close_link(rested, &gone(), now);
        }
        Ok(())
    }

    /// Those of hosts over HTTP.
    fn own(&self) -> impl Iterator<Item = (LinkId, usize, &Session)> {
        let over_http =
            |host: HostId| self.hosts.get(&host).is_some_and(|entry| entry.kind == HostKind::Session);
        self.links.iter().filter_map(move |(id, link)| match &link.kind {
            LinkKind::Legacy(session) if session.host.is_some_and(over_http) => {
                Some((*id, link.upstream, &**session))
            }
            LinkKind::Legacy(_) | LinkKind::Modern => None,
        })
    }

    fn lacks_own(&self, owner: &Owner, upstreams: &[usize]) -> Option<Lack> {
        let is_pipe = |upstream: usize| self.transport(upstream) == Transport::Pipe;
        let anonymous = *owner == Owner(None);
        for upstream in upstreams.iter().copied() {
            let bound = if is_pipe(upstream) {
                self.config.pool.own_processes
            } else {
                self.config.pool.http_sessions
            };
            let here = || self.own().filter(|(_, of, _)| *of == upstream);
            if here().count() >= bound {
                return Some(Lack::Session { upstream, own: false });
            }
            if !anonymous
                && here().filter(|(_, _, session)| session.owner == *owner).count() >= bound.div_ceil(2)
            {
                return Some(Lack::Session { upstream, own: true });
            }
        }
        let processes = self.own().filter(|(_, of, _)| is_pipe(*of)).count();
        let more = upstreams.iter().filter(|upstream| is_pipe(**upstream)).count();
        let bound = self.config.pool.own_processes.saturating_mul(2);
        (more > 0 && processes + more > bound).then_some(Lack::Process)
    }

    /// The session that has rested the longest of those that would make room.
    fn rested(&self, owner: &Owner, lack: Lack, now: Timestamp) -> Option<LinkId> {
        let helps = |upstream: usize, session: &Session| match lack {
            Lack::Session { upstream: of, own } => of == upstream && (!own || session.owner == *owner),
            Lack::Process => self.transport(upstream) == Transport::Pipe,
        };
        let rested = self.own().filter_map(|(id, upstream, session)| {
            let since = session.rests.filter(|_| helps(upstream, session))?;
            (since.saturating_add(self.config.waits.idle) <= now).then_some((since, id))
        });
        rested.min().map(|(_, id)| id)
    }
}
