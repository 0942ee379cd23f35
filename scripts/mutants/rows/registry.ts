import { within } from '../mutation.ts'

/** Guards of `src/registry`. */
export default [
  ...within(
    'src/registry/access.ts',
    ['test/unit/registry/access.test.ts'],
    [
      [
        'open paths are those that a route serves, by its decoded names',
        ': canonicalPath(route, request.params)',
        ": pathOf(raw.url ?? '')",
      ],
      ['a decoded name stays one segment', "encodeURIComponent(values[name] ?? '')", "values[name] ?? ''"],
      [
        'a path without a route needs a token',
        '  if (policy.isPublicPath(path)) return ANONYMOUS\n',
        '  if (route === undefined || policy.isPublicPath(path)) return ANONYMOUS\n',
      ],
      [
        'introspections of the registry are fair between clients behind a balancer, too',
        'policy.peerOf(raw))',
        'raw.socket.remoteAddress)',
        ['test/unit/registry/peers.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/registry/registry-data.ts',
    ['test/unit/registry/registry-data.test.ts'],
    [
      [
        'a poll of a removed registry is not reported, and restores no series',
        '      if (isClosed) return\n      if (snapshot',
        '      if (snapshot',
      ],
      ['nor is a failure of it', '      if (isClosed) return\n      const known', '      const known'],
    ],
  ),
  ...within(
    'src/registry/server-json.ts',
    ['test/unit/registry/parse.test.ts'],
    [['a link is nothing that a browser runs', '(?!(?:javascript|vbscript|data|blob|file)$)', '']],
  ),
]
