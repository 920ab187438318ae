// SPDX-License-Identifier: Apache-2.0

/// A hash table from keys to slots, with open addressing.
///
/// It uses the hashes that the keys contain. `Dictionary` would hash them again, which takes half of the time of a
/// look-up.
struct KeyTable: ~Copyable, Sendable {
    struct Bucket: Sendable {
        /// The upper half of the key's hash; a search compares the keys only if it is equal.
        var tag: UInt32
        /// The slot, or a negative number if the bucket is empty.
        var slot: Int32

        static let empty = Bucket(tag: 0, slot: -1)
    }

    /// A key and its identity, which a search compares without retaining the key.
    struct Key: Sendable {
        let identity: UInt
        let key: CacheKey
    }

    /// The buckets: a power of two, and at least a quarter of them empty.
    private var buckets = SlotMemory<Bucket>(count: 16, of: .empty)
    /// The key in each slot.
    private var keys = SlotMemory<Key?>()
    private(set) var count = 0

    /// Returns the slot of `key`, or `nil` if it has no slot.
    @inline(__always)
    func slot(of key: CacheKey) -> Int? {
        let position = self.position(of: key)
        return position < 0 ? nil : Int(self.buckets[position].slot)
    }

    /// Returns the keys that satisfy `isIncluded`.
    func keys(where isIncluded: (CacheKey) -> Bool) -> [CacheKey] {
        (0..<self.keys.count).compactMap { self.keys[$0]?.key }.filter(isIncluded)
    }

    /// Assigns the free `slot` to `key`, which must not have a slot yet.
    mutating func insert(_ key: CacheKey, slot: Int) {
        if (self.count + 1) * 4 > self.buckets.count * 3 { self.grow() }
        while self.keys.count <= slot { self.keys.append(nil) }
        self.keys[slot] = Key(identity: key.identity, key: key)
        self.count += 1
        self.place(Bucket(tag: Self.tag(of: key.hash), slot: Int32(slot)), hash: key.hash)
    }

    /// Removes the key of `slot`, which is free afterwards.
    mutating func remove(_ slot: Int) {
        guard let key = self.keys[slot]?.key else { return }
        var hole = self.position(of: key)
        let mask = self.buckets.count - 1
        // Move every bucket that a search reaches only across the hole into the hole.
        var next = (hole + 1) & mask
        while self.buckets[next].slot >= 0 {
            let home = self.home(of: self.hash(in: Int(self.buckets[next].slot)))
            if (next &- home) & mask >= (next &- hole) & mask {
                self.buckets[hole] = self.buckets[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        self.buckets[hole] = .empty
        self.keys[slot] = nil
        self.count -= 1
    }

    /// Returns the index of the bucket of `key`, or -1.
    @inline(__always)
    private func position(of key: CacheKey) -> Int {
        let tag = Self.tag(of: key.hash)
        let identity = key.identity
        let mask = self.buckets.count - 1
        var position = self.home(of: key.hash)
        while true {
            let bucket = self.buckets[position]
            if bucket.slot < 0 { return -1 }
            if bucket.tag == tag {
                let held = self.keys.address(of: Int(bucket.slot))
                if held.pointee?.identity == identity || held.pointee?.key == key { return position }
            }
            position = (position + 1) & mask
        }
    }

    private mutating func place(_ bucket: Bucket, hash: UInt64) {
        let mask = self.buckets.count - 1
        var position = self.home(of: hash)
        while self.buckets[position].slot >= 0 { position = (position + 1) & mask }
        self.buckets[position] = bucket
    }

    private mutating func grow() {
        var old = SlotMemory<Bucket>(count: self.buckets.count * 2, of: .empty)
        swap(&old, &self.buckets)
        for index in 0..<old.count where old[index].slot >= 0 {
            self.place(old[index], hash: self.hash(in: Int(old[index].slot)))
        }
    }

    private func hash(in slot: Int) -> UInt64 {
        self.keys[slot]?.key.hash ?? 0
    }

    private func home(of hash: UInt64) -> Int {
        Int(truncatingIfNeeded: hash) & (self.buckets.count - 1)
    }

    private static func tag(of hash: UInt64) -> UInt32 {
        UInt32(truncatingIfNeeded: hash >> 32)
    }
}

/// A value for each slot, in memory without a reference count.
///
/// Readers on several cores would all write the reference count of an array.
///
/// `Sendable` is safe because the value owns its memory alone.
struct SlotMemory<Value: Sendable>: ~Copyable, @unchecked Sendable {
    private var base: UnsafeMutablePointer<Value>
    private var capacity: Int
    /// The number of slots in use, which are the first ones.
    private(set) var count = 0

    /// Allocates memory, with no slot in use.
    init() {
        self.capacity = 16
        self.base = .allocate(capacity: self.capacity)
    }

    /// Creates `count` slots with `value`.
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

    /// Returns the address of a slot in use, from which the caller can read a part without copying the rest.
    @inline(__always)
    func address(of slot: Int) -> UnsafePointer<Value> {
        assert(slot >= 0 && slot < self.count)
        return UnsafePointer(self.base + slot)
    }

    /// Adds a slot with `value`.
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
