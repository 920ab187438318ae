// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeDownloading

/// Tintype's side of downloads: one `DownloadActor`, bodies as `Data`.
enum TintypeDownloads {
    /// Asks for the target's addresses, one lane for each.
    static func contestant(_ target: Downloads.Target) throws -> Contestant {
        var configuration = DownloadActor.Configuration()
        if !target.load.needsConnections {
            configuration.tls.authorities = .file(path: target.origin.certificate.path)
        }
        let downloads = DownloadActor(configuration: configuration)
        let requests = try target.addresses.map { address in
            guard let url = URL(string: address) else { throw Unavailable("bad address \(address)") }
            return DownloadRequest(url: url)
        }
        let note = "the default configuration: \(configuration.maximumConnectionsPerHost) connections to a host"
        return Contestant(counts: target.load.leastCount...500_000, note: note) { count in
            try await Fetching.measure(count: count, width: requests.count) { lane in
                let response = try await downloads.response(for: requests[lane])
                try Check.equal("the status", response.status ?? 0, 200)
                try Check.equal("the size of the body", response.body.count, target.load.bodySize)
            }
        }
    }

    /// Asks for one large body at a time, which is dropped before the next.
    static func large(_ address: String) throws -> Contestant {
        let (downloads, request) = try self.largeRequest(address)
        return Contestant(counts: 1...20, note: "the whole body as Data, one after the other") { count in
            try await Measurement.of(operations: count) {
                for _ in 0..<count {
                    let response = try await downloads.response(for: request)
                    try Check.equal("the size of the body", response.body.count, LargeDownloads.mebibytes << 20)
                }
            }
        }
    }

    /// The same once, as the child that prints its peak.
    static func meetLarge(_ address: String) async throws {
        let (downloads, request) = try self.largeRequest(address)
        try await ChildJob.measure {
            let response = try await downloads.response(for: request)
            return (response.body.count, 1)
        }
    }

    private static func largeRequest(_ address: String) throws -> (DownloadActor, DownloadRequest) {
        var configuration = DownloadActor.Configuration()
        configuration.maximumBodySize = 1 << 30
        guard let url = URL(string: address) else { throw Unavailable("bad address \(address)") }
        return (DownloadActor(configuration: configuration), DownloadRequest(url: url))
    }
}
