// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeDownloading
import TintypeTestSupport

/// Look-ups that the resolver does not answer, for transfers that are then cancelled.
struct LookUps {
    /// More transfers than there are places, in consecutive rounds.
    private static let (rounds, perRound) = (10, 150)

    let origin: EveryAddressOrigin
    let nameServer: NameServer

    func run() async {
        _ = self.origin.takeAddresses()
        let before = ThisProcess.threadNames.count
        let descriptors = ThisProcess.descriptorCount
        let downloader = DownloadActor()
        let places = DownloadActor.Configuration().maximumTransfers
        var hasCancelled = true
        for round in 0..<Self.rounds {
            let tasks = (0..<Self.perRound).map { number in
                Task {
                    guard let url = URL(string: "http://\(round)-\(number).\(NameServer.silentDomain)/") else { return }
                    _ = try await downloader.response(for: DownloadRequest(url: url))
                }
            }
            await until { await downloader.counters.started == (round + 1) * Self.perRound }
            if round == 0 { await until { self.nameServer.silentCount >= places } }
            for task in tasks { task.cancel() }
            for task in tasks {
                if case .failure(let error) = await task.result, error is CancellationError { continue }
                hasCancelled = false
            }
        }
        Attacks.report("look-ups", "callers", expected: "cancelled", actual: hasCancelled ? "cancelled" : "not")
        // Some more threads belong to the loop and to the cooperative pool.
        let threads = ThisProcess.threadNames.count
        let isBounded = threads <= before + places + 8 && threads > before + places / 2
        let expected = "at most \(places)"
        Attacks.report("look-ups", "threads", expected: expected, actual: isBounded ? expected : "\(threads)")
        // The places become free when the look-ups end, and the client does not connect to the late addresses.
        self.nameServer.answerSilent()
        let url = URL(string: "http://\(NameServer.publicAddress)/")
        let response =
            if let url { try? await downloader.response(for: DownloadRequest(url: url)) } else {
                nil as DownloadResponse?
            }
        let status = response?.status.map { "\($0)" } ?? "none"
        Attacks.report("look-ups", "a transfer after them", expected: "200", actual: status)
        await until { ThisProcess.threadNames.count <= before + 8 }
        let reached = self.origin.takeAddresses().joined(separator: " ")
        Attacks.report("look-ups", "connections", expected: NameServer.publicAddress, actual: reached)
        await downloader.shutdown()
        // The runtime may have opened two timers, which stay open.
        await until { ThisProcess.descriptorCount <= descriptors + 2 }
        Attacks.report("look-ups", "descriptors", expected: "given back", actual: "given back")
    }
}
