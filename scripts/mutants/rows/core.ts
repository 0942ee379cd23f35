import { within } from '../mutation.ts'

/** Guards of `src/core`. */
export default [
  ...within(
    'src/core/address.ts',
    ['test/unit/resources/workloads/metadata-access.test.ts'],
    [
      [
        'an egress rule holds no metadata service',
        'holds(network, other) ? other : holds(other, network) ? network : undefined',
        'holds(other, network) ? network : undefined',
      ],
      ['an egress rule is no part of one', 'holds(other, network) ? network : undefined', 'undefined'],
    ],
  ),
  ...within(
    'src/core/caller.ts',
    ['test/unit/authenticate/token-claims.test.ts'],
    [
      [
        'a name that users choose is not an identity',
        'if (isIntrospected && isName(username))',
        'if (isName(username))',
      ],
      [
        'callers without a subject are not one caller',
        ': `token:${tokenDigest}`',
        ': `token:`',
        ['test/unit/proxy/sessions.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/core/failure.ts',
    ['test/unit/core/failure.test.ts'],
    [['a cached rejection holds no request and no token', 'Error.stackTraceLimit = 0', '']],
  ),
  ...within(
    'src/core/gateway-headers.ts',
    ['test/unit/http/header-policy.test.ts'],
    [['nor under another spelling', "name.toLowerCase().replace(/[^a-z0-9]/g, '-')", 'name.toLowerCase()']],
  ),
  ...within(
    'src/core/grant-claim.ts',
    ['test/system/e2e/authserver/without-login.test.ts'],
    [
      [
        'an own token names its session or a grant without one',
        "typeof grant !== 'string' || !Object.hasOwn(HOLDERS, grant)",
        'grant === undefined',
      ],
    ],
  ),
  ...within(
    'src/core/limit.ts',
    ['test/unit/core/limit.test.ts'],
    [
      [
        'what was reached is reported with its amount and its place',
        'const cause = `${base.cause}; the limit is ${amountOf(limit)} (${where})`',
        'const { cause } = base',
      ],
      [
        'who reaches a limit learns which setting raises it',
        'if (setting === undefined || base.remedy.includes(setting.name)) return',
        'if (setting !== undefined || base.remedy.length > 0) return',
      ],
      [
        'a limit beneath an error is found',
        'return isLimit(limit) ? limit : limitIn(cause)',
        'return isLimit(limit) ? limit : undefined',
      ],
      ['an amount has its unit', 'amount >= bytes && amount % bytes === 0', 'amount >= bytes'],
    ],
  ),
  ...within(
    'src/core/masking/needles.ts',
    ['test/unit/core/secret-mask.test.ts'],
    [
      ['a secret is found in base64 and hex', 'this.#addEncoded(Buffer.from(secret))', ''],
      [
        'a secret is found in base64url',
        'if (safeBegin !== begin || safeEnd !== end) this.#add(spelling, [safeBegin, safeEnd])',
        '',
      ],
      ['the end of a secret is found without its beginning', '      [last, true],\n', ''],
    ],
  ),
  ...within(
    'src/core/masking/secret-mask.ts',
    ['test/unit/core/secret-mask.test.ts'],
    [['a secret is found behind escapes', 'if (unescaped === undefined) return', 'return']],
  ),
  ...within(
    'src/core/ports.ts',
    ['test/unit/cache/negatives.test.ts'],
    [['a clock that was set back ends a pause', 'pause.sinceMs <= nowMs && ', '']],
  ),
  ...within(
    'src/core/printable.ts',
    ['test/unit/report/human-line.test.ts'],
    [['no text of a log line steers a terminal', '/[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}]/gu', '/[\\n]/gu']],
  ),
  ...within(
    'src/core/request-line.ts',
    ['test/unit/core/request-line.test.ts'],
    [
      [
        'the line of a rejected request masks secrets in foreign text',
        '  if (!mask.isIn(JSON.stringify(fields))) return fields',
        '  return fields',
      ],
    ],
  ),
  ...within(
    'src/core/secret.ts',
    ['test/unit/core/secret.test.ts'],
    [
      [
        'a secret is not its JSON',
        '  toJSON(): string {\n    return REDACTED',
        '  toJSON(): string {\n    return this.#value',
      ],
      [
        'a secret is not its text',
        '  [Symbol.toPrimitive](): string {\n    return REDACTED',
        '  [Symbol.toPrimitive](): string {\n    return this.#value',
      ],
    ],
  ),
]
