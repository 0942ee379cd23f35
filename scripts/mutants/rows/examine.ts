import { within } from '../mutation.ts'

/** Guards of `src/examine`. */
export default [
  ...within(
    'src/examine/explain/explained-connection.ts',
    ['test/unit/cli/explain-connections.test.ts'],
    [
      [
        'missing claims of a login are noted',
        'login === undefined || login.match !== undefined',
        'login !== undefined',
      ],
      [
        'the connections of a single user have no other owner',
        'const isLocal = connections.singleUser ||',
        'const isLocal =',
      ],
    ],
  ),
  ...within(
    'src/examine/check/connections.ts',
    ['test/unit/examine/check/connections.test.ts'],
    [
      ['a check registers no client', 'if (client === undefined) return', 'if (client === null) return'],
      ['a key that is not tested is found', 'if (expect.includes(status))', 'if (expect.includes(-1))'],
      ['keys and store of connections are opened', '    () => open(services, listenUrl, context),\n', ''],
    ],
  ),
  ...within(
    'src/examine/check/upstream.ts',
    ['test/unit/examine/check/connections.test.ts'],
    [['a login of callers is not refreshed', 'if (options.loginOnly === true) return lines', '']],
  ),
  ...within(
    'src/examine/check/assertions.ts',
    ['test/unit/examine/check/assertions.test.ts'],
    [
      ['an issuer of assertions without keys is a failure', 'if (length > 0) return', 'if (length >= 0) return'],
      [
        'an issuer of assertions is not asked without its authorities',
        "if (!(await isUsable({ value: caBundleRef, holds: 'certificates' }, context)))\n",
        "if (caBundleRef.name === '')\n",
      ],
    ],
  ),
  ...within(
    'src/examine/check/auth-server.ts',
    ['test/unit/examine/check/upstream.test.ts'],
    [
      [
        'a server that is not ready is a failure',
        'if (!isReady) return line.failed',
        "if (text === '-') return line.failed",
      ],
    ],
  ),
  ...within(
    'src/examine/check/aws.ts',
    ['test/unit/examine/check/aws.test.ts'],
    [
      [
        'an unavailable identity is reported',
        'return { lines: [...lines, line.thrown(error)], identity: undefined }',
        'return { lines, identity: undefined }',
      ],
      [
        'no claim value is reported for a session',
        'tags.map(({ key }) => key)',
        'tags.map(({ key, value }) => `${key}=${value}`)',
      ],
    ],
  ),
  ...within(
    'src/examine/check/caller.ts',
    ['test/unit/examine/check/identity.test.ts'],
    [
      ['the scopes of a route are asked of the token', 'if (missing.length > 0) {', 'if (missing.length > 99) {'],
      [
        'a token of another issuer is not evaluated if there are several routes',
        'if (!context.isOneRoute && isForOthers(token, route))',
        'if (isForOthers(token, route))',
      ],
    ],
  ),
  ...within(
    'src/examine/check/clients.ts',
    ['test/unit/examine/check/identity.test.ts'],
    [
      [
        'a token in a file that has ended is a failure',
        'if (endsAtMs <= clock.now()) return',
        'if (endsAtMs <= 0) return',
      ],
    ],
  ),
  ...within(
    'src/examine/check/clock.ts',
    ['test/unit/examine/check/services.test.ts'],
    [['the clock of a service is compared', 'Math.abs(differenceMs) > mostMs)', 'differenceMs > mostMs)']],
  ),
  ...within(
    'src/examine/check/connection.ts',
    ['test/unit/examine/check/target.test.ts'],
    [
      [
        'a certificate that ends soon is a warning',
        "return expiryOf(first.validToMs, nowMs) === 'fine'",
        'return first.validToMs > 0',
      ],
      [
        'a connection that is not verified is a warning',
        'if (isUnverified) return line.warning',
        "if (names === '') return line.warning",
      ],
    ],
  ),
  ...within(
    'src/examine/check/credential.ts',
    ['test/unit/examine/check/services.test.ts'],
    [
      [
        'a successful exchange of an invalid token is a failure',
        "if (isReal) return { lines: [...lines, line.ok('token exchanged')], credential }",
        "return { lines: [...lines, line.ok('token exchanged')], credential }",
        ['test/unit/examine/check/on-behalf-of.test.ts'],
      ],
      [
        'only a refusal of the token says that the client is known',
        'error instanceof Failure && REFUSALS_OF_A_TOKEN.has(error.code)',
        'error instanceof Failure',
      ],
      [
        'nothing is asked without a connection',
        "if (!isConnected) return { lines: [...lines, line.skipped('not tried: no connection')], credential: undefined }\n  const isReal",
        'const isReal',
      ],
      [
        'a role that is refused is a failure',
        'if (refusal !== undefined || choice.roleArn === undefined) {',
        "if (choice.roleArn === undefined && refusal === '') {",
      ],
      [
        'a sick STS is a failure',
        'if (status >= 500)\n        return line.failed',
        'if (status >= 900)\n        return line.failed',
      ],
      [
        'an unusable secret is reported once',
        'const isTold = !(await hasItsSecrets(auth, context))',
        'const isTold = false',
        ['test/unit/examine/check/target.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/examine/check/files.ts',
    ['test/unit/examine/check/target.test.ts'],
    [
      ['a world-writable file is a failure', 'if (isOpen(file)) return', "if (file === '') return"],
      ['a world-writable directory is a failure', 'if (isOpen(directory))\n', "if (file === '')\n"],
    ],
  ),
  ...within(
    'src/examine/check/providers.ts',
    ['test/unit/examine/check/identity.test.ts'],
    [
      ['a set of keys for no supported algorithm is a failure', 'count === 0 ?', 'count >= 0 ?'],
      [
        'keys of a provider are not asked for without its authorities',
        'const isLost = caCertPath !== undefined && ca === undefined',
        'const isLost = false',
      ],
      [
        'a provider has no document only where tokens are opaque',
        'if (introspectionUrl !== undefined && refusal?.status === 404)',
        'if (refusal?.status === 404)',
      ],
    ],
  ),
  ...within(
    'src/examine/check/resource.ts',
    ['test/system/examine/check/resource.test.ts'],
    [
      [
        'a client of a wrong resourceUrl is warned for',
        'if (resource === resourceUrl) return',
        "if (typeof resource === 'string') return",
      ],
      ['a challenge that leads elsewhere is reported', 'if (found !== wanted)\n', 'if (found === undefined)\n'],
      ['a route that requires no token is reported', 'if (status !== 401) return', 'if (status === 999) return'],
      [
        'a failure only where this configuration runs',
        'const wrong = runsHere ? line.failed : line.warning',
        'const wrong = line.failed',
      ],
      [
        'a document that is not there is a failure',
        'if (answer.status !== 200) return',
        'if (answer.status === 999) return',
      ],
    ],
  ),
  ...within(
    'src/examine/check/sections.ts',
    ['test/unit/examine/check/backend.test.ts'],
    [
      [
        'the query of a target is in no title',
        '`route ${name} → ${target.origin}${target.path} (${auth.type})`',
        '`route ${name} → ${target.origin}${target.path}?${target.query} (${auth.type})`',
      ],
    ],
  ),
  ...within(
    'src/examine/check/stores.ts',
    ['test/unit/examine/check/stores.test.ts'],
    [
      [
        'replicas with different clocks are reported',
        'if (state.clockAheadMs !== undefined) times.differs',
        'if (state.clockAheadMs === 0) times.differs',
      ],
      ['a store that may lose data is reported', 'for (const remark of state.remarks) remarks.add(remark)', ''],
      ['unknown properties of a store are reported', 'isBlind ||= state.isBlind', ''],
    ],
  ),
  ...within(
    'src/examine/check/target.ts',
    ['test/unit/examine/check/backend.test.ts'],
    [
      [
        'the time limit of `check` is not reported as a route setting',
        'connect: timeouts.connect, firstByte',
        'connect: timeouts.connect || STEP_MS, firstByte',
        ['test/unit/examine/check/late.test.ts'],
      ],
      [
        'a file of targetTls that can not be used stops the connection',
        "if (lines.some(({ status }) => status === 'failed')) {",
        'if (lines.length > 99) {',
        ['test/unit/examine/check/target.test.ts'],
      ],
      [
        'a backend that refuses the credential is a failure',
        'if (isRefusal(first)) return { line: refused(line, first.response.status, credential) }\n',
        '',
      ],
      [
        'so is one that refuses it for server/discover',
        'if (isRefusal(second)) return { line: refused(line, second.response.status, credential) }\n',
        '',
      ],
      [
        'a session that was opened for the check is closed',
        'await endSession(route, credential, session, context)\n',
        '',
      ],
      [
        'of an error status errors alone count',
        'isSuccess || answer?.errorCode !== undefined ? answer : undefined',
        'answer',
      ],
      [
        'no line has the query of a target',
        '`${target.origin}${target.path} does not respond',
        '`${target.origin}${target.path}?${target.query} does not respond',
      ],
      ['an answer of a backend is read up to a bound', 'maxBytes: MAX_ANSWER_BYTES', 'maxBytes: 2 ** 40'],
    ],
  ),
  ...within(
    'src/examine/check/upstream.ts',
    ['test/unit/examine/check/upstream.test.ts'],
    [
      [
        'a login to nowhere is a failure',
        'if (isNowhere(status))\n    return line.failed(\n      `${sent}',
        'if (status === 999)\n    return line.failed(\n      `${sent}',
      ],
      [
        'a provider that refuses a login is a warning',
        'if (status >= 400)\n    return line.warning',
        'if (status >= 900)\n    return line.warning',
      ],
      [
        'a sick provider is a failure',
        'if (status >= 500) return line.failed(`${sent}, which',
        'if (status >= 900) return line.failed(`${sent}, which',
      ],
      [
        'the query of a login is in no line',
        '`users are redirected to ${shownUrl(url)}`',
        '`users are redirected to ${url.href}`',
      ],
      [
        'a client that registers itself is not registered by a check',
        'if (oauth2Config?.dcrConfig !== undefined) {',
        'if (oauth2Config?.dcrConfig === null) {',
      ],
      [
        'a provider is not asked without its authorities',
        "if (!(await isUsable({ value: caBundleRef, holds: 'certificates' }, context)))\n",
        "if (caBundleRef.name === '')\n",
      ],
    ],
  ),
  ...within(
    'src/examine/explain/decisions-file.ts',
    ['test/system/examine/role-tests/decisions.test.ts'],
    [
      ['of a caller on a route the newest request counts', '(a, b) => a.atMs - b.atMs', '(a, b) => b.atMs - a.atMs'],
      [
        'differences between two tokens of a caller make no other caller',
        '.filter(([name]) => !VOLATILE.has(name))',
        '',
      ],
      [
        'records without claims are counted',
        'if (written === undefined) withoutClaims += 1',
        'if (written === undefined) withoutClaims += 0',
      ],
      [
        'a session name bound to the token is not computed',
        'decision?.session?.changes.length === 0 ||',
        'decision?.session !== undefined ||',
      ],
    ],
  ),
  ...within(
    'src/examine/role-tests/cases.ts',
    ['test/unit/examine/role-tests/cases.test.ts'],
    [
      [
        'a case is of a config of its own namespace',
        'metadata.name === config && metadata.namespace === namespace,',
        'metadata.name === config,',
      ],
      [
        'a case that cannot be run is reported',
        "        problems.push(located.problem([...at, each.route === undefined ? 'config' : 'route'], subject.message))\n",
        '',
      ],
    ],
  ),
  ...within(
    'src/examine/role-tests/evaluate.ts',
    [
      'test/unit/examine/role-tests',
      'test/system/examine/role-tests',
      'test/unit/examine/explain/explain-input.test.ts',
    ],
    [
      [
        'a case passes where all that it expects came',
        'return expected === undefined || expected === actual[what] ? [] :',
        'return expected !== undefined || expected === actual[what] ? [] :',
      ],
      [
        'a role that something else refuses is none',
        "refusal === undefined ? (choice.roleArn ?? 'none') : 'none'",
        "(choice.roleArn ?? 'none')",
      ],
      [
        'a session name is validated too',
        "(['role', 'reason', 'sessionName', 'allowed', 'rule'] as const)",
        "(['role', 'reason', 'allowed', 'rule'] as const)",
      ],
      [
        'a reason is validated too',
        "(['role', 'reason', 'sessionName', 'allowed', 'rule'] as const)",
        "(['role', 'sessionName', 'allowed', 'rule'] as const)",
      ],
      [
        'a refused caller has no session name',
        "refusal === undefined && session !== undefined ? session.name : 'none'",
        "session !== undefined ? session.name : 'none'",
      ],
      [
        'what would stop a caller before is noted',
        'notes: each.route === undefined ? [] : notesOn(each.route, each.caller, wallClock())',
        'notes: []',
      ],
      [
        'a case is evaluated with its route’s rule for failing matchers',
        'decideFor(auth, onMatcherError, caller,',
        "decideFor(auth, 'skip', caller,",
      ],
    ],
  ),
  ...within(
    'src/examine/role-tests/junit.ts',
    ['test/unit/examine/role-tests/reports.test.ts'],
    [
      ['names in a report are no XML', '.replace(/[&<>"]/g, (character) => ESCAPES[character] ?? character)', ''],
      ['what no XML may hold is not in a report', "text.replace(NOT_XML, '\\uFFFD')", 'text'],
      ['a case that failed is a failure in a report', 'failures: run.failed + missed', 'failures: missed'],
    ],
  ),
  ...within(
    'src/examine/role-tests/reach.ts',
    ['test/unit/examine/role-tests/cases.test.ts'],
    [['a mapping that no case reached is reported', '.filter(([key]) => !taken.has(key))', '']],
  ),
  ...within(
    'src/examine/role-tests/run.ts',
    ['test/unit/examine/role-tests/cases.test.ts'],
    [
      [
        'a case that does not get its role has failed',
        'mismatches.length > 0).length',
        'mismatches.length > 1).length',
      ],
    ],
  ),
]
