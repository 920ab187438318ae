import Glibc

/// Which start of the system this is: after another one, memory that was mapped may have been lost.
struct BootIdentity: Sendable, Hashable {
    let high: UInt64
    let low: UInt64

    /// This system's; zeros where the kernel does not say, which counts as always the same.
    static let current: BootIdentity = {
        let descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return BootIdentity(high: 0, low: 0) }
        defer { close(descriptor) }
        var text = [UInt8](repeating: 0, count: 64)
        let count = read(descriptor, &text, text.count)
        var digits: [UInt64] = []
        for character in text.prefix(max(0, count)) {
            if let value = KeyDigest.value(of: character) { digits.append(UInt64(value)) }
        }
        guard digits.count == 32 else { return BootIdentity(high: 0, low: 0) }
        return BootIdentity(
            high: digits[..<16].reduce(0) { $0 << 4 | $1 },
            low: digits[16...].reduce(0) { $0 << 4 | $1 }
        )
    }()
}
