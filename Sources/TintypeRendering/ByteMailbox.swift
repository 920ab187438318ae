// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import TintypeConcurrency

/// Bytes that have arrived and are not decoded yet.
///
/// The network puts them in, and the preview takes all of them at once. So it is never behind by more than one step.
package final class ByteMailbox: Sendable {
    private struct State {
        var bytes = Data()
        var isOver = false
        var reader: CheckedContinuation<Data?, Never>?
    }

    private let state = Locked(State())

    package init() {}

    /// Adds bytes at the end.
    package func put(_ bytes: Data) {
        let reader = self.state.withLock { state -> CheckedContinuation<Data?, Never>? in
            guard !state.isOver else { return nil }
            if let reader = state.reader.take() { return reader }
            state.bytes.append(bytes)
            return nil
        }
        reader?.resume(returning: bytes)
    }

    /// Ends the bytes, and drops the remaining ones.
    package func finish() {
        let reader = self.state.withLock { state in
            state.isOver = true
            state.bytes = Data()
            return state.reader.take()
        }
        reader?.resume(returning: nil)
    }

    /// Returns all bytes that are there, or the next ones that arrive; `nil` after the end.
    package func take() async -> Data? {
        await withCheckedContinuation { reader in
            let result = self.state.withLock { state -> Data?? in
                if state.isOver { return .some(nil) }
                guard !state.bytes.isEmpty else {
                    state.reader = reader
                    return .none
                }
                defer { state.bytes = Data() }
                return state.bytes
            }
            if let result { reader.resume(returning: result) }
        }
    }
}
