import { within } from '../mutation.ts'

/** Guards of `src/net`. */
export default [
  ...within(
    'src/net/circuit.ts',
    ['test/unit/net/circuit.test.ts'],
    [
      [
        'what was sent before an outage opens no circuit after it',
        'state === CLOSED && begun === closings',
        'state === CLOSED',
      ],
    ],
  ),
  ...within(
    'src/net/egress.ts',
    ['test/unit/net/egress.test.ts'],
    [
      [
        'a tunnel without a bound takes the time that it takes',
        'timeoutMs === 0 ? undefined : setTimeout',
        'setTimeout',
      ],
    ],
  ),
  ...within(
    'src/net/guard.ts',
    ['test/unit/net/guard.test.ts', 'test/unit/net/guard-answers.test.ts'],
    [
      ['metadata addresses are never reached', "if (kind === 'metadata') return false", ''],
      [
        'a foreign name that resolves to loopback leads nowhere',
        'return allowsLoopback && isLoopbackHost(hostname)',
        'return allowsLoopback',
      ],
      [
        'of mixed answers only the addresses that pass are tried',
        'addresses.filter((address) => check(hostname, address))',
        'addresses.some((address) => check(hostname, address)) ? addresses : []',
      ],
      ['a private address needs to be allowed', "return kind === 'public' || guard.allowPrivateIP", 'return true'],
      [
        'of the addresses of a name only those that may be reached are tried',
        'addresses.filter((address) => check(hostname, address))',
        'addresses.some((address) => check(hostname, address)) ? addresses : []',
        ['test/unit/net/guard-rules.test.ts'],
      ],
      [
        'loopback is for loopback names',
        'return allowsLoopback && isLoopbackHost(hostname)',
        'return allowsLoopback',
        ['test/unit/net/guard-rules.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/net/limits.ts',
    ['test/system/e2e/limits.test.ts'],
    [
      [
        'the time for a connection is the one that is named',
        "return ofRoute(connect, 'timeouts.connect')",
        "return ofRoute(firstByte, 'timeouts.firstByte')",
        ['test/unit/core/limit.test.ts'],
      ],
      [
        'the time for the first byte is the one that is named',
        "return ofRoute(firstByte, 'timeouts.firstByte')",
        "return ofRoute(idle, 'timeouts.idle')",
      ],
      [
        'the silence within an answer is what is named',
        "return ofRoute(idle, 'timeouts.idle')",
        "return ofRoute(firstByte, 'timeouts.firstByte')",
      ],
    ],
  ),
  ...within(
    'src/net/outbound.ts',
    ['test/unit/net/guard-answers.test.ts'],
    [
      ['a missing CA is not the system roots', '(caCert !== undefined && ca === undefined) ||', ''],
      [
        'the system roots do not stand in for a CA that cannot be read',
        '(caCert !== undefined && ca === undefined) ||',
        '',
        ['test/unit/net/guard-rules.test.ts'],
      ],
      [
        'an exchange ends when its request does',
        'request.endsAtMs !== undefined && request.endsAtMs < latestMs ? request.endsAtMs : latestMs',
        'latestMs',
        ['test/unit/net/outbound.test.ts'],
      ],
      [
        'metadata services are asked past every egress proxy',
        'const egressProxy = options.bypassEgressProxy === true ? undefined : options.egressProxy',
        'const { egressProxy } = options',
        ['test/unit/obtain/cloud-sts/identity/metadata.test.ts'],
      ],
      [
        'without its certificate a client sends nothing',
        '(clientCertificate !== undefined && client === undefined)',
        'false',
        ['test/unit/net/outbound-certificate.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/net/protection.ts',
    ['test/system/net/protection.test.ts'],
    [
      [
        'a peer behind which many may stand has no circuit of its own',
        ' || isUnauthenticated === true) return undefined',
        ') return undefined',
      ],
      [
        'a circuit closes by the time that passed, wherever the wall clock jumps',
        'createCircuit({ ...breaker, clock: monotonicClock, onState })',
        'createCircuit({ ...breaker, clock, onState })',
      ],
      [
        'no caller waits for a call sent before an outage',
        'for (const giveUp of hanging) giveUp()',
        '',
        ['test/slow/obtain/recovery.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/net/cool-down.ts',
    ['test/system/net/protection.test.ts'],
    [
      ['a throttled caller rests alone', 'if (!isMany) return', ''],
      [
        'a cool-down of the own client pauses no caller',
        'if (by === undefined) pauseCaller(endMs, caller)',
        'if (by === undefined) pauseService(endMs)',
      ],
      ['a throttled caller rests', 'Math.max(untilMs, callers.peek(by.caller) ?? -Infinity)', 'untilMs'],
    ],
  ),
  ...within(
    'src/net/round-trip.ts',
    ['test/unit/net/outbound.test.ts'],
    [
      [
        'what is no HTTP is a malformed answer, not an outage',
        "return isParsers || MALFORMED.has(code) ? 'malformed' : 'unreachable'",
        "return isParsers && code === null ? 'malformed' : 'unreachable'",
      ],
    ],
  ),
  ...within(
    'src/net/target-tls.ts',
    ['test/system/e2e/route-options.test.ts'],
    [
      [
        'a backend whose certificate has another name gets no request',
        'rejectUnauthorized: tls.insecureSkipVerify !== true,',
        'rejectUnauthorized: tls.insecureSkipVerify !== true, checkServerIdentity: () => undefined,',
      ],
    ],
  ),
  ...within(
    'src/net/fair-queue.ts',
    ['test/unit/net/fair-queue.test.ts'],
    [
      [
        'places that are lent take nothing from the shares of others',
        '(line.running < share && shared < maxConcurrent) || running < maxConcurrent',
        'running < maxConcurrent',
      ],
      [
        'one of many who wait has its share and no more',
        'for (const line of queue) if (line.running < share) return line',
        'for (const line of queue) return line',
      ],
    ],
  ),
  ...within(
    'src/net/undici-gaps.ts',
    ['test/unit/forward/torn-answers.test.ts'],
    [
      [
        'an early answer over HTTP/2 arrives whole',
        "event === 'aborted' && isEnded ? false : ",
        '',
        ['test/unit/net/early-answer.test.ts'],
      ],
      ['a reset is not the end of an answer', "if (error.code === 'ECONNRESET') error.code = 'ECONNABORTED'", ''],
      ['nor is the reset of a stream', 'isEnded = !stream.closed', 'isEnded = true'],
    ],
  ),
]
