//! Subscriptions: a stream of changes, for as long as this instance and its client keep it.

use std::{sync::Arc, task::Poll};

use mrtr_core::{
    catalog::{Change, Listen},
    http::{Accepts, ReplyClass},
};

use crate::{mail::Mail, serve::Output};

enum Next {
    Change(Option<Change>),
    Silent,
    Left,
}

pub(crate) async fn serve(listen: &Listen, accepts: Accepts, mail: &Arc<Mail>, output: &mut Output) {
    let mut message = Vec::new();
    if accepts.event_stream {
        listen.acknowledge(&mut message);
        output.notification(&message);
        loop {
            let next = std::future::poll_fn(|_| {
                let mut inner = mail.lock();
                if inner.left {
                    return Poll::Ready(Next::Left);
                }
                if core::mem::take(&mut inner.silent) {
                    return Poll::Ready(Next::Silent);
                }
                inner.changes.pop_front().map_or(Poll::Pending, |change| Poll::Ready(Next::Change(change)))
            })
            .await;
            message.clear();
            match next {
                Next::Left => return,
                Next::Silent => output.keep_alive(),
                Next::Change(None) => break,
                Next::Change(Some(change)) => {
                    if listen.change(&change, &mut message) {
                        output.notification(&message);
                    }
                }
            }
        }
    }
    message.clear();
    listen.close(&mut message);
    output.finish(ReplyClass::Result, &message);
}
