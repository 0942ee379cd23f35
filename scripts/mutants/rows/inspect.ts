import { within } from '../mutation.ts'

/** Guards of `src/inspect`. */
export default [
  ...within(
    'src/inspect/assets.ts',
    ['test/unit/inspect/assets.test.ts'],
    [
      [
        "nothing outside of the page's folder is one of its files",
        '/^[a-z][a-z-]*\\.(?:js|css|svg|html)$/.test(name)',
        '/(?:js|css|svg|html)$/.test(name)',
      ],
    ],
  ),
  ...within(
    'src/inspect/masked-heads.ts',
    ['test/unit/inspect/mask.test.ts'],
    [
      [
        'texts that were searched together are masked each where one of them holds something',
        'maskLooks(all) === all && !texts.isIn(all) ? parts : NONE',
        'parts',
      ],
      [
        'a text that was not searched with the others is searched for itself',
        'mask: (text) => (clean.includes(text) ? text :',
        'mask: (text) => (clean.length > 0 ? text :',
      ],
    ],
  ),
  ...within(
    'src/inspect/secret-texts.ts',
    ['test/slow/inspect/credentials-of-many.test.ts'],
    [['masks of credentials are kept for some of them', 'if (oldest !== undefined) ofCredential.delete(oldest)', '']],
  ),
  ...within(
    'src/inspect/watched-request.ts',
    ['test/slow/e2e/header-forward.test.ts'],
    [
      ['a forwarded secret that a backend repeats is masked', 'of armed?.forwarded ?? []) texts', 'of []) texts'],
      [
        'the credential of a request is known to what masks its answer',
        'if (armed !== undefined) texts.addCredential(armed.credential)',
        '',
        ['test/slow/inspect/lab-secrets.test.ts'],
      ],
    ],
  ),
]
