import FoundationEssentials
import TestSupport
import TintypeConcurrency

@testable import Tintype

/// How `work` ends, or `nil` where it has not after some seconds: it is cancelled then.
func outcome<Value: Sendable>(
    of work: @escaping @Sendable () async throws -> Value
) async -> Result<Value, any Error>? {
    let box = Box<Result<Value, any Error>>()
    let task = Task {
        do { box.value = .success(try await work()) } catch { box.value = .failure(error) }
    }
    let deadline = ContinuousClock.now + .seconds(5)
    await until { box.value != nil || ContinuousClock.now > deadline }
    let result = box.value
    task.cancel()
    return result
}

extension Result {
    var failure: (any Error)? {
        if case .failure(let error) = self { error } else { nil }
    }

    var success: Success? {
        if case .success(let value) = self { value } else { nil }
    }
}
