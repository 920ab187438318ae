// SPDX-License-Identifier: Apache-2.0

/// Makes sure that a side did the work that it is measured for.
enum Check {
    /// Throws unless both are equal.
    static func equal<Value: Equatable & Sendable>(_ what: String, _ found: Value, _ wanted: Value) throws {
        guard found == wanted else { throw Unavailable("\(what) is \(found), not \(wanted)") }
    }

    /// Throws unless the size is the wanted one.
    static func size(_ width: Int, _ height: Int, is wanted: (width: Int, height: Int)) throws {
        try self.equal("the image's size", "\(width)x\(height)", "\(wanted.width)x\(wanted.height)")
    }
}
