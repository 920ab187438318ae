// SPDX-License-Identifier: Apache-2.0

import CTintypeAllocationMeter
import CTintypeShims

/// Measures the heap memory that code allocates, exactly and with the same result in every run.
///
/// Only allocations on the code's own thread count, so other tests do not affect the result.
public enum AllocatedMemory {
    /// Whether allocations can be measured, which is false with a sanitizer because it replaces the same functions.
    public static var isMeasured: Bool { allocation_meter_is_available() }

    /// Runs `body` and returns the number of its allocations on this thread.
    public static func count(of body: () -> Void) -> Int {
        allocation_meter_start()
        body()
        let count = Int(allocation_meter_count())
        _ = allocation_meter_stop()
        return count
    }

    /// Runs `body` and returns the most bytes that it had allocated at once on this thread.
    ///
    /// Allocated memory counts in full, even if it was never written. Memory that is mapped without `malloc` does not
    /// count. Blocks from the pool of large blocks are not reused meanwhile.
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
