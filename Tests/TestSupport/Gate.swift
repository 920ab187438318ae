/// A one-shot door that tests open by hand.
public actor Gate {
    private var isOpen = false
    private var waiters: [CheckedContinuation<Void, Never>] = []

    public init() {}

    /// Opens the door for those who wait and those who come later.
    public func open() {
        self.isOpen = true
        let waiters = self.waiters
        self.waiters = []
        for waiter in waiters { waiter.resume() }
    }

    /// Returns once the door is open.
    public func wait() async {
        if self.isOpen { return }
        await withCheckedContinuation { self.waiters.append($0) }
    }
}
