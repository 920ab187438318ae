/// Returns once `condition` holds, or once the test is cancelled because its time is over.
///
/// It looks again and again: use it in suites with a time limit. Hundreds of tests may wait like this at
/// once, so it soon looks less often: or it would take the processor from what it waits for.
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
