import { within } from '../mutation.ts'

/** Guards of `src/mcp`. */
export default [
  ...within(
    'src/mcp/events.ts',
    ['test/unit/bridge/reading.test.ts'],
    [
      ['an event has a bound', 'if (this.#held > this.#maxBytes) throw', 'if (this.#held < 0) throw'],
      [
        'an id counts with its whole event only',
        'this.#pendingId = utf8.decode(value)',
        'this.lastEventId = utf8.decode(value)',
      ],
      ['comments do not fill an event', '      this.#held -= line.length\n', ''],
      ['an id with NUL is none', '!value.includes(0) && ', ''],
      [
        'half an event is forgotten with its stream',
        '    this.#data = []\n    this.#pendingId = undefined\n  }',
        '    this.#pendingId = undefined\n  }',
      ],
      ['an id of an event has a length', ' && value.length <= MAX_ID_BYTES', ''],
      ['a time to wait of a stream has nine digits', 'value.length <= 9 && /^\\d+$/.test', '/^\\d+$/.test'],
    ],
  ),
  ...within(
    'src/mcp/session-header.ts',
    ['test/unit/proxy/sessions.test.ts'],
    [
      [
        'two session ids are refused',
        "if (found !== -1) throw new Failure('bad_request', { detail: 'more than one Mcp-Session-Id header' })",
        '',
      ],
    ],
  ),
  ...within(
    'src/mcp/headers.ts',
    ['test/unit/mcp/headers.test.ts'],
    [
      [
        'a header of a request holds no line of its own',
        '/^[\\x21-\\x7e](?:[\\t\\x20-\\x7e]*[\\x21-\\x7e])?$/.test(text) && ',
        '',
      ],
      ['what looks encoded is encoded', ' && !/^=\\?base64\\?.*\\?=$/.test(text)', ''],
      [
        'a tool can not name a header that is none',
        "typeof name === 'string' && TOKEN.test(name) &&",
        "typeof name === 'string' &&",
      ],
      [
        'two parameters with one header have none',
        'new Set(declared.map(({ header }) => header)).size === declared.length ? declared : []',
        'declared',
      ],
      ['the number of cached tools is limited', 'if (this.#byTool.size > MAX_TOOLS) this.#byTool.clear()', ''],
      ['a schema is followed to a depth', ' || path.length > MAX_DEPTH) return', ') return'],
    ],
  ),
  ...within(
    'src/mcp/json-rpc-id.ts',
    ['test/unit/mcp/json-rpc-id.test.ts'],
    [
      [
        "another protocol's id is not ours",
        "if (message.kind === 'malformed' && message.isOther === true) return undefined",
        '',
      ],
      ['a large body is not searched for an id', ' || body.length > MAX_SEARCHED_BYTES', ''],
      ['an id that was rounded is not given back', 'Math.abs(id) <= Number.MAX_SAFE_INTEGER', 'id === id'],
      ['a long id is not given back', 'id.length <= MAX_ID_LENGTH ? id : undefined', 'id'],
    ],
  ),
  ...within(
    'src/mcp/mcp-request.ts',
    ['test/unit/mcp/mcp-request.test.ts'],
    [
      ['an answer for another request is none', 'if (id !== ID && id !== null) continue', ''],
      [
        'a result without what its revision wants is none',
        'result: lacks === undefined ? given : undefined',
        'result: given',
      ],
      ['the name of a server is one short line', "value.replace(/\\p{Cc}/gu, ' ').slice(0, 100)", 'value'],
    ],
  ),
  ...within(
    'src/mcp/message.ts',
    ['test/unit/bridge/reading.test.ts'],
    [
      [
        'what is not UTF-8 is no message',
        "new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })",
        "new TextDecoder('utf-8', { ignoreBOM: true })",
      ],
      ['a message is one line', 'const line = withoutBreaks(bytes)', 'const line = bytes'],
      [
        'a request has an id that can be given back',
        "if (known === null) return malformed(INVALID_REQUEST, 'the id must be a string or a number')",
        '',
        ['test/system/bridge/hostile.test.ts'],
      ],
      ['a response is a result or an error', '(result === undefined) === (error === undefined) || ', ''],
    ],
  ),
  ...within(
    'src/mcp/rpc.ts',
    ['test/unit/mcp/rpc.test.ts'],
    [
      [
        'large bodies are not parsed for the list',
        'if (body.length > MAX_PARSED) return',
        'if (body.length < 0) return',
      ],
      ['names in the list have a length', 'name.slice(0, MAX_SHOWN)', 'name'],
    ],
  ),
  ...within(
    'src/mcp/json-fields.ts',
    ['test/unit/mcp/json-fields.test.ts'],
    [
      [
        'escaped names are removed, too',
        'const name: unknown = JSON.parse(quoted.toString())',
        "const name: unknown = quoted.toString('latin1', 1, quoted.length - 1)",
      ],
      [
        'names in strings are no fields',
        'if (byte === QUOTE) next = endOfString(json, next)',
        'if (byte === 0) next++',
      ],
      [
        'of repeated params the last counts, as in the message that was read',
        "findLast(({ name }) => name === 'params')",
        "find(({ name }) => name === 'params')",
      ],
    ],
  ),
  ...within(
    'src/mcp/url-elicitation.ts',
    ['test/unit/elicitation/requests.test.ts', 'test/unit/elicitation/clients.test.ts'],
    [['forms alone open no URL', "isObject(elicitation) && isObject(elicitation['url'])", 'isObject(elicitation)']],
  ),
]
