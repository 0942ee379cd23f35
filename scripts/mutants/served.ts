import { type Mutation, within } from './mutation.ts'

const WAYS = ['test/system/listen/ways.test.ts']
const SERVED_TESTS = ['test/unit/wire/served.test.ts']
const BODIES = ['test/unit/listen/bodies.test.ts']

/** Whose the requests of a connection are, and whose their answers: the client's side of `wire`. */
export const SERVED: readonly Mutation[] = [
  ...within(
    'src/wire/received-head.ts',
    ['test/unit/wire/received.test.ts'],
    [
      ['a head that is taken has no control characters', 'checkSection(text)\n', '\n'],
      ['only HTTP/1.1 is taken', 'HTTP\\/1\\.1$/', 'HTTP\\/1\\.[01]$/'],
      ['only origin-form is taken', '(\\/[', '(['],
      ['there is one blank in a request line', 'OPTIONS) (', 'OPTIONS) +('],
      ['fragments are not taken', '\\x22\\x24', '\\x22-\\x24'],
      ['an upgrade is not taken', "if (typeof fields['upgrade'] === 'string')", 'if (false)'],
      ['CONNECT asks for another protocol', "text.startsWith('CONNECT ')", 'false'],
      ['an expectation is not taken', "['expect', ", '['],
      ['what some take for Connection is not taken', "'proxy-connection', ", ''],
      ['other words of Connection are not taken', 'if (keeps === undefined)', 'if (false)'],
    ],
  ),
  ...within(
    'src/wire/request-reader.ts',
    ['test/unit/wire/received.test.ts'],
    [
      ['close is the end', 'this.#keeps ? HELD : STOPPED', 'HELD'],
      [
        'a head that is not taken is given back with what came in earlier pieces',
        'Buffer.from(`${text}\\r\\n\\r\\n`, ',
        'Buffer.from("", ',
      ],
      [
        'a head that is too large is given back with what came in earlier pieces',
        'Buffer.concat([this.stop(), bytes.subarray(at)])',
        'bytes.subarray(at)',
      ],
      ['trailers of a request are lines', 'checkTrailers(text)', ''],
      ['a body with a length ends there', 'Math.min(bytes.length, at + this.#left)', 'bytes.length'],
      ['a request without a body is whole with its head', 'if (body === 0) this.#finish()', ''],
    ],
  ),
  ...within(
    'src/wire/served-connection.ts',
    ['test/unit/listen/handed-over.test.ts'],
    [
      [
        'what came while nobody took it is handed over before the rest',
        'this.#socket.readableLength > 0 ? (this.#socket.read() as Buffer | null) : null',
        'null as Buffer | null',
      ],
    ],
  ),
  ...within('src/wire/served-connection.ts', WAYS, [
    [
      'what comes behind a request waits for its answer',
      'if (this.#response !== undefined) return false\n',
      '',
      ['test/system/listen/pipelining.test.ts'],
    ],
    [
      'bytes that come while others wait come behind them',
      'if (this.#waiting.length === 0) return this.#read(bytes)',
      'return this.#read(bytes)',
      ['test/system/listen/pipelining.test.ts'],
    ],
    [
      'bytes that wait are bounded',
      'this.#waitingBytes > MAX_WAITING_BYTES ||',
      'false &&',
      ['test/system/listen/pipelining.test.ts'],
    ],

    [
      'a body that breaks off is not a whole one',
      'if (this.#reader.isInBody) return this.#fail(',
      'if (this.#reader.isInBody) return void (',
      ['test/unit/listen/half-closed.test.ts'],
    ],
    [
      'a body is read as fast as it is taken',
      'if (this.#request?.receive(data) === false) this.#socket.pause()',
      'this.#request?.receive(data)',
      BODIES,
    ],

    ['heads have a deadline', 'this.#isFresh || this.#reader.isInHead', 'this.#isFresh'],
    ['an idle connection has a deadline', '&& sinceMs >= keepAliveMs)', '&& false)'],
    ['requests have a deadline where one is asked for', '&& sinceMs >= requestMs)', '&& false)', SERVED_TESTS],
    [
      'a deadline of a request begins with it',
      'if (this.#reader.isBetween) this.#sinceMs',
      'this.#sinceMs',
      SERVED_TESTS,
    ],
    ['an error of ours is none of the client', 'if (!(error instanceof WireError)) throw error', '', SERVED_TESTS],
    [
      'an idle connection holds nothing of its last request',
      '      // An idle connection holds nothing of its last request.\n      this.#request = undefined',
      '',
      ['test/slow/e2e/kept-tokens.test.ts'],
    ],
    ['a body that is read late stops nothing', '    this.#resume()\n', '', BODIES],
    ['nothing is handed over behind the last answer', '&& this.#socket.writable)', ')', BODIES],
    ['the last answer ends the connection', 'if (!keeps) this.#socket.destroySoon()', ''],
    ['the next request has its turn', 'this.#readWaiting()\n  }', '}', ['test/system/listen/pipelining.test.ts']],
    ['whoever reads a body hears that its client has gone', "this.#request?.destroy(new Error('aborted'))", '', BODIES],
    [
      'a connection that is being answered is not idle',
      '!this.#isGone && this.#response === undefined && ',
      '!this.#isGone && ',
      ['test/unit/listen/stop.test.ts'],
    ],
  ]),
  ...within('src/wire/served-request.ts', BODIES, [
    [
      'a body in pieces that nobody reads is thrown away',
      'this.readableFlowing !== null && !this.destroyed',
      'this.#isWanted && !this.destroyed',
    ],
    [
      'nobody gets half a body for a whole one',
      '!this.complete || this.#isWanted',
      'this.#isWanted',
      ['test/slow/proxy/body.test.ts'],
    ],
    ['nobody gets the end of a body for all of it', 'this.#isSplit || this.destroyed', 'this.destroyed', SERVED_TESTS],
  ]),
  ...within('src/listen/short-way.ts', WAYS, [
    ['who is handed a connection hears that the client has ended its side', "if (hasEnded) socket.emit('end')", ''],
  ]),
  ...within('src/wire/answer-writer.ts', WAYS, [
    [
      'no header value begins another line of an answer',
      'if (name === undefined || !isFieldValue(value))',
      'if (name === undefined)',
    ],
    [
      'an answer without a body has none',
      '!context.isHead && status >= 200 && status !== 204 && status !== 304',
      '!context.isHead',
    ],
  ]),
  ...within('src/wire/served-response.ts', WAYS, [
    ['nothing is written past a refusal', 'socket === null || !socket.writable || head', 'socket === null || head'],
    ['an answer is no longer than it says', ': sent > length', ': false'],
    ['an answer is no shorter than it says', 'isEnd ? sent !== length', 'isEnd ? false'],
  ]),
  {
    rule: 'what a look finds after its registry has gone is not told, and brings no series back',
    file: 'src/registry/registry-data.ts',
    find: '      if (isClosed) return\n      if (snapshot',
    replace: '      if (snapshot',
    tests: ['test/unit/registry/registry-data.test.ts'],
  },
  {
    rule: 'nor is a failure of it',
    file: 'src/registry/registry-data.ts',
    find: '      if (isClosed) return\n      const known',
    replace: '      const known',
    tests: ['test/unit/registry/registry-data.test.ts'],
  },
]
