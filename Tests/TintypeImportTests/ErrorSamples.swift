// SPDX-License-Identifier: Apache-2.0

import Tintype

// The sample of Docs/errors.md, line by line.

func answer(for error: any Error) -> (status: Int, text: String) {
    guard let error = error as? LoadError else { return (499, "") }
    print(error.code, error.code.category, error.message)
    return (error.httpStatus, error.publicMessage)
}
