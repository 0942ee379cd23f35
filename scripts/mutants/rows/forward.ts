import { within } from '../mutation.ts'

/** Guards of `src/forward`. */
export default [
  ...within(
    'src/forward/aws-rejection.ts',
    ['test/unit/forward/aws-rejection.test.ts'],
    [
      [
        'a compressed refusal is read too',
        'return decode === undefined ? body : decode(body)',
        'return decode === null ? body : body',
      ],
    ],
  ),
  ...within(
    'src/forward/credential-texts.ts',
    ['test/unit/forward/leaked-credential.test.ts'],
    [
      [
        'no SigV4 signature of a request comes back in a header of its answer',
        "const all = credential.kind === 'aws' ? [...texts, ...signatureIn(sealed.headers)] : texts",
        'const all = texts',
        ['test/unit/proxy/echoed-signature.test.ts'],
      ],
      [
        'a credential that is not ASCII does not come back percent-encoded',
        'if (ASCII.test(text)) return',
        'if (text !== "") return',
      ],
      [
        'secrets beside the credential do not come back in an answer',
        'if (forwarded === undefined) return all',
        'if (forwarded !== null) return all',
      ],
    ],
  ),
  ...within(
    'src/forward/disposition.ts',
    ['test/unit/forward/redirects.test.ts'],
    [
      [
        'a redirect to another origin is not followed',
        'if (url === null || url.origin !== origin ||',
        'if (url === null ||',
      ],
      [
        "a caller does not see a backend's foreign redirect",
        "if (rewritten === undefined)\n    return { kind: 'fail', failure: new Failure('backend_error', { rule: 'redirect_foreign' }) }",
        '',
      ],
      [
        "a backend's 401 does not reach a caller",
        'if (status === 401) {',
        'if (status === 401 && !sealed.final) {',
        ['test/unit/forward/answers.test.ts', 'test/unit/proxy/attempts.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/forward/relay.ts',
    ['test/unit/forward/torn-answers.test.ts'],
    [
      [
        'an answer that broke off does not end cleanly',
        '      this.response.destroy()\n      return this.#done(true, abortedBy(',
        '      this.response.end()\n      return this.#done(true, abortedBy(',
      ],
      [
        'the rest of a body with an abandoned response can be sent',
        "if (body.kind === 'stream' && !body.stream.complete) return controller.abort(DISCARDED)",
        '',
        ['test/slow/proxy/body.test.ts'],
      ],
      [
        'interim answers are counted',
        'if (++this.#interim > MAX_INTERIM)',
        'if (this.#interim > MAX_INTERIM)',
        ['test/unit/forward/interim-answers.test.ts'],
      ],
      [
        'only methods that may be repeated are',
        ' && isIdempotent(method)',
        '',
        ['test/unit/forward/connections.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/forward/disposition.ts',
    ['test/unit/forward/odd-answers.test.ts'],
    [
      [
        'a response with an unsupported transfer coding is rejected',
        "return bad('unsupported transfer coding')",
        'return undefined',
      ],
    ],
  ),
  ...within(
    'src/forward/event-stream-writer.ts',
    ['test/unit/forward/event-stream-writer.test.ts'],
    [
      [
        'an event of the proxy never splits one of the backend',
        ' || !this.#isBetweenEvents()) return\n    const events',
        ') return\n    const events',
      ],
      ['events that wait are bounded', 'if (this.#waiting.length === MOST_WAITING) this.#waiting.shift()', ''],
      [
        'a client that reads nothing gets nothing more',
        'if (!this.#response.writableNeedDrain) this.#writeWaiting()',
        'if (this.#waiting.length > 0) this.#writeWaiting()',
      ],
    ],
  ),
  ...within(
    'src/forward/upgrade.ts',
    ['test/unit/proxy/upgrade.test.ts'],
    [
      [
        'an upgraded connection whose client has gone in a drain waits for no backend',
        "client.once('close', () => socket.destroy())",
        "client.once('close', () => undefined)",
      ],
    ],
  ),
]
