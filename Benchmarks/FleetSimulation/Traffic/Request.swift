// SPDX-License-Identifier: Apache-2.0

/// A request of a client for one result.
struct Request: Equatable, Sendable {
    /// Seconds since the start.
    let time: Double
    /// The item of the catalogue.
    let result: Int
    /// The node that receives the request, or `nil` if the balancer decides.
    var node: Int?
}
