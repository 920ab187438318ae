// SPDX-License-Identifier: Apache-2.0

/// The bar that a figure must reach, as the issue defines it.
enum Bar: Sendable {
    /// Our own figure is at most this.
    case atMost(Double)
    /// Our own figure is less than this.
    case under(Double)
    /// Our own figure is at least this.
    case atLeast(Double)
    /// We are at least so many times as good as the peer.
    case times(Double)

    /// Returns whether the medians reach it, or `nil` if there is nothing to compare.
    func isReached(ours: Double?, ratio: Double?) -> Bool? {
        switch self {
        case .atMost(let limit): ours.map { $0 <= limit }
        case .under(let limit): ours.map { $0 < limit }
        case .atLeast(let limit): ours.map { $0 >= limit }
        case .times(let limit): ratio.map { $0 >= limit }
        }
    }

    /// As it stands in the table.
    var text: String {
        switch self {
        case .atMost(let limit): "<=\(Figure.text(limit))"
        case .under(let limit): "<\(Figure.text(limit))"
        case .atLeast(let limit): ">=\(Figure.text(limit))"
        case .times(let limit): ">=\(Figure.text(limit))x"
        }
    }
}
