import { within } from '../mutation.ts'

/** Guards of `src/kube`. */
export default [
  ...within(
    'src/kube/answers.ts',
    ['test/slow/kube/informer-faults.test.ts'],
    [
      [
        'an answer that is no list does not say that everything is gone',
        "if (typeof kind === 'string' && !kind.endsWith('List')) throw malformed()",
        '',
      ],
      [
        'an error in a watch ends it',
        "if (type === 'ERROR') throw kubeErrorFrom(0, object)",
        '',
        ['test/unit/kube/requests.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/kube/client.ts',
    ['test/unit/kube/requests.test.ts'],
    [
      [
        'bytes without an event are silence',
        'const silence = setTimeout(close, silenceMs)',
        'const silence = setTimeout(() => {}, silenceMs)',
        ['test/slow/kube/informer-faults.test.ts'],
      ],
      [
        'the token of a request is that of its moment',
        '  const headersFor = (accept: string, contentType?: string): Record<string, string> => {\n    const token = options.token()',
        '  const token = options.token()\n  const headersFor = (accept: string, contentType?: string): Record<string, string> => {',
      ],
      ['a list is read to its last page', "} while (next !== '')", "} while (next === '-')"],
      ['an apply names no version', '        withoutVersion(object),\n', '        object,\n'],
      ['what is tried is not stored', "if (dryRun === true) query.set('dryRun', 'All')", ''],
      ['a refusal is no answer', 'if (answer.status >= 300) {', 'if (answer.status >= 500) {'],
      ['a refused watch is no watch', 'if (stream.status !== 200) {', 'if (stream.status === 0) {'],
      [
        'a watch releases its connection',
        "        signal.removeEventListener('abort', close)\n        close()\n",
        "        signal.removeEventListener('abort', close)\n",
      ],
      ['what is removed is that very object', '...(uid === undefined ? {} : { preconditions: { uid } })', '...{}'],
      [
        'only a missing object may be missing',
        'if (!(error instanceof KubeError && error.status === 404)) throw error',
        'if (!(error instanceof KubeError)) throw error',
      ],
      [
        'metadata are asked for alone',
        "selection.metadataOnly === true ? METADATA_LIST : 'application/json'",
        "'application/json'",
      ],
    ],
  ),
  ...within(
    'src/kube/connection.ts',
    ['test/unit/kube/connection.test.ts'],
    [
      [
        'the system roots do not stand in for a CA file',
        "if (settings.ca !== undefined && caText === undefined) throw new KubeError(0, 'no CA certificate')",
        '',
      ],
      [
        'a token is read again',
        "return () => file.read()?.toString('utf8')",
        "const once = file.read()?.toString('utf8')\n    return () => once",
      ],
      [
        'another CA makes another connection',
        'if (api !== undefined && from === madeFrom) return api',
        'if (api !== undefined) return api',
      ],
      ['a closed connection sends nothing', "if (isClosed) throw new KubeError(0, 'closed')", ''],
    ],
  ),
  ...within(
    'src/kube/hold-off.ts',
    ['test/unit/kube/client.test.ts'],
    [['a Retry-After holds for all requests of its kind', 'if (leftMs > 0) throw', 'if (leftMs > 1e9) throw']],
  ),
  ...within(
    'src/kube/informer.ts',
    ['test/slow/kube/informer-faults.test.ts'],
    [
      [
        'a watch that is cut goes on after the last event',
        '      version = object.metadata.resourceVersion ?? version\n',
        '',
      ],
      ['one event does not end the doubling of pauses', 'const STEADY_MS = 5_000', 'const STEADY_MS = 0'],
      [
        'an expired watch lists again',
        "    version = undefined\n    options.onRestart?.('expired')",
        "    options.onRestart?.('expired')",
        ['test/system/kube/informer.test.ts', 'test/slow/kube/informer-faults.test.ts'],
      ],
      [
        'what a new list lacks is forgotten',
        'for (const key of gone) forget(key)',
        '',
        ['test/system/kube/informer.test.ts'],
      ],
      [
        'a deleted object is forgotten',
        "if (kind === 'DELETED') forget(key)",
        "if (kind === 'DELETED') keep(object)",
        ['test/unit/kube/informer-events.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/kube/kube-error.ts',
    ['test/unit/kube/requests.test.ts'],
    [['a text of the server has a bound', 'message.slice(0, MAX_MESSAGE)', 'message']],
  ),
  ...within(
    'src/kube/lease.ts',
    ['test/unit/kube/lease.test.ts'],
    [
      [
        'a lost lease is not acquired again',
        '    // A lost lease must not be acquired again by a request in flight.\n    stop.abort()\n',
        '',
      ],
      ['one silent connection does not cost the lease', 'const REQUEST_SHARE = 0.4', 'const REQUEST_SHARE = 1'],
      [
        'who holds the lease is left alone',
        "if (!isOurs && !isFree) return lose('a different holder has the lease')",
        "if (!isOurs && !isFree) lose('a different holder has the lease')",
      ],
      [
        'a holder gives up in time',
        "cancelDeadline = timers.after(heldUntilMs - timers.now(), () => lose('not renewed in time'))",
        'cancelDeadline = () => undefined',
      ],
      [
        'another’s renewals are timed by our own clock',
        'if (version !== seen.version) seen = { version, atMs: timers.now() }',
        'seen = { version, atMs: 0 }',
      ],
      [
        'a lease is acquired only at its observed version',
        'leaseObject({ leaseTransitions: transitions, acquireTime }, version)',
        'leaseObject({ leaseTransitions: transitions, acquireTime })',
      ],
    ],
  ),
  ...within(
    'src/kube/lines.ts',
    ['test/unit/kube/requests.test.ts'],
    [['a line has a bound', 'if (length > MAX_LINE_BYTES) throw', 'if (length < 0) throw']],
  ),
  ...within(
    'src/kube/object.ts',
    ['test/unit/kube/requests.test.ts'],
    [['a name is one segment of a path', '`/${encodeURIComponent(name)}`', '`/${name}`']],
  ),
  ...within(
    'src/kube/queue.ts',
    ['test/unit/kube/queue.test.ts'],
    [
      ['one key is worked on by one', 'if (running.has(key)) again.add(key)', 'if (running.size < 0) again.add(key)'],
      ['a key that came meanwhile comes once more', 'if (again.delete(key)) add(key)', 'again.delete(key)'],
      ['work has a bound', 'if (running.size >= concurrency) return', 'if (running.size < 0) return'],
      ['pauses grow with failures', 'const count = (failures.get(key) ?? 0) + 1', 'const count = 1'],
      ['success forgets them', '      failures.delete(key)\n', '', ['test/unit/kube/informer-events.test.ts']],
      [
        'who closes waits for what runs',
        'if (running.size > 0 || (waiting.size > 0 && !isClosed)) return',
        'if (waiting.size > 0 && !isClosed) return',
      ],
    ],
  ),
  ...within(
    'src/kube/settings.ts',
    ['test/unit/kube/settings.test.ts'],
    [
      [
        'TLS is verified unless the file says otherwise',
        "cluster['insecure-skip-tls-verify'] === true",
        "cluster['insecure-skip-tls-verify'] !== false",
      ],
      ['in a cluster TLS is verified', 'insecureSkipVerify: false,', 'insecureSkipVerify: true,'],
      [
        'credentials of a plugin are refused',
        "if ('exec' in user || 'auth-provider' in user)",
        "if ('exec' in cluster)",
      ],
    ],
  ),
]
