// SPDX-License-Identifier: Apache-2.0

/// Returns as soon as `condition` is true, or when the test is cancelled because its time is over.
///
/// Checks the condition again and again, so use it in suites with a time limit. Hundreds of tests may wait at once. To
/// leave the processor to the code that they wait for, it soon checks less often.
public func until(_ condition: () async throws -> Bool) async rethrows {
    var looks = 0
    while try await !condition(), !Task.isCancelled {
        looks += 1
        if looks < 100 {
            await Task.yield()
        } else {
            try? await ContinuousClock().sleep(for: .milliseconds(2))
        }
    }
}
