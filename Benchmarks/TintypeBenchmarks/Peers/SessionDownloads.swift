// SPDX-License-Identifier: Apache-2.0

import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Foundation's `URLSession`: one session, so many connections, bodies as `Data`.
enum SessionDownloads {
    static let name = "URLSession"

    /// A session with `connections` connections to the host at most, and no cache and no cookies.
    static func contestant(_ target: Downloads.Target, connections: Int) throws -> Contestant {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = connections
        configuration.urlCache = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.httpCookieStorage = nil
        let session = URLSession(configuration: configuration)
        let requests = try target.addresses.map { address in
            guard let url = URL(string: address) else { throw Unavailable("bad address \(address)") }
            return URLRequest(url: url)
        }
        let choice = target.load.needsConnections ? "" : ", the faster of 6 and 64"
        let note = "one session, httpMaximumConnectionsPerHost \(connections)\(choice)"
        return Contestant(counts: min(60, target.load.leastCount)...200_000, note: note) { count in
            try await Fetching.measure(count: count, width: requests.count) { lane in
                let (data, response) = try await session.data(for: requests[lane])
                try Check.equal("the status", (response as? HTTPURLResponse)?.statusCode ?? 0, 200)
                try Check.equal("the size of the body", data.count, target.load.bodySize)
            }
        }
    }
}
