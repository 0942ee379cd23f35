import { within } from '../mutation.ts'

/** Guards of `src/resources`. */
export default [
  ...within(
    'src/resources/aws/matcher-verdicts.ts',
    ['test/unit/resources/aws/matcher-verdicts.test.ts'],
    [['judging has an end', "> mostMs) return 'too_long'", '> mostMs) startedMs = 0']],
  ),
  ...within(
    'src/resources/aws/session-policy.ts',
    ['test/unit/resources/examples.test.ts'],
    [
      [
        'a placeholder of a session policy is where a claim may be',
        'return isFree || !hasPlaceholder(value)',
        'return isFree || true',
      ],
    ],
  ),
  ...within(
    'src/resources/client-credentials.ts',
    ['test/unit/resources/examples.test.ts'],
    [
      [
        'parameters of a token request are set in one place',
        "  reservedNames('additionalParams', RESERVED_TOKEN_PARAMS, 'the proxy'),\n",
        '',
      ],
    ],
  ),
  ...within(
    'src/resources/client-rules.ts',
    ['test/unit/load/documents/client-rules.test.ts'],
    [
      [
        'secrets of clients are not given out over plain http',
        "value['insecureAllowHTTP'] !== true || !isConfidential(value)",
        "value['insecureAllowHTTP'] !== true || isConfidential(value)",
      ],
      [
        'nor on this machine where the configuration says so',
        "value['insecureAllowConfidentialOverLoopbackHTTP'] !== false ||",
        "value['insecureAllowConfidentialOverLoopbackHTTP'] !== null ||",
      ],
    ],
  ),
  ...within(
    'src/resources/embedded-auth-server.ts',
    ['test/unit/resources/examples.test.ts'],
    [
      [
        'and is refused where a configuration names it',
        '!RESERVED_CLAIMS.some((name) => forwardClaims.includes(name))',
        'true',
      ],
      [
        'an issuer beyond this machine is https unless the configuration says otherwise',
        'isIssuer(value[name], value[INSECURE] === true)',
        'isIssuer(value[name], value[INSECURE] !== null)',
        ['test/unit/load/documents/client-rules.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/resources/programs/workload-entries.ts',
    ['test/unit/authserver/grants/trusted-issuers.test.ts'],
    [
      ['tokens for an issuer of manifests count once', 'isSingleUse: true', 'isSingleUse: false'],
      ['tokens for an issuer of manifests end with what was shown', 'endsWithToken: true', 'endsWithToken: false'],
      [
        'an issuer of manifests is accepted for listed subjects only',
        'match: `claims.sub == ${JSON.stringify(subject)}`',
        'match: `claims.sub != ""`',
      ],
    ],
  ),
  ...within(
    'src/resources/workloads/metadata-access.ts',
    ['test/unit/resources/workloads/metadata-access.test.ts'],
    [
      ['a target is no metadata service', '!isMetadataHost(new URL(url).hostname)', 'true'],
      ['an egress rule without peers is refused', '!Array.isArray(to) || to.length === 0', '!Array.isArray(to)'],
    ],
  ),
  ...within(
    'src/resources/workloads/telemetry.ts',
    ['test/unit/load/workloads/telemetry.test.ts'],
    [
      [
        'traces and their headers do not go in the clear to another machine unless that is said',
        'enabled !== true || insecure === true || !isPlainAway(url)',
        'true',
      ],
    ],
  ),
  ...within(
    'src/resources/workloads/workloads.ts',
    ['test/unit/load/documents/manifest-corpus.test.ts'],
    [['what others do with a field, and we do not, is not left out in silence', '      ...refusals(table),\n', '']],
  ),
]
