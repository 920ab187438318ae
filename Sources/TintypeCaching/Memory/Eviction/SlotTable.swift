/// A value for each slot; slots that were never set have the default.
package struct SlotTable<Value: Sendable>: Sendable {
    private var values: [Value] = []
    private let initial: Value

    /// Makes a table in which every slot has `initial`.
    package init(_ initial: Value) {
        self.initial = initial
    }

    /// The value of `slot`.
    package subscript(slot: Int) -> Value {
        get { slot < self.values.count ? self.values[slot] : self.initial }
        set {
            while self.values.count <= slot { self.values.append(self.initial) }
            self.values[slot] = newValue
        }
    }
}
