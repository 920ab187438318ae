// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import TintypeConcurrency
public import TintypeHTTP

extension DownloadStream {
    /// The head of a response.
    public struct Head: Sendable {
        /// The status, one that the request accepts.
        public let status: Int
        /// The header fields, duplicates included, in their order.
        public let headers: HeaderFields
        /// The URL of the body, after redirects.
        public let url: URL
        /// The number of bytes of the body, or `nil` if the server does not declare it, or compresses the body.
        public let expectedBytes: Int64?
    }
}

/// A body as a stream of chunks, which waits for its reader.
///
/// The stream buffers few bytes. A slow reader makes the server wait, and that time does not count against the server.
/// The transfer ends with the last copy of the stream and its iterators. Each chunk is delivered once; a second
/// iterator continues after the first one.
public struct DownloadStream: AsyncSequence, Sendable {
    /// The head of the response.
    public let head: DownloadStream.Head
    let source: StreamSource

    /// Iterates over the chunks.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let source: StreamSource

        /// Returns the next chunk, never empty, or `nil` after the last.
        ///
        /// - Throws: ``DownloadError`` when the transfer fails, and `CancellationError` when the task is
        ///   cancelled, which ends the transfer.
        public mutating func next() async throws -> Data? {
            try await self.source.next()
        }
    }

    /// Creates an iterator over the chunks that are left.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(source: self.source)
    }
}

/// The reader's end of a channel.
///
/// When it goes away, the transfer ends.
final class StreamSource: Sendable {
    let channel: BodyChannel
    private let downloader: DownloadActor
    private let id: UInt64

    init(channel: BodyChannel, downloader: DownloadActor, id: UInt64) {
        self.channel = channel
        self.downloader = downloader
        self.id = id
    }

    deinit {
        // A short job of the actor, which does nothing if the transfer is over.
        let (downloader, id) = (self.downloader, self.id)
        Task { await downloader.leaveStream(id) }
    }

    func head() async throws -> DownloadStream.Head {
        try await self.cancelling { try await self.channel.head() }
    }

    func next() async throws -> Data? {
        let (chunk, mustResume) = try await self.cancelling { try await self.channel.next() }
        if mustResume { await self.downloader.resumeStream(self.id) }
        return chunk
    }

    private func cancelling<Value>(_ operation: () async throws -> Value) async throws -> Value {
        try await withTaskCancellationHandler {
            try Task.checkCancellation()
            return try await operation()
        } onCancel: {
            self.channel.cancel()
            let (downloader, id) = (self.downloader, self.id)
            Task { await downloader.leaveStream(id) }
        }
    }
}

/// The chunks of a body between the loop that receives them and the task that reads them.
///
/// When it is full, the transfer pauses, and TCP or HTTP/2 makes the server wait.
final class BodyChannel: Sendable {
    /// A chunk, or `nil` at the end, and whether a paused transfer must continue now.
    typealias Taken = (chunk: Data?, mustResume: Bool)

    private struct State {
        var head: Result<DownloadStream.Head, any Error>?
        var headWaiters: [CheckedContinuation<DownloadStream.Head, any Error>] = []
        var chunks: [Data] = []
        var bufferedBytes = 0
        var isPaused = false
        var ending: Result<Void, any Error>?
        var chunkWaiters: [CheckedContinuation<Taken, any Error>] = []
    }

    private let limit: Int
    private let state = Locked(State())

    /// Creates a channel that is full when it holds `limit` bytes or more.
    init(limit: Int) {
        self.limit = max(1, limit)
    }

    // MARK: The loop's side

    func receive(_ head: DownloadStream.Head) {
        let waiters = self.state.withLock { state in
            state.head = .success(head)
            defer { state.headWaiters = [] }
            return state.headWaiters
        }
        for waiter in waiters { waiter.resume(returning: head) }
    }

    /// Takes a chunk, or returns false if there is no room: the transfer must pause until it is resumed.
    func offer(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // Copy outside the lock. A full channel discards the copy, which is rare.
        let chunk = Data(bytes)
        let (hasRoom, waiter) = self.state.withLock {
            state -> (Bool, CheckedContinuation<Taken, any Error>?) in
            guard state.ending == nil else { return (true, nil) }
            guard state.bufferedBytes < self.limit else {
                state.isPaused = true
                return (false, nil)
            }
            guard state.chunkWaiters.isEmpty else { return (true, state.chunkWaiters.removeFirst()) }
            state.chunks.append(chunk)
            state.bufferedBytes += chunk.count
            return (true, nil)
        }
        waiter?.resume(returning: (chunk, false))
        return hasRoom
    }

    /// Ends the body after the chunks that are left.
    func finish(_ result: Result<Void, any Error>) {
        let (headWaiters, chunkWaiters) = self.state.withLock { state in
            if state.ending == nil { state.ending = result }
            defer {
                state.headWaiters = []
                state.chunkWaiters = []
            }
            return (state.headWaiters, state.chunkWaiters)
        }
        let error: any Error =
            switch result {
            case .success: CancellationError()
            case .failure(let error): error
            }
        for waiter in headWaiters { waiter.resume(throwing: error) }
        for waiter in chunkWaiters {
            switch result {
            case .success: waiter.resume(returning: (nil, false))
            case .failure(let error): waiter.resume(throwing: error)
            }
        }
    }

    // MARK: The task's side

    /// Returns the head of the response, as soon as it has arrived.
    func head() async throws -> DownloadStream.Head {
        try await withCheckedThrowingContinuation { continuation in
            let result = self.state.withLock { state -> Result<DownloadStream.Head, any Error>? in
                if let head = state.head { return head }
                if case .failure(let error) = state.ending { return .failure(error) }
                state.headWaiters.append(continuation)
                return nil
            }
            if let result { continuation.resume(with: result) }
        }
    }

    /// Returns the next chunk, or `nil` at the end, and whether a paused transfer must continue now.
    func next() async throws -> Taken {
        try await withCheckedThrowingContinuation { continuation in
            let result = self.state.withLock { state -> Result<Taken, any Error>? in
                if let chunk = state.chunks.first {
                    state.chunks.removeFirst()
                    state.bufferedBytes -= chunk.count
                    let mustResume = state.isPaused && state.bufferedBytes <= self.limit / 2
                    if mustResume { state.isPaused = false }
                    return .success((chunk, mustResume))
                }
                if let ending = state.ending { return ending.map { (nil, false) } }
                state.chunkWaiters.append(continuation)
                return nil
            }
            if let result { continuation.resume(with: result) }
        }
    }

    /// Discards the chunks that are left, because no task will read them.
    func cancel() {
        self.finish(.failure(CancellationError()))
        self.state.withLock { state in
            state.chunks = []
            state.bufferedBytes = 0
            state.ending = .failure(CancellationError())
        }
    }
}
