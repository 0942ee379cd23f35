import { within } from '../mutation.ts'

/** Guards of `src/apply`. */
export default [
  ...within(
    'src/apply/aws.ts',
    ['test/unit/apply'],
    [
      [
        'what is sent to S3 is what was signed',
        'isS3(service) ? targetOfS3(withoutPlus(draft.path)) :',
        '',
        ['test/unit/apply/sigv4-applier.test.ts'],
      ],
      [
        'the body that is signed is the body that is sent',
        "if (body.kind === 'kept') return payloadHash(body.bytes)",
        "if (body.kind === 'kept') return EMPTY_HASH",
      ],
      [
        'an unsigned payload is never sent',
        "throw new Failure('internal_error', { detail: 'a request body was not kept for signing' })",
        "return 'UNSIGNED-PAYLOAD'",
      ],
      ['signing headers that are there already go away', '  removeHeaders(headers, OWNED)\n', ''],
      ['a signing key is for one day', ' || signing.day !== day', ''],
    ],
  ),
  ...within(
    'src/apply/header.ts',
    ['test/unit/apply'],
    [['an injected header replaces what is there', 'if (headers[index] === name) headers.splice(index, 2)', '']],
  ),
  ...within(
    'src/apply/seal.ts',
    ['test/system/e2e/signed.test.ts'],
    [
      ['a body that is signed in pieces is refused', 'if (needsBody) refuseAwsChunked(request.headers)', ''],
      [
        'a backend whose clock is a day off is not believed',
        'if (Math.abs(skew) <= MAX_SKEW_MS) skewMs = skew',
        'skewMs = skew',
        ['test/unit/apply'],
      ],
    ],
  ),
  ...within(
    'src/apply/sigv4-canonical.ts',
    ['test/unit/apply'],
    [['the headers of MCP are signed', " || name.startsWith('mcp-')", '']],
  ),
  ...within(
    'src/apply/sigv4.ts',
    ['test/unit/apply/sigv4-botocore.test.ts'],
    [
      [
        'S3 is signed with its path as it is',
        'const path = service !== undefined && isS3(service) ? canonicalPathOfS3(sent) : canonicalPath(sent)',
        'const path = canonicalPath(sent)',
      ],
    ],
  ),
]
