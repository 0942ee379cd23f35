import { within } from '../mutation.ts'

/** Guards of `src/authorize`. */
export default [
  ...within(
    'src/authorize/read-request.ts',
    ['test/unit/authorize/requests.test.ts'],
    [
      [
        'a header that names a method or tool is sent once',
        "has('mcp-name').length > 1)",
        "has('mcp-name').length > 9)",
      ],
      ['bodies of other methods are not sent on', "if (hasBody || !['GET'", "if (!['GET', 'PUT', 'PATCH'"],
      ['messages are JSON in UTF-8', 'if (more.length > 0 || !isUtf8Json(type))', 'if (more.length > 0)'],
      ['encoded bodies are refused', "codings.some((coding) => coding.trim().toLowerCase() !== 'identity')", 'false'],
      ['fields are compared without case', "caseInsensitiveIn: 'params', ", ''],
      ['lone surrogates are refused', ', wellFormed: true', ''],
      ['depth is bounded', 'maxDepth: MAX_DEPTH', 'maxDepth: 1000'],
      ['a field of the envelope in another case is refused', '  expectExact(value, ENVELOPE_FIELDS)\n', ''],
      ['a field of params in another case is refused', '  expectExact(params, PARAMS_FIELDS)\n', ''],
      ['what is listened for in another case is refused', '    expectExact(notifications, LISTEN_FIELDS)\n', ''],
      ['headers are compared with the body', "differs(sentName, name ?? '')", 'false'],
      ['stateless requests need their headers', "?.lifecycle === 'stateless'", '?.lifecycle === undefined'],
      [
        'a name is a string',
        "if (typeof value !== 'string') throw refused('mcp_params')",
        "if (typeof value !== 'string') return ''",
      ],
      [
        'arguments are an object',
        "if (!isObject(given)) throw refused('mcp_params')",
        'if (!isObject(given)) return NO_CLAIMS',
      ],
      [
        'each resource that is listened for is evaluated',
        '...uris.map((uri): McpView',
        '...uris.slice(0, 1).map((uri): McpView',
      ],
      ['an unknown task is denied', '[taskOf(textOf(taskId)) ?? UNKNOWN_TASK]', '[taskOf(textOf(taskId)) ?? mcp]'],
      ['an unknown task that is listened for is denied', 'taskOf(id) ?? UNKNOWN_TASK)', 'taskOf(id) ?? mcp)'],
    ],
  ),
  ...within(
    'src/authorize/rules.ts',
    ['test/unit/authorize/rules.test.ts'],
    [
      [
        'an unknown task is denied whatever the rules',
        'if (subject === UNKNOWN_TASK) decided',
        'if (subject !== subject) decided',
        ['test/unit/authorize/requests.test.ts'],
      ],
      ['rules are ordered by priority', '(a.rule.priority ?? Infinity) - (b.rule.priority ?? Infinity) ||', ''],
      [
        'each subject of a request must be allowed',
        'for (const subject of subjects) {',
        'for (const subject of subjects.slice(0, 1)) {',
        ['test/unit/authorize/requests.test.ts'],
      ],
      ['a limit denies', "result.outcome === 'limit' || (result", '(result'],
      ['a rule that fails to deny denies', "(result.outcome === 'error' && effect === 'deny')", 'false'],
      ['missing scopes deny', "effect === 'allow' && missingScopes.length === 0", "effect === 'allow'"],
      [
        'a list leaves out what reaches a limit',
        "if (outcome === 'limit') return false",
        "if (outcome === 'limit') return true",
      ],
      ['a list leaves out what is denied', "if (effect === 'deny' && outcome !== 'not_matched') return false", ''],
      [
        'a list follows the default',
        '    return isAllowedByDefault\n  }',
        '    return true\n  }',
        ['test/unit/authorize/lists.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/authorize/authorizer.ts',
    ['test/unit/authorize/requests.test.ts'],
    [
      ['what is denied is refused', 'if (!decision.allowed) throw refusalOf(decision)', ''],
      [
        'answers are filtered',
        'matched.filterAnswer = createAnswerFilter(',
        'void createAnswerFilter(',
        ['test/unit/authorize/lists.test.ts'],
      ],
      [
        'answers that are read are not encoded',
        "matched.headers.push('accept-encoding', 'identity')",
        '',
        ['test/unit/authorize/lists.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/authorize/answer-filter.ts',
    ['test/unit/authorize/lists.test.ts'],
    [
      ['an encoded answer is refused', "if (coding !== 'identity') throw unclear('a content encoding')", ''],
      ['another status is refused', 'if (status !== 200) throw unclear(`status ${status}`)', ''],
      ['another media type is refused', "if (!isUtf8Json(type ?? '')) throw unclear('another media type')", ''],
      [
        'streams are filtered, whatever was asked for',
        'if (view.list === undefined) return eventFilter(options, false)',
        'if (view.list === undefined) return undefined',
      ],
      ['the answer is a response', "kind !== 'response' || ", ''],
      ['the answer is to this request', ' || id !== canonical(view.id)', ''],
      ['invalid UTF-8 is refused', 'fatal: true', 'fatal: false'],
      ['a byte order mark is seen', 'ignoreBOM: true', 'ignoreBOM: false'],
      ['a stream without a response is refused', "if (isList && responses === 0) throw unclear('no response')", ''],
    ],
  ),
  ...within(
    'src/authorize/event-filter.ts',
    ['test/unit/authorize/lists.test.ts'],
    [
      [
        'a byte order mark is refused',
        "if (this.#isStart && text.startsWith('\\uFEFF')) throw unclear('a byte order mark')",
        '',
      ],
      ['a type after the data is refused', "throw unclear('a type after its data')", ''],
      [
        'lines of data are one message',
        'else this.#message.breakLine()',
        'else this.#message = new MessageFilter(this.#rules)',
      ],
      [
        'notifications that are dropped do not go out',
        "if (ended.kind !== 'dropped') {",
        'if (ended.kind !== undefined) {',
      ],
    ],
  ),
  ...within(
    'src/authorize/json-scanner.ts',
    ['test/unit/authorize/lists.test.ts'],
    [['an answer that breaks off is refused', "throw unclear('it breaks off')", 'void 0']],
  ),
  ...within(
    'src/authorize/message-filter.ts',
    ['test/unit/authorize/lists.test.ts'],
    [
      ['a field twice is refused', "throw unclear('a field twice')", 'void 0'],
      [
        'a field in another case is refused',
        "if (isInOtherCase(known, name)) throw unclear('a field in another case')",
        '',
      ],
      [
        'a name of an item in another case is refused',
        'foldName(field) === foldName(name)))',
        'field === foldName(name)))',
      ],
      ['a result outside of a response is refused', "throw unclear('a request with a result')", 'void 0'],
      ['a list is an array', "throw unclear('a list that is none')", 'void 0'],
      ['a result is an object', "throw unclear('a result that is no object')", 'void 0'],
      ['ids of other types differ', 'JSON.stringify(id) : undefined', 'String(id) : undefined'],
      ['a line break in a string is refused', "throw unclear('a line break in a string')", 'void 0'],
      ['an item is bounded', 'this.#held.text.length > this.#held.most', 'this.#held.text.length > Infinity'],
      ['a filtered list is private', 'this.#out += \'"private"\'', 'this.#out += \'"public"\''],
      ['an item that could not be used is left out', ' || !this.#rules.keeps(list, key, item)', ''],
      ['an update of a denied resource is dropped', '!this.#rules.keepsUpdate(this.#uri)', 'false'],
    ],
  ),
]
