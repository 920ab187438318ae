// SPDX-License-Identifier: Apache-2.0

import TintypeImage
import TintypeRequests

/// The load of a request, of its alternatives if that fails, and at last its fallback.
enum AlternativeLoad {
    /// Returns the first value that `load` gives for the request or one of its alternatives, in order.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - load: Loads the request (`isFirst`) or an alternative.
    /// - Returns: The value, and the place of the alternative that gave it; `nil` for the request itself.
    /// - Throws: `LoadError` with all attempts, if there are several; `CancellationError` at once.
    static func first<Value>(
        of request: ImageRequest,
        _ load: (_ request: ImageRequest, _ isFirst: Bool) async throws -> Value
    ) async throws -> (value: Value, alternative: Int?) {
        var attempts: [LoadAttempt] = []
        do {
            return (try await load(request, true), nil)
        } catch let error as LoadError {
            guard !request.alternatives.isEmpty, !self.isFinal(error) else { throw error }
            attempts.append(LoadAttempt(request: request, error: error))
        }
        for (index, alternative) in request.alternatives.enumerated() {
            try Task.checkCancellation()
            do {
                return (try await load(alternative, false), index)
            } catch let error as LoadError {
                guard !self.isFinal(error) else { throw error }
                attempts.append(LoadAttempt(request: alternative, error: error))
            }
        }
        throw self.failure(of: attempts)
    }

    /// Returns the fallback of a request whose sources have all failed.
    ///
    /// - Throws: `error` if there is no fallback, or if the copy that the caller has is current.
    static func fallback(of request: ImageRequest, after error: LoadError) throws(LoadError) -> Image {
        guard let fallback = request.fallback, error.code != .notModified else { throw error }
        return fallback
    }

    /// Whether no other source is tried: the copy that the caller has is current, or the loader has been shut down.
    private static func isFinal(_ error: LoadError) -> Bool { error.code == .notModified || error.code == .shutDown }

    private static func failure(of attempts: [LoadAttempt]) -> LoadError {
        let last = attempts[attempts.count - 1].error
        var error = LoadError(
            code: last.code,
            message: "All \(attempts.count) sources failed. " + self.summary(of: attempts),
            underlyingError: last.underlyingError
        )
        error.attempts = attempts
        return error
    }

    /// The messages of the attempts, each with its URL, and the note on remembered failures once.
    private static func summary(of attempts: [LoadAttempt]) -> String {
        var isAnyRemembered = false
        var messages = attempts.map { attempt in
            var message = attempt.error.message
            if message.hasSuffix(FailureMemory.note) {
                message.removeLast(FailureMemory.note.count)
                isAnyRemembered = true
            }
            let url = attempt.request.displayURL
            return message.contains(url) ? message : "\(url): \(message)"
        }
        if isAnyRemembered { messages[messages.count - 1] += FailureMemory.note }
        return messages.joined(separator: " ")
    }
}
