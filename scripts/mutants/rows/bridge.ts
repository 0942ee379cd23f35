import { within } from '../mutation.ts'

/** Guards of `src/bridge`. */
export default [
  ...within(
    'src/bridge/answers.ts',
    ['test/unit/bridge/reading.test.ts'],
    [
      [
        'an answer has a bound',
        "if (length > maxBytes) throw new BridgeError('bad_answer', 'returned a response above the size limit')",
        '',
      ],
      ['a body of exactly the bound is taken', 'if (length > maxBytes) throw', 'if (length >= maxBytes) throw'],
      [
        'a stream that goes on after the answer is ended',
        'const timer = setTimeout(() => body.destroy(), LINGER_MS)',
        'const timer = setTimeout(() => undefined, LINGER_MS)',
      ],
      ['what is no JSON is no answer', 'if (!isJson(answer)) {', "if (type === 'text/plain') {"],
    ],
  ),
  ...within(
    'src/bridge/bridge.ts',
    ['test/system/bridge/stateless.test.ts'],
    [
      [
        'a line that is too long is answered',
        "        this.#say({ kind: 'malformed', code: INVALID_REQUEST, why: 'above the size limit', id: null })\n",
        '',
        ['test/system/bridge/hostile.test.ts'],
      ],
      ['an id without its answer is not used twice', "if (added !== 'added') {", "if (added === 'too_many') {"],
      [
        'a batch is of one revision only',
        'if (revisionOf(this.#wire.session.current?.version)?.hasBatches === true) return messages',
        'if (bytes.length > 0) return messages',
        ['test/system/bridge/hostile.test.ts'],
      ],
      [
        'another handshake ends the session before',
        'if (this.#wire.session.current !== undefined) await this.#wire.end(END_SESSION_MS)',
        '',
        ['test/system/bridge/sessions.test.ts'],
      ],
      [
        'nothing of a client but names of methods gets into the log',
        ".test(method) ? method : '')",
        '.test(method) ? method : method)',
        ['test/slow/bridge/flow.test.ts'],
      ],
      [
        'in the stateless protocol closing the stream cancels',
        'if (flight.isWaiting || flight.statelessVersion !== undefined) return flight.drop()',
        'if (flight.isWaiting) return flight.drop()',
      ],
      [
        'what a client sends behind its handshake waits for that',
        "if (request.method === 'initialize') this.#handshake = run",
        '',
        ['test/system/bridge/sessions.test.ts'],
      ],
      [
        'what tools want in headers is learnt from the list',
        "if (request.method === 'tools/list' && statelessVersion !== undefined) this.#tools.learn(message.result)",
        '',
      ],
      [
        'subscriptions outlast a session',
        'if (statelessVersion === undefined) this.#wire.replayed.note(request)',
        '',
        ['test/system/bridge/sessions.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/bridge/channel.ts',
    ['test/unit/bridge/carrying.test.ts'],
    [
      ['each request has the token of its moment', 'withToken(request.headers, token) })', 'request.headers })'],
      ['a refused token is replaced twice at most', 'renewals === MAX_RENEWALS', 'renewals === 20'],
      [
        'only a lack of scopes makes a 403 a refusal of the token',
        'return status === 403 && /\\berror="?insufficient_scope\\b/.test(text) ? { text } : undefined',
        'return status === 403 ? { text } : undefined',
      ],
      [
        'a 403 for a lack of scopes asks for others',
        'return status === 403 && /\\berror="?insufficient_scope\\b/.test(text) ? { text } : undefined',
        'return undefined',
      ],
      ['only who asks something opens a browser', "request.method === 'POST')", 'true)'],
      ['a cancelled request is not sent again', '      request.signal.throwIfAborted()\n', ''],
    ],
  ),
  ...within(
    'src/bridge/exchange.ts',
    ['test/system/bridge/handshake.test.ts'],
    [
      [
        'only other headers make a call go once more',
        "if (request.method !== 'tools/call' || !refusal.messages.some(isHeaderMismatch)) return false",
        "if (request.method !== 'tools/call') return false",
        ['test/system/bridge/stateless.test.ts'],
      ],
      [
        'only a lost session is re-initialized',
        'if (wire.session.current?.id === undefined || !isSessionLost(refusal)) return false',
        'if (wire.session.current?.id === undefined) return false',
      ],
      ['a stream is resumed five times at most without news', 'failures >= MAX_RESUMES', 'failures >= 500'],
      [
        'a stream of the stateless protocol is not resumed',
        'lastEventId !== undefined && flight.statelessVersion === undefined &&',
        'lastEventId !== undefined &&',
        ['test/system/bridge/stateless.test.ts'],
      ],
      [
        'no stream of a lost session is resumed in another',
        "if (wire.session.number !== number) throw new BridgeError('session_lost', 'lost the session during the request')",
        '',
        ['test/system/bridge/lost-sessions.test.ts'],
      ],
      ['an error for another request is not a response', 'if (message.id !== null && message.id !== id) continue', ''],
    ],
  ),
  ...within(
    'src/bridge/flights.ts',
    ['test/unit/bridge/flights.test.ts'],
    [
      [
        'so many requests run at a time',
        'if (this.#running < MAX_RUNNING) this.#running++',
        'if (this.#running >= 0) this.#running++',
      ],
      ['so many requests wait at most', "if (this.#byKey.size >= MAX_RUNNING + MAX_WAITING) return 'too_many'", ''],
      ['a subscription takes no turn', 'if (flight.isEndless) return () => undefined', ''],
      ['the next turn starts after a finished one', 'else next()', ''],
    ],
  ),
  ...within(
    'src/bridge/lines.ts',
    ['test/unit/bridge/reading.test.ts'],
    [['a line of exactly the bound is taken', 'length > maxBytes ? ', 'length >= maxBytes ? ']],
  ),
  ...within(
    'src/bridge/output.ts',
    ['test/slow/bridge/flow.test.ts'],
    [
      [
        'while the client does not read, no more is taken for it',
        'if (!isWritable && !this.#isGone) this.#drained ??= Promise.withResolvers<void>()',
        '',
      ],
    ],
  ),
  ...within(
    'src/bridge/refusal.ts',
    ['test/system/bridge/hostile.test.ts'],
    [['what the client is shown of a server has no token', 'maskBody(masked(', '((text: string) => text)((']],
  ),
  ...within(
    'src/bridge/server-stream.ts',
    ['test/system/bridge/lost-sessions.test.ts'],
    [
      [
        'a session that the message stream lost is re-initialized',
        "if (isLost && wire.session.current?.id !== undefined) return 'lost'",
        '',
      ],
    ],
  ),
  ...within(
    'src/bridge/session.ts',
    ['test/system/bridge/handshake.test.ts'],
    [
      [
        'a session id is visible ASCII of some length',
        "typeof given !== 'string' || !SESSION_ID.test(given)",
        "typeof given !== 'string'",
      ],
      ['a revision is a word', ' || !/^[\\x21-\\x7e]{1,64}$/.test(version))', ')'],
      [
        'a re-initialized session keeps the client’s protocol revision',
        'this.#current.version !== version)',
        "version === '')",
        ['test/system/bridge/sessions.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/bridge/sse-endpoint.ts',
    ['test/slow/bridge/old-transport.test.ts'],
    [
      ['headers of today do not go to an old server', '!/^(?:mcp-|last-event-id)/.test(name)', "name !== ''"],
      [
        'only a refusal of the handshake shows an old server',
        'if (!isHandshake || !NOT_HERE.has(answer.status)) return answer',
        'if (!isHandshake || answer.status < 400) return answer',
      ],
    ],
  ),
  ...within(
    'src/bridge/sse-stream.ts',
    ['test/slow/bridge/old-transport.test.ts'],
    [
      [
        'messages of the old transport go to the origin of the server only',
        'if (url === null || url.origin !== server.origin) {',
        'if (url === null) {',
      ],
      ['the address of an old server has a bound', 'named.length > MAX_ADDRESS', 'named.length < 0'],
      [
        'a slow reader of an old stream holds it back',
        'else if (!isWritable) await new Promise',
        'else if (to.destroyed && !isWritable) await new Promise',
      ],
    ],
  ),
  ...within(
    'src/bridge/replayed-requests.ts',
    ['test/system/bridge/lost-sessions.test.ts'],
    [
      [
        'the number of stored subscriptions is limited',
        'if (this.#subscriptions.size < MAX_SUBSCRIPTIONS) this',
        'if (this.#subscriptions.size >= 0) this',
      ],
      [
        'what was unsubscribed is not asked for again',
        'this.#subscriptions.delete(uri)',
        'void uri',
        ['test/system/bridge/sessions.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/bridge/wire.ts',
    ['test/system/bridge/lost-sessions.test.ts'],
    [
      ['a lost session is replaced once', 'if (this.session.number !== lost) return\n', ''],
      [
        'all who notice a loss wait for one renewal',
        'this.#renewing ??= this.#renew()',
        'this.#renewing = this.#renew()',
        ['test/system/bridge/sessions.test.ts'],
      ],
      [
        'a notification that is refused did not arrive',
        'if (answer.status >= 300) throw new BridgeError',
        'if (answer.status >= 900) throw new BridgeError',
        ['test/system/bridge/handshake.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/bridge/url-elicitation.ts',
    ['test/system/bridge/elicitation.test.ts'],
    [
      [
        'pages of other hosts are not opened',
        'if (url.origin === origin.origin) return',
        'if (url.origin !== "") return',
      ],
      ['older servers read any elicitation as forms', 'version >= FIRST_REVISION', "version !== ''"],
      ['an empty declaration means forms', '? { form: {} } : elicitation', '? {} : elicitation'],
      ['one page for concurrent calls', 'if (now - (this.#opened.get(url) ?? -Infinity) < REOPEN_MS) continue', ''],
    ],
  ),
]
