/// A value for each slot, in memory of its own.
///
/// An array would do, but for its reference count: readers on several cores would all write it.
///
/// Sendable although unchecked: it owns its memory alone, so that it is as safe as its values are.
struct SlotMemory<Value: Sendable>: ~Copyable, @unchecked Sendable {
    private var base: UnsafeMutablePointer<Value>
    private var capacity: Int
    /// The slots in use are those below.
    private(set) var count = 0

    /// Allocates room for some values, and uses none of it.
    init() {
        self.capacity = 16
        self.base = .allocate(capacity: self.capacity)
    }

    /// Makes `count` slots that have `value`.
    init(count: Int, of value: Value) {
        self.capacity = count
        self.base = .allocate(capacity: count)
        self.base.initialize(repeating: value, count: count)
        self.count = count
    }

    deinit {
        self.base.deinitialize(count: self.count)
        self.base.deallocate()
    }

    /// The value of a slot in use.
    subscript(slot: Int) -> Value {
        @inline(__always) get {
            assert(slot >= 0 && slot < self.count)
            return self.base[slot]
        }
        set {
            precondition(slot >= 0 && slot < self.count, "slot \(slot) is not in use")
            self.base[slot] = newValue
        }
    }

    /// The address of the value of a slot in use, to read a part of it without copying the rest.
    @inline(__always)
    func address(of slot: Int) -> UnsafePointer<Value> {
        assert(slot >= 0 && slot < self.count)
        return UnsafePointer(self.base + slot)
    }

    /// Uses one more slot.
    mutating func append(_ value: Value) {
        if self.count == self.capacity {
            let larger = UnsafeMutablePointer<Value>.allocate(capacity: self.capacity * 2)
            larger.moveInitialize(from: self.base, count: self.count)
            self.base.deallocate()
            self.base = larger
            self.capacity *= 2
        }
        (self.base + self.count).initialize(to: value)
        self.count += 1
    }
}
