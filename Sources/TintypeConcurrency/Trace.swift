import Synchronization
public enum Trace {
    static let lines = Mutex<[String]>([])
    public static func log(_ s: @autoclosure () -> String) {
        let t = s()
        lines.withLock { l in l.append(t); if l.count > 40000 { l.removeFirst(20000) } }
    }
    public static func dump(_ part: String, _ n: Int) -> [String] {
        lines.withLock { Array($0.filter { $0.contains(part) }.suffix(n)) }
    }
    @TaskLocal public static var call = 0
}
