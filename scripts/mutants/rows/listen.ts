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
        'said.address === other.address && said.isSecure === other.isSecure ? said : peer',
        'said',
      ],
    ],
  ),
  ...within(
    'src/listen/connection.ts',
    ['test/slow/listen/pipelining.test.ts'],
    [
      [
        'requests of a connection are answered one after the other',
        'if (this.#waiting.length === 0 && !this.isBusy) return this.#start(request, response, kind)',
        'return this.#start(request, response, kind)',
      ],
      [
        'a connection with too much unanswered is read no further',
        'if (unanswered >= MAX_UNANSWERED) this.pause()',
        '',
      ],
      [
        'nothing is read behind an upgrade that is not served',
        'this.#last ??= request',
        '',
        [
          'test/unit/listen/upgrades.test.ts',
          'test/unit/proxy/ambiguous.test.ts',
          'test/slow/proxy/hostile-clients.test.ts',
        ],
      ],
      [
        'an answer that nobody reads ends the connection',
        "if (this.socket.writableLength > 0) return 'unread_answer'",
        '',
        ['test/slow/listen/stuck.test.ts'],
      ],
      [
        'a body that nobody wants any more has an end',
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
      [
        'other versions of HTTP and lengths beyond counting are refused',
        'if (failure !== undefined) return this.#refuseInTurn(failure)',
        '',
        ['test/unit/listen/malformed.test.ts'],
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
      [
        'deadlines and the stop hold for connections that a supervisor has accepted',
        "server.emit('listening')",
        '',
        ['test/unit/listen/accepted-elsewhere.test.ts'],
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
    'src/listen/short-way.ts',
    ['test/system/listen/ways.test.ts'],
    [['who is handed a connection hears that the client has ended its side', "if (hasEnded) socket.emit('end')", '']],
  ),
  ...within(
    'src/listen/stuck.ts',
    ['test/unit/listen/stuck-watch.test.ts'],
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
