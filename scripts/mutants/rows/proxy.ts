import { within } from '../mutation.ts'

const FAILURES = ['test/slow/connections/failures.test.ts']

/** Guards of `src/proxy`. */
export default [
  ...within(
    'src/proxy/admission.ts',
    ['test/unit/proxy/ambiguous.test.ts'],
    [
      [
        'headers beyond the limit are only read to choose the form of the response',
        'if (headerBytes(request) >= headerLimitBytes)',
        'if (headerBytes(request) >= headerLimitBytes && local === undefined)',
        FAILURES,
      ],
      [
        'a page of another site can not make a browser send requests without Origin',
        "if (site === undefined || site === 'none' || site === 'same-origin') return",
        "if (site !== 'cross-site') return",
        ['test/unit/proxy/origins.test.ts'],
      ],
    ],
  ),
  ...within('src/proxy/answers.ts', FAILURES, [
    ['a page answers a person with a page', 'localHandler?.failureContent?.(failure, inbound.id) ?? ', ''],
  ]),
  ...within(
    'src/proxy/body-budget.ts',
    ['test/unit/proxy/body-memory.test.ts'],
    [
      [
        'memory for bodies that are kept has a limit',
        'if (this.#heldBytes + bytes > limitBytes && this.#heldBytes !== holder.keptBytes) return false',
        '',
      ],
    ],
  ),
  ...within(
    'src/proxy/body.ts',
    ['test/slow/proxy/body.test.ts'],
    [
      [
        'the number of streamed bodies is limited',
        'if (!isKept && watch.streams.isFull) throw memoryInUse(watch)',
        '',
        ['test/unit/proxy/body-memory.test.ts'],
      ],
      [
        'a body of exactly the limit is taken, one byte more is not (with a length)',
        'if (mustKeep && length !== undefined && length > options.limitBytes)',
        'if (mustKeep && length !== undefined && length >= options.limitBytes)',
      ],
      [
        'a body of exactly the limit is taken, one byte more is not (without)',
        'if (gathered.length + chunk.length > limitBytes) {',
        'if (gathered.length + chunk.length >= limitBytes) {',
      ],
      [
        'a body of exactly 1 MiB is kept, so that it can be sent again',
        '(length ?? 0) <= KEPT_BYTES)',
        '(length ?? 0) < KEPT_BYTES)',
      ],
    ],
  ),
  ...within(
    'src/proxy/documents.ts',
    ['test/unit/proxy/documents.test.ts'],
    [
      [
        'discovery paths are seen however often they are encoded',
        "for (let round = 0; round < 4 && decoded.includes('%'); round++) decoded = decodeOnce(decoded)",
        'decoded = decodeOnce(decoded)',
      ],
    ],
  ),
  ...within(
    'src/proxy/inbound-request.ts',
    ['test/slow/proxy/body.test.ts'],
    [
      [
        'no credential is obtained for a body that was refused',
        'return this.refusal !== undefined || (this.response.destroyed',
        'return (this.response.destroyed',
      ],
      [
        'streams end with the session of their caller',
        'if (isRevoked === true) this.endStream()',
        '',
        ['test/system/proxy/streams.test.ts'],
      ],
      [
        'introspections are bounded per client, not per connection',
        'return this.connection.peer.clientOf(this.request).address',
        "return this.request.socket.remoteAddress ?? ''",
        ['test/system/e2e/introspection-peers.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/proxy/match.ts',
    ['test/unit/proxy/match.test.ts', 'test/unit/proxy/ambiguous.test.ts'],
    [
      [
        'another spelling of a protected path is refused on open routes',
        'if (!route.isProtected && hasProtected && isProtectedOtherwise(inbound.path))',
        'if (!route.isProtected && !hasProtected && isProtectedOtherwise(inbound.path))',
      ],
    ],
  ),
  ...within(
    'src/proxy/proxy.ts',
    ['test/slow/proxy/body.test.ts'],
    [
      [
        'the system clock moves no deadline of a client',
        'createBodyWatch(active, monotonicClock,',
        'createBodyWatch(active, clock,',
      ],
    ],
  ),
  ...within(
    'src/proxy/route-tree.ts',
    ['test/unit/proxy/match.test.ts'],
    [['the longest prefix wins', 'found = node.value ?? found', 'found ??= node.value']],
  ),
  ...within(
    'src/proxy/sessions.ts',
    ['test/unit/proxy/sessions.test.ts'],
    [
      ['a session belongs to its caller', "['caller', caller.issuer, caller.identity]", "['caller', caller.issuer]"],
      [
        'a session belongs to its route',
        'JSON.stringify([...ownerOf(caller), route, backend])',
        'JSON.stringify([...ownerOf(caller), backend])',
      ],
    ],
  ),
]
