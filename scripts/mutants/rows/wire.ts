import { within } from '../mutation.ts'

/** Guards of `src/wire`. */
export default [
  ...within(
    'src/wire/answer-head.ts',
    ['test/unit/wire/answers.test.ts'],
    [
      ['a head has no control characters', 'checkSection(text)\n', '\n'],
      ['a head is HTTP/1', 'HTTP\\/1\\.([01])', 'HTTP\\/[12]\\.([0-9])'],
    ],
  ),
  ...within(
    'src/wire/answer-reader.ts',
    ['test/unit/wire/answers.test.ts'],
    [
      ['trailers are lines', 'checkTrailers(text)', ''],
      ['a head of another protocol fails early', 'if (!BEGINNING.startsWith(begun))', 'if (false)'],
      ['nor for the end of a head with bare LFs', 'if (!canBecomeSection(held, from))', 'if (false)'],
      ['the end of a connection ends no other answer', 'if (this.#state !== UNTIL_CLOSE) return false', ''],
    ],
  ),
  ...within(
    'src/wire/answer-writer.ts',
    ['test/system/listen/like-node.test.ts'],
    [
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
    ],
  ),
  ...within(
    'src/wire/body-sender.ts',
    ['test/unit/wire/exchange.test.ts'],
    [
      ['a streamed body is not longer than announced', 'this.#sent > this.#length', 'false'],
      ['a streamed body is not shorter than announced', 'this.#sent !== this.#length', 'false'],
      ['a body that breaks off has no end', "if (!this.isOver) this.#fail(wrong('not whole'))", 'this.#onEnd()'],
    ],
  ),
  ...within(
    'src/wire/chunk-reader.ts',
    ['test/unit/wire/answers.test.ts'],
    [
      [
        'a chunk is as long as it says',
        "throw malformed('a chunk that is longer than its announced length')",
        'void 0',
      ],
      ['the size of a chunk is bounded', 'if (++this.#digits > MAX_DIGITS)', 'if (++this.#digits < 0)'],
      [
        'extensions of the last chunk do not hide that it is the last',
        'return this.#state === SIZE || this.#state === EXTENSION',
        'return this.#state === SIZE',
      ],
      ['extensions are what they may be', 'if (!EXTENSIONS.test(text))', 'if (false)'],
      ['extensions are bounded', 'if (this.#extensions.length > MAX_EXTENSIONS)', 'if (false)'],
    ],
  ),
  ...within(
    'src/wire/connection-budget.ts',
    ['test/unit/wire/connection-budget.test.ts'],
    [
      [
        'connections of several pools are bounded together',
        'if (this.#taken < this.#max) this.#taken++',
        'if (this.#taken < Infinity) this.#taken++',
      ],
      [
        'a connection that fails gives its place back',
        '      this.#releaseSlot()\n      throw error',
        '      throw error',
      ],
      [
        'idle connections are closed for waiting requests',
        '    this.#reclaimIdle()\n    return promise',
        '    return promise',
      ],
    ],
  ),
  ...within(
    'src/wire/connection.ts',
    ['test/unit/wire/exchange.test.ts'],
    [
      [
        'an unsolicited response closes the connection',
        'if (this.#exchange === undefined) return this.#lose()',
        'if (this.#exchange === undefined) return',
        ['test/system/wire/pool.test.ts'],
      ],
      [
        'what follows an answer ends the connection',
        "if (rest.length > 0) return this.destroy(malformed('more than an answer'))",
        '',
        ['test/system/wire/pool.test.ts'],
      ],
      ['an early answer ends the connection', 'const isKept = isWhole && ', 'const isKept = '],
      ['only who asked for a protocol is switched to it', "!this.#isUpgrade || fields['upgrade']", "fields['upgrade']"],
      [
        'what is over has no hold of the next exchange',
        'abort(exchange: Exchange, reason: Error): void {\n    if (this.#exchange !== exchange) return',
        'abort(exchange: Exchange, reason: Error): void {',
      ],
    ],
  ),
  ...within(
    'src/wire/fields.ts',
    ['test/unit/wire/answers.test.ts'],
    [
      ['a header line has a token for a name', 'if (!TOKEN.test(raw)) return undefined', ''],
      ['header lines are counted', 'own === undefined && ++lines > MAX_LINES', 'own === undefined && ++lines < 0'],
      [
        'a tab behind a value is refused',
        "throw malformed('a tab behind a header value')",
        'return text.slice(start, end - 1)',
      ],
      [
        'a request has one length and one coding',
        'throw malformed(`${name} twice`)',
        'return',
        ['test/unit/wire/received.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/wire/framing.ts',
    ['test/unit/wire/answers.test.ts'],
    [
      ['a length and chunks are refused', 'if (isChunked && length !== undefined)', 'if (false)'],
      ['chunks in HTTP/1.0 are refused', 'if (isChunked && isOld)', 'if (false)'],
      ['an interim answer has no body', 'if (hasBodyFields) throw', 'if (false) throw'],
      ['an answer to HEAD has no body', 'if (isHead) return', 'if (false) return'],
      ['204 and 304 have no body', 'if (status === 204 || status === 304)', 'if (false)'],
      ['a connection on which a body may follow 204 is not kept', 'keepMs: hasBodyFields ? 0 : keepMs', 'keepMs'],
      ['HTTP/1.0 is not kept', 'isOld ? 0 : keepMsOf(fields)', 'keepMsOf(fields)', ['test/system/wire/pool.test.ts']],
      ['close is heard', 'CLOSE.test(joined(connection))', 'CLOSE.test("")'],
      ['a length is decimal', ' && LENGTH.test(value) ?', ' ?'],
      [
        'a length can be counted to',
        'if (!Number.isSafeInteger(length))',
        'if (Number.isNaN(length))',
        ['test/unit/wire/received.test.ts'],
      ],
      [
        'there is one coding, and it is chunked',
        "value.toLowerCase() === 'chunked'",
        "value.toLowerCase().endsWith('chunked')",
      ],
      [
        'a request with a length and chunks is not taken',
        "if (length !== undefined) throw malformed('a length and chunks')",
        '',
        ['test/unit/wire/received.test.ts'],
      ],
      [
        'a request of HTTP/1.0 has no chunks',
        "if (isOld) throw malformed('chunks in HTTP/1.0')",
        '',
        ['test/unit/wire/received.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/wire/pool.ts',
    ['test/system/wire/pool.test.ts'],
    [
      ['a used connection rests a turn', '    this.#fresh.push(connection)', '    this.#ready.push(connection)'],
      ['a peer that closes soon is believed', 'Math.min(hintMs, this.#options.keepMs)', 'this.#options.keepMs'],
      ['a request that is withdrawn takes its attempt to connect with it', 'exchange.attempt?.abort(reason)', ''],
      [
        'a request that is withdrawn leaves no body behind',
        'exchange.attempt = exchange.request = exchange.place = undefined',
        '',
      ],
      [
        'the longest waiting request is served',
        'if (leftMs <= 0 || isWanted)',
        'if (leftMs <= 0)',
        ['test/unit/wire/connection-budget.test.ts'],
      ],
      [
        'who needs no connection any more waits for none',
        'if (this.#waiting.length - this.#fresh.length >= this.#connecting) return true',
        'if (this.#connecting > 0) return true',
        ['test/unit/wire/connection-budget.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/wire/received-head.ts',
    ['test/unit/wire/received.test.ts'],
    [
      ['a head that is taken has no control characters', 'checkSection(text)\n', '\n'],
      ['only HTTP/1.1 and 1.0 are taken', '([01])$/', '([0-9])$/'],
      ['a method is one of HTTP', "if (!isMethod(method)) throw malformed('no method of HTTP')", ''],
      ['a target has a known form', '!isOrigin && method', 'false && method'],
      [
        'a second protocol does not begin behind a body',
        'connection.upgrade && !isOld && body === 0',
        'connection.upgrade && !isOld',
      ],
      [
        'HTTP/1.0 has no second protocol',
        'connection.upgrade && !isOld && body === 0',
        'connection.upgrade && body === 0',
      ],
      ['HTTP/1.0 is not kept alive by default', '(!isOld || connection.keepAlive)', 'true'],
      ['close is heard beside other words', "close: has('close')", "close: options.length === 1 && has('close')"],
    ],
  ),
  ...within(
    'src/wire/request-head.ts',
    ['test/unit/wire/requests.test.ts'],
    [
      ['values have no line ends', 'value === undefined || !isFieldValue(value)', 'value === undefined'],
      ['targets are in origin-form', 'if (!TARGET.test(path))', 'if (false)'],
      ['framing is ours', '|| OWN_HEADERS.has(name)', ''],
      ['there is one host', "if (hasHost) throw refused('host')", ''],
      ['a length is that of the body', 'if (length !== undefined && length !== body.length)', 'if (false)'],
    ],
  ),
  ...within(
    'src/wire/request-reader.ts',
    ['test/unit/wire/received.test.ts'],
    [
      ['close is the end', 'this.#keeps ? HELD : STOPPED', 'HELD'],
      [
        'another protocol is not read',
        'if (this.#sink.onHead(head)) this.#state = OTHER',
        'if (this.#sink.onHead(head)) this.#state = HELD - HELD',
      ],
      ['a bare CR is no empty line', 'if (this.#isInEmptyLine && at < bytes.length)', 'if (false)'],
      ['trailers of a request are lines', 'checkTrailers(text)', ''],
      ['a body with a length ends there', 'Math.min(bytes.length, at + this.#left)', 'bytes.length'],
      ['a request without a body is whole with its head', 'else if (body === 0) this.#finish()', ''],
    ],
  ),
  ...within(
    'src/wire/section-reader.ts',
    ['test/unit/wire/received.test.ts'],
    [
      [
        'a head in one piece is bounded',
        'if (end - at > this.#maxBytes) throw tooLarge()',
        '',
        ['test/unit/wire/answers.test.ts'],
      ],
      ['a section in pieces is bounded', 'if (length === most) throw tooLarge()', ''],
      ['the end of a section may be cut', 'Math.max(0, before - 3)', 'before'],
    ],
  ),
  ...within(
    'src/wire/send-request.ts',
    ['test/slow/e2e/kept-bodies.test.ts'],
    [
      [
        'a kept body goes out as the backend reads, and is held once',
        "if (body.kind === 'bytes' && body.bytes.length <= PIECE_BYTES) {",
        "if (body.kind === 'bytes') {",
      ],
    ],
  ),
  ...within(
    'src/wire/served-connection.ts',
    ['test/slow/listen/pipelining.test.ts'],
    [
      [
        'what comes behind a request waits for its answer',
        'if (this.#isEnding || this.#response !== undefined) return false\n',
        '',
      ],
      [
        'bytes that come while others wait come behind them',
        'if (this.#waiting.length === 0) return this.#read(bytes)',
        'return this.#read(bytes)',
      ],
      ['bytes that wait are bounded', 'this.#waitingBytes > MAX_WAITING_BYTES ||', 'false &&'],
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
        ['test/unit/listen/bodies.test.ts'],
      ],
      [
        'heads have a deadline',
        'this.#isFresh || this.#reader.isInHead',
        'this.#isFresh',
        ['test/system/listen/like-node.test.ts'],
      ],
      [
        'an idle connection has a deadline',
        '&& sinceMs >= keepAliveMs)',
        '&& false)',
        ['test/system/listen/like-node.test.ts'],
      ],
      [
        'requests have a deadline where one is asked for',
        '&& sinceMs >= requestMs)',
        '&& false)',
        ['test/unit/wire/served.test.ts'],
      ],
      [
        'a deadline of a request begins with it',
        'if (beganMs !== undefined && !this.#reader.isBetween) this.#sinceMs = beganMs',
        'this.#sinceMs = monotonicNow()',
        ['test/unit/wire/served.test.ts'],
      ],
      [
        'an error of the proxy is not the client’s',
        'if (!(error instanceof WireError)) throw error',
        '',
        ['test/unit/wire/served.test.ts'],
      ],
      [
        'an idle connection holds nothing of its last request',
        '      // An idle connection releases its last request.\n      this.#request = undefined',
        '',
        ['test/slow/e2e/kept-tokens.test.ts'],
      ],
      ['a body that is read late stops nothing', '    this.#resume()\n', '', ['test/unit/listen/bodies.test.ts']],
      ['nothing is read behind the last answer', '&& this.#socket.writable)', ')', ['test/unit/listen/bodies.test.ts']],
      [
        'the last answer ends the connection',
        'if (!keeps) this.#endWith(request)',
        'if (!keeps) void 0',
        ['test/system/listen/like-node.test.ts'],
      ],
      [
        'the next request has its turn',
        'if (keeps && request?.complete === true && this.#socket.writable) this.#readWaiting()',
        '',
      ],
      [
        'the reader of a body is notified when its client leaves',
        "this.#request?.destroy(new Error('aborted'))",
        '',
        ['test/unit/listen/bodies.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/wire/served-request.ts',
    ['test/unit/listen/bodies.test.ts'],
    [
      [
        'an unread chunked body is discarded',
        'this.readableFlowing !== null && !this.destroyed',
        'this.#isWanted && !this.destroyed',
      ],
      [
        'a partial body does not count as complete',
        '!this.complete || this.#isWanted',
        'this.#isWanted',
        ['test/slow/proxy/body.test.ts'],
      ],
      [
        'the end of a body does not count as all of it',
        'this.#isSplit || this.destroyed',
        'this.destroyed',
        ['test/unit/wire/served.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/wire/served-response.ts',
    ['test/system/listen/like-node.test.ts'],
    [
      ['nothing is written past a refusal', 'socket === null || !socket.writable || head', 'socket === null || head'],
      ['an answer is no longer than its announced length', ': sent > length', ': false'],
      ['an answer is no shorter than its announced length', 'isEnd ? sent !== length', 'isEnd ? false'],
    ],
  ),
  ...within(
    'src/wire/trailers.ts',
    ['test/unit/wire/answers.test.ts'],
    [['trailers frame nothing', 'if (fields[name] !== undefined)', 'if (false)']],
  ),
]
