import Foundation
import TintypeDownloading

/// Tintype's side of downloads: one `DownloadActor`, bodies as `Data`.
enum TintypeDownloads {
    /// Asks for the target's addresses, one lane for each.
    static func contestant(_ target: Downloads.Target) throws -> Contestant {
        let configuration = DownloadActor.Configuration()
        let downloads = DownloadActor(configuration: configuration)
        let requests = try target.addresses.map { address in
            guard let url = URL(string: address) else { throw Unavailable("bad address \(address)") }
            return DownloadRequest(url: url)
        }
        let note = "the default configuration: \(configuration.maximumConnectionsPerHost) connections to a host"
        return Contestant(counts: 300...500_000, note: note) { count in
            try await Fetching.measure(count: count, width: requests.count) { lane in
                let response = try await downloads.response(for: requests[lane])
                try Check.equal("the status", response.status ?? 0, 200)
                try Check.equal("the size of the body", response.body.count, target.load.bodySize)
            }
        }
    }
}
