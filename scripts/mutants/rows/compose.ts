import { within } from '../mutation.ts'

/** Guards of `src/compose`. */
export default [
  ...within(
    'src/compose/file-verdict.ts',
    ['test/unit/cli/validate-inputs.test.ts'],
    [
      [
        'a client secret with a byte order mark or a blank line is reported',
        "return holds === 'text' ? judgeOddity(text, name) : FINE",
        'return FINE',
      ],
    ],
  ),
  ...within(
    'src/compose/io.ts',
    ['test/slow/e2e/stopping/others.test.ts'],
    [
      [
        'a command that has nothing to end ends with the signal',
        '      if (!isHeeded) {\n        endWith(signal)',
        '      if (!isHeeded) {\n        stop.resolve(signal)',
      ],
    ],
  ),
  ...within(
    'src/compose/login/index.ts',
    ['test/system/cli/logout.test.ts', 'test/system/login/discovery.test.ts'],
    [
      [
        'loopback is open to a login for a server on this machine only',
        'configuredUrls: isLoopbackHost(endpoint.hostname) ? [endpoint.href] : []',
        "configuredUrls: ['http://localhost/']",
      ],
    ],
  ),
  ...within(
    'src/compose/operator/run-operator.ts',
    ['test/slow/e2e/operator-tenants.test.ts'],
    [
      [
        'a cluster with --secrets-by-label has it',
        '      secretsByLabel,\n      pods',
        '      secretsByLabel: false,\n      pods',
      ],
    ],
  ),
  ...within(
    'src/compose/proxy/configuration.ts',
    ['test/unit/compose/proxy/backends.test.ts'],
    [
      [
        'routes with another TLS identity share no connections',
        'if (known !== undefined) return known',
        'for (const any of opened.values()) return known ?? any',
      ],
    ],
  ),
  ...within(
    'src/compose/proxy/reload.ts',
    ['test/slow/e2e/reload.test.ts'],
    [
      [
        'a reload takes no secret away from a route that serves',
        'lacking.filter(({ routes = [] }) => routes.some((name) => serving.has(name)))',
        '[]',
      ],
      [
        'a route that is new waits for its secret',
        'lacking.filter(({ routes = [] }) => routes.some((name) => serving.has(name)))',
        'lacking',
      ],
    ],
  ),
  ...within(
    'src/compose/proxy/readiness.ts',
    ['test/unit/compose/proxy/readiness.test.ts'],
    [
      [
        'a secret that cannot be a header makes its route unusable',
        'if (problem !== undefined && handle.version <= 1)',
        'if (problem !== undefined && handle.version < 1)',
      ],
    ],
  ),
  ...within(
    'src/compose/proxy/configuration.ts',
    ['test/slow/e2e/header-forward.test.ts'],
    [['a caller can set no header that is forwarded', '...forwardedNames(headerForward),', '']],
  ),
  ...within(
    'src/compose/proxy/services.ts',
    ['test/slow/e2e/backend-connections.test.ts'],
    [
      [
        'connections to backends leave half of the file descriptors to clients',
        'Math.min(MOST_CONNECTIONS, carriedConnections(2))',
        'MOST_CONNECTIONS + carriedConnections(2)',
      ],
    ],
  ),
  ...within(
    'src/compose/proxy/shared-cache.ts',
    ['test/slow/e2e/shared-cache-store.test.ts'],
    [['shared credentials never wait for replicas of Redis', ', { isDurable: false })', ')']],
  ),
  ...within(
    'src/compose/stdio/carry.ts',
    ['test/slow/bridge/process.test.ts'],
    [
      [
        'what runs at SIGTERM is answered',
        'if (why === undefined) void left.then(() => bridge.hurry())',
        "if (why !== '') void left.then(() => bridge.hurry())",
      ],
    ],
  ),
  ...within(
    'src/compose/connect.ts',
    ['test/system/e2e/connect-command.test.ts'],
    [
      ['a key that others can read is refused', 'if ((mode & 0o077) === 0) return undefined', 'return undefined'],
      [
        'one process per server',
        'throw new ConfigError([`${directory}: another process serves',
        'void ([`${directory}: another process serves',
      ],
    ],
  ),
]
