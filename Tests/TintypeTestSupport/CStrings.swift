// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Calls `body` with `strings` as a C array of pointers that ends with a null pointer.
public func withCStrings<Result>(
    _ strings: [String],
    _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
    let pointers = strings.map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeBufferPointer { buffer in
        guard let base = buffer.baseAddress else { preconditionFailure("an array that ends with nil is empty") }
        return body(base)
    }
}
