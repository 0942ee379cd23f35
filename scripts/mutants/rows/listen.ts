import { within } from '../mutation.ts'

/** Guards of `src/listen`. */
export default [
  ...within(
    'src/listen/client.ts',
    ['test/unit/listen/client.test.ts'],
    [
      ['the first address that is not trusted is the client', 'if (!trusted.includes(address)) break', ''],
      [
        'two headers that disagree about the client are not believed',
        'client.address === other.address && client.isSecure === other.isSecure ? client : peer',
        'client',
      ],
    ],
  ),
  ...within(
    'src/listen/connection.ts',
    ['test/unit/listen/upgrades.test.ts'],
    [
      ['CONNECT is refused', "if (request.method === 'CONNECT')", 'if (false)'],
      [
        'an unknown expectation is refused',
        "else if (request.expects === 'other')",
        'else if (false)',
        ['test/system/listen/like-node.test.ts'],
      ],
      [
        'half a head does not hold the drain',
        'else this.#afterMs(HALF_HEAD_MS',
        'else this.#afterMs(1e9',
        ['test/unit/listen/stop.test.ts'],
      ],
      [
        'an unread response closes the connection',
        "if (this.socket.writableLength > 0) return 'unread_answer'",
        '',
        ['test/slow/listen/stuck.test.ts'],
      ],
      [
        'an abandoned body is bounded',
        "if (this.#hasUnreadBody && !this.isBusy) return 'unread_body'",
        '',
        ['test/slow/listen/stuck.test.ts'],
      ],
      [
        'a torn answer without framing ends with a reset',
        'if (isTorn && this.#rules.canReset) socket.resetAndDestroy()',
        'if (isTorn && false) socket.resetAndDestroy()',
        ['test/unit/proxy/lifecycle.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/listen/listener.ts',
    ['test/system/listen/connection-limit.test.ts'],
    [
      [
        'the limit of connections holds for those that a supervisor has accepted',
        "if (count() < limit.max) server.emit('connection', asAccepted(socket))",
        "if (count() >= 0) server.emit('connection', asAccepted(socket))",
      ],
    ],
  ),
  ...within(
    'src/listen/peer.ts',
    ['test/system/e2e/listener-options.test.ts'],
    [
      [
        'only a listed proxy says who the client is',
        'options.trustedProxies?.includes(address) === true ? options.trustedProxies : undefined',
        'options.trustedProxies',
      ],
    ],
  ),
  ...within(
    'src/listen/stall-detector.ts',
    ['test/unit/listen/stall-detector.test.ts'],
    [
      [
        'a client has to take answers at a least rate',
        'progress - this.#progress >= least',
        'progress > this.#progress',
      ],
    ],
  ),
  ...within(
    'src/listen/unread-budget.ts',
    ['test/unit/listen/unread-budget.test.ts', 'test/slow/e2e/slow-readers.test.ts'],
    [
      [
        'answers that wait for their clients have a bound together',
        'const isCrowded = heldBytes > this.#limitBytes',
        'const isCrowded = false',
      ],
      [
        'who holds little of what waits loses nothing to those who hold much',
        'heldBytes > this.#limitBytes && holder.bytes > share',
        'heldBytes > 0 && holder.bytes > 0',
        ['test/unit/listen/unread-budget.test.ts'],
      ],
    ],
  ),
]
