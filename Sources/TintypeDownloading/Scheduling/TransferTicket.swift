/// A transfer's place among those that wait: the least starts first.
struct TransferTicket: Comparable {
    let priority: DownloadPriority
    /// Smaller starts earlier among the equally urgent.
    let order: Int64
    let id: UInt64

    static func < (left: TransferTicket, right: TransferTicket) -> Bool {
        left.priority != right.priority ? left.priority > right.priority : left.order < right.order
    }
}
