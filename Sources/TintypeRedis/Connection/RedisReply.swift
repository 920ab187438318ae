// SPDX-License-Identifier: Apache-2.0

import CTintypeHiredis
import FoundationEssentials

/// The reply to a command: a value, or the text of an error.
enum RedisReply: Equatable {
    case value(RedisValue)
    case error(String)

    /// Bytes up to this length are copied.
    ///
    /// Longer ones keep the memory of hiredis.
    private static let copiedLength = 1 << 10

    /// Takes the value out of a reply of hiredis, which is unusable afterwards, except for `freeReplyObject`.
    ///
    /// The first error in an array is the error of the whole reply.
    init(taking reply: UnsafeMutablePointer<redisReply>) {
        let pointer = reply
        let reply = pointer.pointee
        switch reply.type {
        case REDIS_REPLY_STRING:
            guard let start = reply.str, reply.len > Self.copiedLength else {
                self = .value(.bytes(reply.str.map { Data(bytes: $0, count: reply.len) } ?? Data()))
                return
            }
            // hiredis has allocated the bytes with malloc.
            pointer.pointee.str = nil
            pointer.pointee.len = 0
            self = .value(.bytes(Data(bytesNoCopy: start, count: reply.len, deallocator: .free)))
        case REDIS_REPLY_STATUS: self = .value(.status(Self.text(of: reply)))
        case REDIS_REPLY_INTEGER: self = .value(.integer(reply.integer))
        case REDIS_REPLY_NIL: self = .value(.null)
        case REDIS_REPLY_ERROR: self = .error(Self.text(of: reply))
        case REDIS_REPLY_ARRAY:
            var values: [RedisValue] = []
            values.reserveCapacity(reply.elements)
            for index in 0..<reply.elements {
                guard let element = reply.element[index] else { continue }
                switch RedisReply(taking: element) {
                case .value(let value): values.append(value)
                case .error(let text):
                    self = .error(text)
                    return
                }
            }
            self = .value(.array(values))
        default: self = .error("ERR the reply has the unknown type \(reply.type)")
        }
    }

    private static func text(of reply: redisReply) -> String {
        guard let start = reply.str else { return "" }
        return String(decoding: UnsafeRawBufferPointer(start: start, count: reply.len), as: UTF8.self)
    }
}
