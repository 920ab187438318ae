/// How far a list of loads is.
struct ListTotals: Sendable {
    let total: Int
    var completed = 0
    var failed = 0
    var receivedBytes: Int64 = 0

    init(total: Int) {
        self.total = total
    }

    /// The part of the list that has ended, 0 to 1.
    var fractionCompleted: Double {
        self.total > 0 ? Double(self.completed) / Double(self.total) : 1
    }

    /// Count, bytes, rate, failures and time left.
    func figures(after seconds: Double) -> String {
        var text = "\(self.completed) of \(self.total), \(Readable.bytes(self.receivedBytes))"
        text += ", \(Readable.bytes(Int64(Double(self.receivedBytes) / seconds)))/s"
        if self.failed > 0 { text += ", \(self.failed) failed" }
        if self.completed > 0, self.completed < self.total {
            let rest = seconds / Double(self.completed) * Double(self.total - self.completed)
            text += ", \(Readable.seconds(rest)) left"
        }
        return text
    }
}
