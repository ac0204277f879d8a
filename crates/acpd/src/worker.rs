//! A thread that owns a value, and does one job after the other with it.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use tokio::sync::oneshot;

type Job<T> = Box<dyn FnOnce(&mut T) + Send>;

/// Handle of the thread, which ends with the last handle.
pub struct Worker<T>(Sender<Job<T>>);

impl<T> Clone for Worker<T> {
    fn clone(&self) -> Worker<T> {
        Worker(self.0.clone())
    }
}

impl<T: Send + 'static> Worker<T> {
    pub fn start(name: &str, mut owned: T) -> io::Result<Worker<T>> {
        let (jobs, queue) = channel::<Job<T>>();
        let run = move || queue.into_iter().for_each(|job| job(&mut owned));
        thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Worker(jobs))
    }

    /// Never waits.
    pub fn order(&self, job: impl FnOnce(&mut T) + Send + 'static) {
        self.0.send(Box::new(job)).ok();
    }

    /// Returns the result of a job; `None` if the thread has died.
    pub async fn ask<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> Option<R> {
        let (reply, answer) = oneshot::channel();
        self.order(move |owned| drop(reply.send(job(owned))));
        answer.await.ok()
    }
}
