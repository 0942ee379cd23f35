import { within } from '../mutation.ts'

/** Guards of `src/fields`. */
export default [
  ...within(
    'src/fields/patterns.ts',
    ['test/unit/resources/examples.test.ts'],
    [
      [
        'a resource has no fragment',
        "([A-Za-z0-9._~:/?@!$&'()*+,;=[\\]-]|%[0-9A-Fa-f]{2})+$/",
        "([A-Za-z0-9._~:/?@!$&'()*+,;=[\\]#-]|%[0-9A-Fa-f]{2})+$/",
      ],
    ],
  ),
  ...within(
    'src/fields/scalars.ts',
    ['test/unit/resources/proxy-config.test.ts'],
    [
      [
        'a route can not let tokens of gateways through',
        "if (row?.kind === 'identity') return",
        'if (row !== undefined) return',
      ],
    ],
  ),
]
