import { within } from '../mutation.ts'

/** Guards of `src/secrets`. */
export default [
  ...within(
    'src/secrets/secret-file.ts',
    ['test/unit/secrets'],
    [
      [
        'an invalid secret is reported as a problem',
        'accept: (content) => valueOf(content, form) !== undefined',
        'accept: () => true',
      ],
      ['a secret has at most 1 MiB', '    maxBytes: MAX_BYTES,', '    maxBytes: MAX_BYTES * 4,'],
      ['a secret lies in its directory, links included', '    within: directory,\n', ''],
    ],
  ),
  ...within(
    'src/secrets/secret-ref.ts',
    ['test/unit/secrets'],
    [['the key of a reference does not lead out of the directory', " || key.startsWith('..')", '']],
  ),
]
