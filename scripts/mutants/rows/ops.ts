import { within } from '../mutation.ts'

/** Guards of `src/ops`. */
export default [
  ...within(
    'src/ops/access.ts',
    ['test/unit/ops/open-endpoints.test.ts'],
    [
      [
        'open admin endpoints on a loopback bind have names of this machine',
        'if (checksHost && request.headers.host !== undefined && !namesThisMachine(request))',
        'if (false as boolean)',
      ],
    ],
  ),
  ...within(
    'src/ops/page-access.ts',
    ['test/unit/ops/page-access.test.ts'],
    [
      ["the page's session ends after eight hours", 'if (session.untilMs > clock.now() && session', 'if (session'],
      [
        "the page's session ends with a logout",
        'if (key !== undefined) sessions.delete(key)',
        '',
        ['test/unit/ops/pages.test.ts'],
      ],
    ],
  ),
]
