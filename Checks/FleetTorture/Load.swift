// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Tintype
import TintypeTestSupport

/// Clients that request images from the servers at random, and compare the answers with the answers of a server of its own.
final class Load: Sendable {
    /// An image in a size and a format.
    struct Wish: Hashable {
        let number: Int
        let side: Int
        let format: String
    }

    /// The ends of requests, and the faults among them.
    struct Ledger {
        var right = 0
        var missing = 0
        /// The requests that failed because their server was killed.
        var killed = 0
        var left = 0
        var failed: [String] = []
        var wrong: [String] = []
        var milliseconds: [Double] = []
    }

    private static let clientCount = 64
    private static let sides = [24, 48, 80]

    private let servers: [Server]
    private let reference: Server
    private let origin: NumberedOrigin
    private let downloads: DownloadActor
    private let ledgerState = Mutex(Ledger())
    private let expected = Mutex<[Wish: Task<Data, any Error>]>([:])
    /// The numbers of the images that clients know.
    private let known = Atomic(50)
    private let calls = Atomic(0)
    /// The longest pause of a client between two requests, in milliseconds.
    let longestPause = Atomic(200)
    /// The faults under way, for the descriptions of failures.
    let events = Mutex<[String]>([])

    init(servers: [Server], reference: Server, origin: NumberedOrigin, downloads: DownloadActor) {
        (self.servers, self.reference, self.origin, self.downloads) = (servers, reference, origin, downloads)
    }

    var ledger: Ledger { self.ledgerState.withLock { $0 } }

    /// The number of images that were requested.
    var imageCount: Int { self.known.load(ordering: .relaxed) }

    /// Sends requests until the task is cancelled, and returns when the last one has ended.
    func run(seed: UInt64) async {
        await withDiscardingTaskGroup { group in
            for client in 0..<Self.clientCount {
                group.addTask {
                    var generator = SeededGenerator(seed: seed &* 1_000 &+ UInt64(client))
                    while !Task.isCancelled {
                        // An unstructured task, because the last request must not be cancelled.
                        let (wish, server, patience) = self.choose(&generator)
                        if let server { await Task { await self.request(wish, from: server, patience) }.value }
                        let longest = self.longestPause.load(ordering: .relaxed)
                        try? await Task.sleep(for: .milliseconds(Int.random(in: 0...longest, using: &generator)))
                    }
                }
            }
        }
    }

    /// Chooses a rather new image, one of ten times a new one, and a server that is not known to be down.
    private func choose(_ generator: inout SeededGenerator) -> (Wish, Server?, Duration?) {
        let isNew = Int.random(in: 0..<10, using: &generator) == 0
        let count = isNew ? self.known.add(1, ordering: .relaxed).newValue : self.imageCount
        // The image of rank r is wanted in proportion to 1 / r, as G. K. Zipf found for words.
        let rank = isNew ? 1 : pow(Double(count), Double.random(in: 0..<1, using: &generator))
        let wish = Wish(
            number: count - Int(rank),
            side: Self.sides.randomElement(using: &generator) ?? 24,
            format: Bool.random(using: &generator) ? "jpg" : "png"
        )
        let leaves = Int.random(in: 0..<30, using: &generator) == 0
        return (
            wish, self.servers.filter { $0.member.life != nil }.randomElement(using: &generator),
            leaves ? .milliseconds(Int.random(in: 0...100, using: &generator)) : nil
        )
    }

    /// Requests an image, and records the end; the client leaves after its patience.
    private func request(_ wish: Wish, from server: Server, _ patience: Duration? = nil) async {
        let life = server.member.life
        let start = ContinuousClock.now
        let task = Task { try await self.answer(wish, from: server) }
        let leaver = patience.map { patience in
            Task {
                try await Task.sleep(for: patience)
                task.cancel()
            }
        }
        let result = await task.result
        leaver?.cancel()
        let time = (ContinuousClock.now - start) / .milliseconds(1)
        let name = "\(wish) from \(server.member.name) after \(Int(time)) ms"
        switch result {
        case .success(let body):
            let isRight = await self.isRight(body, wish)
            self.ledgerState.withLock { ledger in
                ledger.milliseconds.append(time)
                guard isRight else { return ledger.wrong.append("\(name): \(body?.count ?? 0) bytes") }
                if body == nil { ledger.missing += 1 } else { ledger.right += 1 }
            }
        case .failure(is CancellationError) where patience != nil: self.ledgerState.withLock { $0.left += 1 }
        case .failure where life == nil || life != server.member.life: self.ledgerState.withLock { $0.killed += 1 }
        case .failure(let error):
            let events = self.events.withLock { $0.joined(separator: ", ") }
            self.ledgerState.withLock { $0.failed.append("\(name): \(error); events: \(events)") }
        }
    }

    /// Returns the body of an answer, or `nil` if the image is missing.
    func answer(_ wish: Wish, from server: Server) async throws -> Data? {
        do {
            return try await self.body(wish, from: server)
        } catch let error as DownloadError where error.status == 404 {
            return nil
        }
    }

    private func body(_ wish: Wish, from server: Server, counts: Bool = true) async throws -> Data {
        let source = self.origin.url(wish.number, counts: counts).replacing("?", with: "%3F")
        let text = "http://\(server.address)/unsafe/w:\(wish.side)/plain/\(source)@\(wish.format)"
        guard let url = URL(string: text) else { throw TestSupportError("\(text) is no URL") }
        // Equal requests would share one transfer.
        let number = self.calls.add(1, ordering: .relaxed).newValue
        let request = DownloadRequest(url: url, headers: ["X-Number": "\(number)"])
        return try await self.downloads.response(for: request).body
    }

    /// Compares a body with the body that a server without a cluster returns.
    func isRight(_ body: Data?, _ wish: Wish) async -> Bool {
        guard !NumberedOrigin.isMissing(wish.number) else { return body == nil }
        let task = self.expected.withLock { expected in
            if let task = expected[wish] { return task }
            let task = Task { try await self.body(wish, from: self.reference, counts: false) }
            expected[wish] = task
            return task
        }
        do {
            return try await task.value == body
        } catch {
            self.ledgerState.withLock { $0.failed.append("\(wish) from the reference: \(error)") }
            return true
        }
    }
}

/// A process of `tintype serve`.
struct Server: Sendable {
    let member: Member
    let address: String
}

extension Load.Ledger {
    /// The number of requests that have ended.
    var count: Int { self.right + self.missing + self.killed + self.left + self.failed.count + self.wrong.count }

    /// The time within which a share of the answers came.
    func percentile(_ share: Double) -> String {
        let sorted = self.milliseconds.sorted()
        guard !sorted.isEmpty else { return "none" }
        return "\(Int(sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))])) ms"
    }
}
