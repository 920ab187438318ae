// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// A caller that waits for a transfer.
struct TransferWaiter {
    let id: UInt64
    let continuation: CheckedContinuation<DownloadResponse, any Error>
    var priority: DownloadPriority
    let observer: (@Sendable (TransferProgress) -> Void)?
    var bytesObserver: (@Sendable (Data) -> Void)?
}

/// The callers that wait for a transfer, or the one reader of its stream, and their view of its progress.
struct TransferAudience {
    /// Mostly one.
    private var waiters: [TransferWaiter] = []
    /// The way to the reader of a stream, or `nil`.
    let channel: BodyChannel?
    private var streamPriority: DownloadPriority
    private var latestProgress: TransferProgress?
    /// Whether bytes have come that observers do not know of.
    private var hasNews = false

    init(channel: BodyChannel?, priority: DownloadPriority) {
        self.channel = channel
        self.streamPriority = priority
    }

    // MARK: Waiters

    var isEmpty: Bool { self.waiters.isEmpty }

    /// The priority of the most urgent waiter, or that of the stream.
    var priority: DownloadPriority {
        // Mostly there is one.
        self.waiters.count == 1
            ? self.waiters[0].priority : self.waiters.lazy.map(\.priority).max() ?? self.streamPriority
    }

    mutating func setPriority(_ priority: DownloadPriority) {
        self.streamPriority = priority
        for index in self.waiters.indices { self.waiters[index].priority = priority }
    }

    /// Adds a waiter, whose observers receive all that the others have received.
    mutating func join(_ waiter: TransferWaiter, body: borrowing BodyBuffer, expectedBytes: Int64?) {
        // Otherwise the others would receive the latest bytes twice. The rest of an earlier try may not belong here.
        if self.hasNews { self.announce(body, expectedBytes: expectedBytes) }
        self.waiters.append(waiter)
        if let latestProgress { waiter.observer?(latestProgress) }
        if let show = waiter.bytesObserver, self.hasShownBytes { show(body.copy()) }
    }

    /// Removes and returns a waiter, which the caller must then resume.
    mutating func leave(_ id: UInt64) -> TransferWaiter? {
        self.waiters.firstIndex { $0.id == id }.map { self.waiters.remove(at: $0) }
    }

    /// Resumes and removes all waiters.
    mutating func finish(_ result: Result<DownloadResponse, any Error>) {
        let waiters = self.waiters
        self.waiters = []
        for waiter in waiters { waiter.continuation.resume(with: result) }
        self.channel?.finish(result.map { _ in })
    }

    // MARK: Progress

    /// Records that bytes came; returns whether the audience must hear of them with ``announce(_:expectedBytes:)``.
    ///
    /// Observers are notified once in a turn of the loop: a body may come in as many pieces as it has bytes.
    mutating func noteBytes() -> Bool {
        defer { self.hasNews = true }
        return !self.hasNews
    }

    /// Notifies observers of the bytes that have come since the last time.
    mutating func announce(_ body: borrowing BodyBuffer, expectedBytes: Int64?) {
        self.hasNews = false
        let knownCount = Int(self.latestProgress?.receivedBytes ?? 0)
        guard body.count > knownCount else { return }
        let progress = TransferProgress(receivedBytes: Int64(body.count), expectedBytes: expectedBytes)
        self.latestProgress = progress
        for waiter in self.waiters { waiter.observer?(progress) }
        guard self.isShown else { return }
        // One copy for all observers.
        var copy = Data()
        body.withBytes { copy = Data(UnsafeRawBufferPointer(rebasing: $0[knownCount...])) }
        for waiter in self.waiters { waiter.bytesObserver?(copy) }
    }

    /// Whether an observer receives the bytes of the body as they come.
    var isShown: Bool { self.waiters.contains { $0.bytesObserver != nil } }

    /// Whether observers have received bytes of the body.
    private var hasShownBytes: Bool { self.latestProgress.map { $0.receivedBytes > 0 } ?? false }

    /// Forgets the progress: the body is dropped.
    mutating func forgetBody() {
        // Observers must receive nothing more: the two bodies do not fit together.
        if self.hasShownBytes { for index in self.waiters.indices { self.waiters[index].bytesObserver = nil } }
        self.latestProgress = nil
    }
}
