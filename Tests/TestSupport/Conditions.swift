/// Returns once `condition` holds.
///
/// It yields between two looks and never ends by itself: use it in suites with a time limit.
public func until(_ condition: () throws -> Bool) async rethrows {
    while try !condition() { await Task.yield() }
}
