import CTintypeAllocationMeter
import CTintypeShims

/// Measures the heap that a piece of work takes, exactly and alike in every run: only what its own thread allocates
/// counts, so that tests beside it change nothing.
public enum AllocatedMemory {
    /// Whether it can be measured: not with a sanitizer, which replaces the same functions.
    public static var isMeasured: Bool { allocation_meter_is_available() }

    /// Runs `body` and counts how often it allocates on this thread.
    public static func count(of body: () -> Void) -> Int {
        allocation_meter_start()
        body()
        let count = Int(allocation_meter_count())
        _ = allocation_meter_stop()
        return count
    }

    /// Runs `body` and measures the most bytes that it had allocated at once on this thread.
    ///
    /// Memory that was asked for counts in full, also where it was never written. What is mapped without `malloc`
    /// does not count. Large blocks are all new ones.
    public static func peak<Result>(of body: () throws -> Result) rethrows -> (result: Result, byteCount: Int) {
        cshims_pause_blocks(1)
        defer { cshims_pause_blocks(-1) }
        allocation_meter_start()
        let byteCount: Int
        let result: Result
        do {
            result = try body()
            byteCount = Int(allocation_meter_stop())
        } catch {
            _ = allocation_meter_stop()
            throw error
        }
        return (result, byteCount)
    }
}
