/// How short memory is.
public enum MemoryPressure: Int, Sendable, Hashable, Comparable {
    /// Some work waits for memory: caches should give up what they can spare.
    case some = 1
    /// All work waits for memory, or the limit of the cgroup is reached: caches should be emptied.
    case full = 2

    public static func < (left: MemoryPressure, right: MemoryPressure) -> Bool {
        left.rawValue < right.rawValue
    }
}
