import { within } from '../mutation.ts'

/** Guards of `src/telemetry`. */
export default [
  ...within(
    'src/telemetry/mcp.ts',
    ['test/unit/telemetry/mcp.test.ts'],
    [
      [
        'names in traces hold no secret of the request',
        "typeof value === 'string' ? secrets.maskIn(value) : value",
        'value',
      ],
      [
        'names that are none stay out of traces',
        "typeof name === 'string' && NAME.test(name)",
        "typeof name === 'string'",
      ],
      [
        'methods that are none stay out of traces',
        "typeof method !== 'string' || !METHOD.test(method)",
        "typeof method !== 'string'",
      ],
      ['a revision is one', "typeof version === 'string' && VERSION.test(version)", "typeof version === 'string'"],
      [
        'a large body is not read',
        'bytes.length > MAX_BODY_BYTES ? undefined : parseMessage(bytes)',
        'parseMessage(bytes)',
      ],
    ],
  ),
  ...within(
    'src/telemetry/telemetry.ts',
    ['test/slow/telemetry/named-receivers.test.ts'],
    [
      [
        'traces of a route go to its own receiver only',
        '(route === undefined ? undefined : ofRoutes.get(route)) ?? own',
        'own ?? [...ofRoutes.values()][0]',
      ],
    ],
  ),
  ...within(
    'src/telemetry/traceparent.ts',
    ['test/unit/telemetry/traceparent.test.ts'],
    [
      ['version ff is no trace', "version === 'ff' || ", ''],
      ['version 00 ends with its flags', "(version === '00' && more !== undefined)", "version === ''"],
      ['a trace of zeros is none', 'if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined', ''],
      [
        'of the flags only the one that is known goes on',
        'Number.parseInt(flags, 16) & TraceFlags.SAMPLED,',
        'Number.parseInt(flags, 16),',
      ],
    ],
  ),
]
