//! `-32042`: urls that have to be opened before the upstream takes the call.

use super::*;

impl Bridge {
    /// `-32042`: each url becomes a question of this parked call.
    pub(super) fn urls_required(&mut self, call: u64, required: Vec<UrlRequired>, now: Timestamp) {
        let named = self.named;
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if parked.reissued >= REISSUES || parked.params.is_none() && parked.can.url {
            let error = RpcError::internal("the upstream wants urls opened again and again");
            parked.error(&error);
            return self.finished(call, now);
        }
        let urls: Vec<Box<str>> = required.iter().map(|required| required.url.clone()).collect();
        let before = parked.urls.take();
        let same = before.is_some_and(|before| before.urls == urls);
        let name = self.config.upstreams.get(parked.upstream).map_or("", |up| &*up.name);
        parked.asks.clear();
        for required in &required {
            parked.keys += 1;
            let message = if named {
                Cow::Owned(format!("[{name}] {}", required.message))
            } else {
                Cow::Borrowed(&*required.message)
            };
            let mut entry =
                b"{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\",\"message\":".to_vec();
            write::string(&mut entry, &message);
            entry.extend_from_slice(b",\"url\":");
            write::string(&mut entry, &required.url);
            entry.extend_from_slice(b"}}");
            parked.asks.push(Ask {
                key: format!("u{}", parked.keys).into(),
                kind: AskKind::Url,
                needs: Requirement::new(AskKind::Url),
                entry: String::from_utf8(entry).unwrap_or_default().into(),
                from: From::Url,
                inbox: None,
                shown: false,
                token: None,
            });
        }
        // A person has opened them, and the upstream does not know yet: as after a retry of a parked call.
        let opened = parked.replay.as_mut().is_some_and(|replay| {
            let mut known = |ask: &Ask| matches!(replay.answer(ask.kind, true, &ask.entry), Ok(Some(_)));
            let before = parked.asks.len();
            parked.asks.retain(|ask| !known(ask));
            before > 0 && parked.asks.is_empty()
        });
        let open = required.into_iter().map(|required| required.elicitation_id).collect();
        let later = now.saturating_add(self.config.waits.hold);
        parked.urls = Some(Box::new(Urls { urls, open, wait: opened.then_some(later) }));
        // Opened a moment ago, perhaps not done with: no need to ask again at once.
        parked.flush = (!opened).then_some(if same { later } else { now });
        self.advance(call, now);
    }

    /// `notifications/elicitation/complete`: never passed on to a modern host (BT-2).
    pub(in crate::bridge) fn elicitation_completed(
        &mut self,
        link: LinkId,
        id: &str,
        notification: &Notification<'_>,
        now: Timestamp,
    ) {
        if self.host_of(link).is_some() {
            return self.on_change(link, None, notification);
        }
        let Some(call) = self.links.get_mut(&link).and_then(Link::session).and_then(|session| session.call)
        else {
            return;
        };
        let Some(parked) = self.parked.get_mut(&call) else { return };
        let Some(urls) = &mut parked.urls else { return };
        urls.open.remove(id);
        if urls.open.is_empty() && parked.asks.iter().all(|ask| !ask.shown) {
            // Asked for a second time, and done before anybody was shown it again.
            parked.asks.clear();
        }
        self.advance(call, now);
    }

    pub(super) fn reissue(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        parked.reissued += 1;
        parked.flush = None;
        if let Some(urls) = &mut parked.urls {
            urls.wait = None;
        }
        self.issue(call, now);
    }

    /// A url that has to be opened was refused: the call ends (BT-6).
    pub(super) fn refused_url(&mut self, call: u64, now: Timestamp) {
        let Some(parked) = self.parked.get_mut(&call) else { return };
        if parked.method == AskingMethod::ToolsCall {
            let mut body = b"\"result\":".to_vec();
            let result = r#"{"content":[{"type":"text","text":"The page that this tool needs was not opened."}],"isError":true}"#;
            let info =
                self.upstreams.get(parked.upstream).and_then(|state| state.profile.as_ref()?.info.as_deref());
            result_to_modern(&mut body, "tools/call", Json::trusted(result), info.map(Json::trusted));
            parked.outcome = Some(Outcome { class: ReplyClass::Result, body: body.into() });
        } else {
            parked.error(&RpcError::internal("the page that this request needs was not opened"));
        }
        self.finished(call, now);
    }
}
