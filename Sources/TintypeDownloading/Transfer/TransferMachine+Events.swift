// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeHTTP

// The events that happen to a transfer, and the actions that follow.

extension TransferMachine {
    enum Event {
        /// The transfer may be sent: it is prepared, or the time of the next try has come.
        case submit
        /// libcurl receives the request.
        case send(asksForRest: Bool, date: Date)
        /// A line of a head or of trailers has arrived.
        case line(HeaderLine, byteCount: Int, isMultiplexed: Bool)
        /// libcurl has answered a challenge, and the head of the real response begins.
        case answerChallenge
        /// The fields of the whole response are known, of which only the rest has arrived.
        case complete(HeaderFields)
        /// The head has been read, and leads to this plan for the body.
        case expect(BodyPlan)
        /// Bytes of the body have arrived, as they are on the network.
        case bytes(Int)
        /// The bytes cannot be taken now.
        case pause(Pause)
        /// A reader has room again, or there is memory. So many bytes of the body have arrived on the network.
        case resume(bodyBytes: Int64)
        case stop(StopReason)
        /// The limits are due for a check. `connectTime` is the time until the request could be sent, zero before that,
        /// and `bodyBytes` is the number of bytes that have arrived.
        case look(connectTime: Duration, bodyBytes: Int64)
        /// libcurl has ended the request.
        case finish
        /// The request goes to another address, or for the whole body instead of the rest.
        case sendAgain
        /// The request has failed, and is tried once more.
        case retry(after: Duration)
        /// Hooks receive the response.
        case process
        case end
    }

    enum Action: Equatable {
        case none
        /// Let the transfer wait for a place.
        case enqueue
        /// Submit the transfer at that time.
        case submit(at: Instant)
        /// Check its limits at that time.
        case look(at: Instant)
        /// A limit has passed: take the request away from libcurl.
        case expire(TimeLimit)
        /// Continue.
        case proceed
        /// Read the head, which is complete.
        case readHead
        /// The head is too long.
        case refuseHead
        /// Another response begins within the body.
        case refuseResponse
        /// Take the bytes.
        case take
        /// Discard the bytes.
        case discard
        /// Let libcurl keep the bytes.
        case hold
        /// Let libcurl abort the request.
        case abort
        /// Let libcurl go on.
        case unpause
        /// Judge the response.
        case judge
        /// Release the memory of the transfer.
        case yield
        /// Notify the waiting callers.
        case finish
    }

    enum TimeLimit {
        case total
        case silence
        case firstByte
        case speed
    }
}
